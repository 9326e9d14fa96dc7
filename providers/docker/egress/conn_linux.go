package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// conn is a TCP connection over IPv4 that was accepted or dialled here. The net package would announce each
// of the calls for it to the scheduler (see socket), and ask the kernel for names and states that are known.
type conn struct {
	*os.File // in Go's poller
	peer     netip.AddrPort
}

// newConn takes a descriptor that is not blocking, and closes it where the poller cannot have it: nothing would
// ever end a wait.
func newConn(fd uintptr, peer netip.AddrPort) (*conn, error) {
	c := &conn{File: os.NewFile(fd, "tcp4"), peer: peer}
	if err := c.SetDeadline(time.Time{}); err != nil {
		c.Close()
		return nil, errNotWatched
	}
	return c, nil
}

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.peer) }

// LocalAddr implements net.Conn. It is the zero address when the connection is closed.
func (c *conn) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(c.local()) }

func (c *conn) local() (local netip.AddrPort) {
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if sa, err := syscall.Getsockname(int(fd)); err == nil {
				local = addrPort(sa)
			}
		})
	}
	if err != nil {
		return netip.AddrPort{}
	}
	return local
}

func addrPort(sa syscall.Sockaddr) netip.AddrPort {
	if in, ok := sa.(*syscall.SockaddrInet4); ok {
		return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), uint16(in.Port))
	}
	return netip.AddrPort{}
}

// SetLinger with 0 seconds makes closing a reset.
func (c *conn) SetLinger(seconds int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	if err := raw.Control(func(fd uintptr) {
		serr = syscall.SetsockoptLinger(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1, Linger: int32(seconds)})
	}); err != nil {
		return err
	}
	return serr
}

// listener accepts connections over IPv4.
type listener struct {
	file *os.File
	raw  syscall.RawConn
	addr net.Addr
}

// listen is for the agent, next to whom nothing forgets connections.
func listen(ctx context.Context, address string) (net.Listener, error) {
	lc := net.ListenConfig{KeepAlive: -1, Control: forAgent}
	lc.SetMultipathTCP(false) // the library's default, which every connection then pays for
	l, err := lc.Listen(ctx, "tcp4", address)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &listener{file: file, raw: raw, addr: l.Addr()}, nil
}

// agentCongestion is how fast the proxy sends to the agent, who is behind a bridge of the same machine: as the
// windows allow, by the way that every kernel has and lets everybody choose. A machine's own choice is made for the
// internet. With BBR each packet has a timer, so that a tunnel carries two thirds of what it could (kernel 6.18).
const agentCongestion = "reno"

// forAgent sets what connections inherit: no waiting for more to send, and agentCongestion. And it leaves a new
// connection to the kernel until its first bytes are there, a second at most: accepting it before means waking up
// twice.
func forAgent(_, _ string, c syscall.RawConn) error {
	var err error
	cerr := c.Control(func(fd uintptr) {
		// Where a kernel refuses, the machine's choice remains: slower, not wrong.
		_ = syscall.SetsockoptString(int(fd), syscall.IPPROTO_TCP, syscall.TCP_CONGESTION, agentCongestion)
		err = errors.Join(syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
			syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT, 1))
	})
	return errors.Join(cerr, err)
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	var c *conn
	var unwatched error
	var errno syscall.Errno
	err := l.raw.Read(func(fd uintptr) bool {
		var peer syscall.RawSockaddrInet4
		size := uint32(unsafe.Sizeof(peer))
		var nfd uintptr
		for {
			nfd, _, errno = syscall.RawSyscall6(syscall.SYS_ACCEPT4, fd, uintptr(unsafe.Pointer(&peer)), uintptr(unsafe.Pointer(&size)),
				syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0, 0)
			if errno != syscall.EINTR {
				break
			}
		}
		if errno == 0 {
			port := (*[2]byte)(unsafe.Pointer(&peer.Port)) // in the network's order
			c, unwatched = newConn(nfd, netip.AddrPortFrom(netip.AddrFrom4(peer.Addr), uint16(port[0])<<8|uint16(port[1])))
		}
		return errno != syscall.EAGAIN
	})
	switch {
	case err != nil:
		return nil, net.ErrClosed // nothing else ends the wait
	case errno != 0:
		return nil, &net.OpError{Op: "accept", Net: "tcp4", Addr: l.addr, Err: os.NewSyscallError("accept4", errno)}
	case unwatched != nil:
		return nil, &net.OpError{Op: "accept", Net: "tcp4", Addr: l.addr, Err: unwatched}
	}
	return c, nil
}

