package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/hello"
)

// TestSlowWayOut: a lookup and dials may take longer than a request may, whatever the tunnel begins with.
func TestSlowWayOut(t *testing.T) {
	for _, begins := range []bool{false, true} {
		cfg := testConfig()
		cfg.Hosts[0].TLS, cfg.Limits.HeadMS = begins, 1000 // in which a busy machine makes its request
		p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }))
		p.set(func() {
			p.resolve = func(context.Context, string) ([]netip.Addr, error) {
				time.Sleep(1300 * time.Millisecond)
				return []netip.Addr{netip.MustParseAddr(vendorAddr)}, nil
			}
		})
		line, err := bufio.NewReader(p.raw(connectTo(okTarget))).ReadString('\n')
		if err != nil || !strings.Contains(line, " 200 ") {
			t.Errorf("with tls = %t it answers %q, %v", begins, line, err)
		}
	}
}

// TestRunsEndIsNoEnd: whoever is in the middle of a stream when the run ends sees a reset on either side, never an end
// that would make half of something a whole.
func TestRunsEndIsNoEnd(t *testing.T) {
	const tunnels = 12
	begun, seen := make(chan struct{}, tunnels), make(chan error, 2*tunnels)
	rest := func(c *net.TCPConn) {
		_, err := c.Read(make([]byte, 1))
		seen <- err
	}
	p := startProxy(t, plainConfig(), upstream(t, func(c *net.TCPConn) {
		_, _ = io.ReadFull(c, make([]byte, 4))
		_, _ = io.WriteString(c, "half")
		begun <- struct{}{}
		rest(c)
	}))
	dial := dialOut()
	p.set(func() {
		p.dialer = func(ctx context.Context, at netip.AddrPort) (net.Conn, error) { return dial(ctx, at) }
	})
	for range tunnels {
		c := p.tunnel(okTarget)
		if _, err := io.WriteString(c, "half"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		<-begun
		go rest(c)
	}
	p.end()
	for range 2 * tunnels {
		if err := <-seen; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a torn stream ends with %v", err)
		}
	}
}

// TestResetWaitsForItsLine: an answer that is a reset passes no sooner than one of bytes.
func TestResetWaitsForItsLine(t *testing.T) {
	p := startProxy(t, testConfig(), upstream(t, func(c *net.TCPConn) {
		_, _ = c.Read(make([]byte, 16<<10))
		_ = c.SetLinger(0)
	}))
	log := p.stick()
	c := p.tunnel(okTarget)
	if _, err := c.Write(helloBytes(t, &tls.Config{ServerName: vendorName})); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("before the line is written: %d bytes, %v", n, err)
	}
	log.release()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("when it is: %d bytes, %v", n, err)
	}
}

// TestBulkOnClosed: what the other direction closed is told as that, in bulk too: its cause is the one to tell.
func TestBulkOnClosed(t *testing.T) {
	f, _, _ := halfTunnel(t)
	c, err := dialOut()(t.Context(), netip.MustParseAddrPort(upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) })))
	if err != nil {
		t.Fatal(err)
	}
	f.src = newSocket(c)
	f.src.Close()
	if err := f.bulk(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// TestResetWithHalfARecord: a reset that a write was told is no end that came too early.
func TestResetWithHalfARecord(t *testing.T) {
	f, far := halfARecord(t)
	abort(far.Conn)
	writeUntilReset(t, f.src)
	if err := f.run(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("it ends with %v", err)
	}
}

// halfARecord is a client's direction of a tunnel that holds the beginning of a record back, and who sends.
func halfARecord(t *testing.T) (f *flow, sender *socket) {
	t.Helper()
	f, sender, _ = halfTunnel(t)
	up, down := hello.NewGuard(vendorName, 16<<10)
	if _, why := down.Feed(acceptingAnswer()); why != "" {
		t.Fatal(why)
	}
	if _, why := up.Feed([]byte{22, 3, 3, 0, 40}); why != "" || !up.Holds() {
		t.Fatal(why)
	}
	f.guard = up
	return f, sender
}
