package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"
)

// silent is an address at which nobody answers: its queue is full.
func silent(t *testing.T) netip.AddrPort {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(name.(*syscall.SockaddrInet4).Port))
	unanswered := 0
	for range 8 { // more than fit
		c, err := net.DialTimeout("tcp4", at.String(), 200*time.Millisecond)
		if err == nil {
			t.Cleanup(func() { c.Close() })
			unanswered = 0
		} else if unanswered++; unanswered == 2 { // one alone may be a machine that was busy
			return at
		}
	}
	t.Fatal("the queue is never full")
	return at
}

// within is what a tunnel dials with.
func within(t *testing.T, d time.Duration) context.Context {
	return by{t.Context(), time.Now().Add(d), &tunnel{server: &server{}, client: &socket{}}}
}

// TestDialEnds: nobody waits for an address that does not answer, neither beyond the bound nor beyond the
// run.
func TestDialEnds(t *testing.T) {
	dial, at := dialOut(), silent(t)
	t.Run("at its bound", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if c, err := dial(ctx, at); !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, %v", c, err)
		}
	})
	t.Run("at its bound, as a tunnel sets it", func(t *testing.T) {
		start := time.Now()
		if c, err := dial(within(t, 50*time.Millisecond), at); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) > patience {
			t.Errorf("%v, %v after %s", c, err, time.Since(start))
		}
	})
	t.Run("with the run", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
		start := time.Now()
		time.AfterFunc(50*time.Millisecond, cancel)
		if c, err := dial(ctx, at); err == nil || time.Since(start) > patience {
			t.Errorf("%v, %v after %s", c, err, time.Since(start))
		}
	})
	t.Run("before it began", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if c, err := dial(ctx, at); err == nil {
			t.Errorf("%v", c)
		}
	})
}

// TestDialOutlivesItsContext: a connection that stands is not ended by the bound of its dial.
func TestDialOutlivesItsContext(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	c, err := dialOut()(ctx, l.Addr().(*net.TCPAddr).AddrPort())
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if _, err := c.Write([]byte{1}); err != nil {
		t.Errorf("after its context: %v", err)
	}
	if err := far.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := far.Read(make([]byte, 2)); n != 1 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
