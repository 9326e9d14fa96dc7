package egress

import (
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// TestBulkArrivesWhole moves more than the relay copies before it splices, with a pause in between
// that sends it back to copying.
func TestBulkArrivesWhole(t *testing.T) {
	const size = 24 << 20
	sums := make(chan string, 1)
	p := startProxy(t, plainConfig(), upstream(t, func(c *net.TCPConn) {
		src, sent := rand.NewChaCha8([32]byte{1}), sha256.New()
		w := io.MultiWriter(c, sent)
		_, _ = io.CopyN(w, src, size/2)
		time.Sleep(bulkWithin + 200*time.Millisecond)
		_, _ = io.CopyN(w, src, size/2)
		sums <- string(sent.Sum(nil))
	}))
	c := p.tunnel(vendorName + ":443")
	got := sha256.New()
	n, err := io.Copy(got, c)
	if err != nil || n != size || string(got.Sum(nil)) != <-sums {
		t.Errorf("%d of %d bytes, or others: %v", n, size, err)
	}
	c.Close()
	if e := p.await("closed", func(e Entry) bool { return e.Event == EventClosed }); e.Down != size {
		t.Errorf("log: %+v", e)
	}
}

// TestBulkStaysSilentForAsLongAsItLikes: the bound that ends a splice never ends a tunnel.
func TestBulkStaysSilentForAsLongAsItLikes(t *testing.T) {
	p := startProxy(t, plainConfig(), upstream(t, func(c *net.TCPConn) {
		_, _ = c.Write(make([]byte, 4<<20))
		time.Sleep(3 * bulkWithin / 2)
		_, _ = io.WriteString(c, "end")
	}))
	c := p.tunnel(vendorName + ":443")
	if n, err := io.Copy(io.Discard, c); err != nil || n != 4<<20+3 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestBulkKeepsTheBudget(t *testing.T) {
	cfg := plainConfig()
	cfg.Limits.UploadBytes = 20 << 20
	got := &lines{}
	p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(countOnly{got}, c) }))
	c := p.tunnel(vendorName + ":443")
	_, err := io.CopyN(c, rand.NewChaCha8([32]byte{}), 64<<20)
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("an upload over its budget ends with %v", err)
	}
	e := p.await("closed", func(e Entry) bool { return e.Event == EventClosed })
	if e.Reason != reason.UploadLimit || e.Up > cfg.Limits.UploadBytes || e.Up < cfg.Limits.UploadBytes-2*bufferSize {
		t.Errorf("log: %+v", e)
	}
	if n := p.server.up.used.Load(); n > cfg.Limits.UploadBytes+bufferSize {
		t.Errorf("%d bytes are counted", n)
	}
}

type countOnly struct{ l *lines }

func (c countOnly) Write(p []byte) (int, error) { return len(p), nil }

func TestReserveNeverSpends(t *testing.T) {
	b := &budget{limit: 64 << 20}
	held := []int64{}
	for range 50 {
		n := b.reserve(pipeSize)
		if n < bulkBytes { // as bulk does
			b.giveBack(n)
			continue
		}
		held = append(held, n)
	}
	if !b.take(bufferSize) {
		t.Errorf("reserves of %v look used up to a tunnel that copies", held)
	}
	for _, n := range held {
		b.giveBack(n)
	}
	if len(held) < 8 || b.used.Load() != bufferSize || b.spent() {
		t.Errorf("%d bytes are used after %d reserves were given back", b.used.Load(), len(held))
	}
	last := b.reserve(pipeSize)
	if b.take(b.limit) || !b.spent() || b.take(1) {
		t.Error("a budget that is used up lets something through")
	}
	b.giveBack(b.limit) // more than what others had in reserve by then
	if n := b.reserve(pipeSize); n != 0 || last != pipeSize {
		t.Errorf("of a budget that is used up %d bytes are in reserve", n)
	}
}