// Close implements net.Listener.
func (l *listener) Close() error { return l.file.Close() }

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.addr }

// dialOut dials, until the context's end or its deadline.
func dialOut() func(context.Context, netip.AddrPort) (net.Conn, error) {
	var dials atomic.Uint32
	return func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		c, err := dial(ctx, netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), dials.Add(1))
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: "tcp4", Addr: net.TCPAddrFromAddrPort(to), Err: err}
		}
		return c, nil
	}
}

func dial(ctx context.Context, to netip.AddrPort, nth uint32) (*conn, error) {
	if !to.Addr().Is4() {
		return nil, &net.AddrError{Err: "no IPv4 address", Addr: to.Addr().String()}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	fd, _, errno := syscall.RawSyscall(syscall.SYS_SOCKET, syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("socket", errno)
	}
	c, err := newConn(fd, to)
	if err != nil {
		return nil, err
	}
	if err := c.connect(ctx, nth); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// leastChosen is the first port that the kernel gives to whoever asks for none, whatever
// net.ipv4.ip_local_port_range says: below are those of services, which are asked for.
const leastChosen = 1024

// connect waits until the other side has accepted, refused, or not answered in time.
func (c *conn) connect(ctx context.Context, nth uint32) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	if at, ok := ctx.Deadline(); ok {
		if err := c.SetWriteDeadline(at); err != nil {
			return err
		}
	}
	var failed error
	var stop func() bool
	tries := 0
	err = raw.Write(func(fd uintptr) bool {
		if tries == 0 {
			if failed = keepAlive(fd, nth); failed != nil {
				return true
			}
		}
		for {
			tries++
			errno := askConnect(fd, c.peer)
			switch errno {
			case 0, syscall.EISCONN:
				return true
			case syscall.EINTR:
			case syscall.EINPROGRESS, syscall.EALREADY:
				if tries == 1 {
					continue // a peer on this machine has answered by now
				}
				if stop == nil {
					giveUp := func() { _ = c.SetWriteDeadline(time.Unix(1, 0)) }
					stop = context.AfterFunc(ctx, giveUp)
					if b, ok := ctx.(by); ok {
						b.waits(giveUp)
					}
				}
				return false
			default:
				failed = os.NewSyscallError("connect", errno)
				return true
			}
		}
	})
	stopped := stop != nil && !stop()
	switch {
	case ctx.Err() != nil && (stopped || err != nil):
		return ctx.Err()
	case err != nil:
		return os.ErrDeadlineExceeded // nobody else has this connection yet, so that nothing else ends the wait
	case failed != nil:
		return failed
	case c.peer.Port() >= leastChosen && c.local() == c.peer:
		// The port that the kernel chose is the one that was dialled: where nobody listens, the connection then
		// meets itself, and everything sent comes back.
		return os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	return c.SetWriteDeadline(time.Time{})
}

// askConnect is connect(2). Called again it says how the first call ended.
func askConnect(fd uintptr, to netip.AddrPort) syscall.Errno {
	sa := syscall.RawSockaddrInet4{Family: syscall.AF_INET, Addr: to.Addr().As4()}
	port := (*[2]byte)(unsafe.Pointer(&sa.Port)) // in the network's order
	port[0], port[1] = byte(to.Port()>>8), byte(to.Port())
	_, _, errno := syscall.RawSyscall(syscall.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&sa)), unsafe.Sizeof(sa))
	return errno
}

// keepAlive keeps routers on the way out from forgetting a tunnel in its silence. Tunnels that were opened
// together must not ask together, and again every time: thousands of probes at once overflow the kernel's
// queue (net.core.netdev_max_backlog), the same ones each time, and their tunnels are given up. What is not
// set is left to the kernel: every option is a call for every tunnel.
func keepAlive(fd uintptr, nth uint32) error {
	for _, o := range [...]struct{ level, option, value int }{
		{syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1},
		{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 60 + int(nth%32)},
	} {
		value := int32(o.value)
		if _, _, errno := syscall.RawSyscall6(syscall.SYS_SETSOCKOPT, fd, uintptr(o.level), uintptr(o.option),
			uintptr(unsafe.Pointer(&value)), unsafe.Sizeof(value), 0); errno != 0 {
			return os.NewSyscallError("setsockopt", errno)
		}
	}
	return nil
}
