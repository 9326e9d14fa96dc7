package egress

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestSoak keeps idle tunnels open while others half-close, reset, read slowly or are refused, and
// then wants everything back: goroutines, descriptors, memory. SANDPLAN_SOAK=10m makes it long, with
// 5,000 idle tunnels, or as many as there are descriptors for (three each).
func TestSoak(t *testing.T) {
	length, idle := 500*time.Millisecond, 50
	if s := os.Getenv("SANDPLAN_SOAK"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		length, idle = d, int(min(5000, (limit.Cur-1000)/3))
		t.Logf("%d idle tunnels for %s", idle, length)
	}
	before := held(t)
	addr, stop := startSoak(t, idle)
	conns := make([]*net.TCPConn, idle)
	for i := range conns {
		conns[i] = soakTunnel(t, addr)
		if conns[i] == nil {
			t.Fatalf("tunnel %d of %d did not open; is there a limit on descriptors?", i, idle)
		}
	}
	during := held(t)
	var wg sync.WaitGroup
	end := time.Now().Add(length)
	for w := range 16 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for time.Now().Before(end) {
				soakOnce(t, addr, r)
			}
		})
	}
	wg.Wait()
	settle(t, "after the traffic", during)
	for i, c := range conns {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Errorf("idle tunnel %d: %v", i, err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Errorf("idle tunnel %d: %v", i, err)
		}
		c.Close()
	}
	stop()
	settle(t, "after the end", before)
}

func startSoak(t *testing.T, idle int) (addr string, stop func()) {
	echo, stopEcho := startEcho(t)
	cfg := plainConfig()
	cfg.Limits.Tunnels, cfg.Limits.TunnelsPerSecond, cfg.Limits.UploadBytes, cfg.Limits.LogBytes = idle+1000, 1<<20, 0, 1<<40
	dial, to := dialOut(), netip.MustParseAddrPort(echo)
	s, err := newServer(cfg, world{
		now: time.Now,
		lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(vendorAddr)}, nil
		},
		dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return dial(ctx, to)
		},
	}, newLog(io.Discard, time.Now, "invocation.a", cfg.Limits.LogBytes))
	if err != nil {
		t.Fatal(err)
	}
	l, err := listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx, l) }()
	return l.Addr().String(), func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		stopEcho()
	}
}

func soakTunnel(t *testing.T, addr string) *net.TCPConn {
	d := net.Dialer{KeepAlive: -1}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return nil
	}
	if _, err := io.WriteString(c, connectTo(vendorName+":443")); err != nil {
		t.Error(err)
		return nil
	}
	if _, err := io.ReadFull(c, make([]byte, len(established))); err != nil {
		t.Error(err)
		return nil
	}
	return c.(*net.TCPConn)
}

// soakOnce is one connection of a client that may do anything.
func soakOnce(t *testing.T, addr string, r *rand.Rand) {
	if r.IntN(5) == 0 { // refused, or torn
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		requests := []string{connectTo("github.com:443"), "GET / HTTP/1.1\r\n\r\n", "CONN", ""}
		_, _ = io.WriteString(c, requests[r.IntN(len(requests))])
		if r.IntN(2) == 0 {
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
		}
		c.Close()
		return
	}
	c := soakTunnel(t, addr)
	if c == nil {
		return
	}
	defer c.Close()
	size := r.IntN(64 << 10)
	if _, err := c.Write(make([]byte, size)); err != nil {
		t.Error(err)
		return
	}
	switch r.IntN(4) {
	case 0: // the whole way
		_ = c.CloseWrite()
		if n, err := io.Copy(io.Discard, c); err != nil || n != int64(size) {
			t.Errorf("%d of %d bytes came back: %v", n, size, err)
		}
	case 1: // reset in the middle
		_ = c.SetLinger(0)
	case 2: // a slow reader, who leaves before the end
		for range min(5, size/1024) {
			time.Sleep(time.Millisecond)
			if _, err := io.ReadFull(c, make([]byte, 1024)); err != nil {
				t.Error(err)
				break
			}
		}
	}
}

// holding is what a process has in its hands.
type holding struct {
	goroutines, descriptors int
	heap                    uint64
}

func held(t *testing.T) holding {
	t.Helper()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return holding{goroutines: runtime.NumGoroutine(), descriptors: len(fds), heap: m.HeapAlloc}
}

// settle waits until no more is held than before, give or take what pools keep.
func settle(t *testing.T, when string, want holding) {
	t.Helper()
	var got holding
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		got = held(t)
		if got.goroutines <= want.goroutines+2 && got.descriptors <= want.descriptors+4 && got.heap <= want.heap+8<<20 {
			return
		}
	}
	t.Errorf("%s %+v is held, and before %+v", when, got, want)
}