// TestBulkGivesItsPipesBack: what a direction needs while it carries much is gone when it does not.
func TestBulkGivesItsPipesBack(t *testing.T) {
	goOn := make(chan struct{})
	before := pipes(t)
	p := startProxy(t, plainConfig(), upstream(t, func(c *net.TCPConn) {
		for range 3 {
			_, _ = c.Write(make([]byte, 8<<20))
			<-goOn
		}
		_, _ = io.Copy(c, c)
	}))
	c := p.tunnel(vendorName + ":443")
	for i := range 3 {
		if _, err := io.CopyN(io.Discard, c, 8<<20); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(patience); p.server.cores.busy.Load() != 0 || pipes(t) > before; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d pipes after %d bursts, %d before; splicing: %d", pipes(t), i+1, before, p.server.cores.busy.Load())
			}
		}
		goOn <- struct{}{}
	}
	if _, err := io.WriteString(c, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// pipes are the descriptors of this process that are ends of pipes.
func pipes(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, "pipe:") {
			n++
		}
	}
	return n
}

// TestBulkEndsWithItsBound: near the end of a budget copying takes over, with no bound on its silence left behind.
func TestBulkEndsWithItsBound(t *testing.T) {
	cfg := plainConfig()
	cfg.Limits.UploadBytes = 12 << 20
	p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) {
		_, _ = io.CopyN(io.Discard, c, 8<<20)
		_, _ = io.Copy(c, c)
	}))
	c := p.tunnel(vendorName + ":443")
	if _, err := c.Write(make([]byte, 8<<20)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(bulkWithin + 300*time.Millisecond)
	if _, err := io.WriteString(c, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Errorf("after a second of silence: %v", err)
	}
}

// TestStalledHoldLittleOfTheBudget: what is held for tunnels whose server reads no more looks used up to the others,
// and must not end a run long before its bound.
func TestStalledHoldLittleOfTheBudget(t *testing.T) {
	const tunnels = 4
	leave, cfg := make(chan struct{}), plainConfig()
	cfg.Limits.UploadBytes = 256 << 20 // more than the kernel's buffers take
	p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) {
		_ = c.SetReadBuffer(64 << 10)
		_, _ = io.CopyN(io.Discard, struct{ io.Reader }{c}, 2<<20)
		<-leave
	}))
	var conns []net.Conn
	for range tunnels {
		c := p.tunnel(vendorName + ":443")
		if err := c.SetWriteDeadline(time.Now().Add(bulkWithin / 2)); err != nil {
			t.Fatal(err)
		}
		_, err := io.CopyN(struct{ io.Writer }{c}, rand.NewChaCha8([32]byte{}), 1<<30)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a server that does not read takes everything: %v", err)
		}
		conns = append(conns, c)
	}
	used := p.server.up.used.Load()
	close(leave)
	for _, c := range conns {
		abort(c)
	}
	var passed int64
	p.await("closed", func(Entry) bool {
		n := 0
		passed = 0
		for _, e := range p.log.entries(t) {
			if e.Event == EventClosed {
				n, passed = n+1, passed+e.Up
			}
		}
		return n == tunnels
	})
	if held := used - passed; held > tunnels*(pipeSize+bufferSize) {
		t.Errorf("%d bytes are held beyond the %d that passed", held, passed)
	}
	if up, _ := p.server.passed(); up != passed {
		t.Errorf("a limit would say that %d bytes have passed, of %d", up, passed)
	}
}

// TestBulkLosesNothingUntold: a write whose wait ends, for whatever reason, leaves bytes in the pipe. That is a failure,
// and no direction that slows down, which would go on without them.
func TestBulkLosesNothingUntold(t *testing.T) {
	src, from := sockets(t)
	dst, _ := sockets(t)
	s, err := newSplicer(dst, src)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if _, err := from.Write([]byte("lost")); err != nil {
		t.Fatal(err)
	}
	if err := dst.SetWriteDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.move(pipeSize); n != 0 || !errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v", n, err)
	}
}
