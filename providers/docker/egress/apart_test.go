package egress

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestStreamsStayApart: whoever resets, closes or falls silent at whatever moment, on either side, no connection ever
// carries a byte of another one, whose descriptor it may have got; and when the run ends in the middle of it, nothing
// stays.
func TestStreamsStayApart(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	t.Run("until the end", func(t *testing.T) {
		cfg := plainConfig()
		cfg.Limits.UploadBytes, cfg.Limits.TunnelsPerSecond = 0, 100_000
		var n atomic.Uint64
		p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) { echoUntil(c, rand.New(rand.NewPCG(seed, n.Add(1)<<1))) }))
		p.set(func() { p.dialer = dialOut() })
		var wg sync.WaitGroup
		var served atomic.Int64
		until := time.Now().Add(2 * time.Second)
		for i := range 24 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(i)<<1|1))
				for time.Now().Before(until) {
					served.Add(int64(rude(t, p.addr, rng)))
				}
			})
		}
		wg.Wait()
		t.Logf("%d connections, %d bytes came back", p.server.ids.Load(), served.Load())
		for range 8 { // these are open, and move bytes, when the run ends
			c := p.tunnel(vendorName + ":443")
			go func() { _, _ = io.Copy(io.Discard, c) }()
			go func() { _, _ = io.Copy(c, rand.NewChaCha8([32]byte{})) }()
		}
	})
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > goroutines+1 || descriptors(t) > files+2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before; %d descriptors, %d before\n%s", runtime.NumGoroutine(), goroutines, descriptors(t), files, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// echoUntil echoes, and leaves at some moment in some way.
func echoUntil(c *net.TCPConn, rng *rand.Rand) {
	back := struct{ io.Writer }{c} // without a splice of the net package's, which keeps its pipes
	if rng.IntN(3) == 0 {
		_, _ = io.CopyN(back, c, rng.Int64N(3<<20))
		if rng.IntN(2) == 0 {
			_ = c.SetLinger(0)
		}
		return
	}
	_, _ = io.Copy(back, c)
}

// rude opens a tunnel, sends a stream that no other tunnel has, and leaves at some moment in some way. It returns how
// many bytes came back, all of which must be its own.
func rude(t *testing.T, addr string, rng *rand.Rand) (n int) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return 0
	}
	c := nc.(*net.TCPConn)
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0
	}
	reset := rng.IntN(2) == 0
	leave := func(chance int) bool {
		if rng.IntN(chance) > 0 {
			return false
		}
		if reset {
			_ = c.SetLinger(0)
		}
		return true
	}
	ask := connectTo(vendorName + ":443")
	if leave(12) {
		return 0
	}
	if _, err := io.WriteString(c, ask); err != nil || leave(12) {
		return 0
	}
	answer := make([]byte, len(established))
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != established {
		if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the answer %q, %v", answer, err)
		}
		return 0
	}
	var key [32]byte
	for i := range key {
		key[i] = byte(rng.Uint32())
	}
	size := rng.IntN(1 << (8 + rng.IntN(15)))
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		_, _ = io.CopyN(c, rand.NewChaCha8(key), int64(size))
		_ = c.CloseWrite()
	}()
	defer func() { c.Close(); <-wrote }()
	own, want, got := rand.NewChaCha8(key), make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		k, err := c.Read(got)
		_, _ = own.Read(want[:k])
		if string(got[:k]) != string(want[:k]) {
			t.Errorf("after %d bytes of its own come others", n)
			return n
		}
		n += k
		if n > size {
			t.Errorf("%d bytes come back of %d", n, size)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("after %d of %d bytes: %v", n, size, err)
			}
			return n
		}
		if leave(200) {
			return n
		}
	}
}
