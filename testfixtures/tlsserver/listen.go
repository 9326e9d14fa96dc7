package tlsserver

import (
	"context"
	"net"
	"syscall"
)

// Listen listens on ADDRESS:PORT. The address need not exist yet: the uplink's gateway, where a vendor
// of a test stands, appears with apply.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	lc := net.ListenConfig{Control: freebind}
	return lc.Listen(ctx, "tcp", address)
}

// freebind allows an address that no interface has yet.
func freebind(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_FREEBIND, 1)
	}); e != nil {
		return e
	}
	return err
}
