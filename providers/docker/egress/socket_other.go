//go:build !linux

package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
)

// The proxy runs in containers, on Linux. Elsewhere this package only has to say what it would be told.

// direct says that the calls of this file exist.
const direct = false

func receive(uintptr, []byte) (int, error) { return 0, syscall.ENOSYS }

func peek(uintptr) (int, error) { return 0, syscall.ENOSYS }

func send(uintptr, []byte) (int, error) { return 0, syscall.ENOSYS }

func connected(uintptr) (stands bool, untold syscall.Errno) { return true, 0 }

func saidAll(uintptr) bool { return false }

func queued(uintptr) int { return 0 }

func shutdown(uintptr) error { return syscall.ENOSYS }

func listen(context.Context, string) (net.Listener, error) { return nil, errors.ErrUnsupported }

func dialOut() func(context.Context, netip.AddrPort) (net.Conn, error) {
	return func(context.Context, netip.AddrPort) (net.Conn, error) { return nil, errors.ErrUnsupported }
}

type splicer struct{}

func newSplicer(_, _ *socket) (*splicer, error) { return nil, errors.ErrUnsupported }

func (*splicer) close() {}

func (*splicer) move(int64) (int64, error) { return 0, errors.ErrUnsupported }
