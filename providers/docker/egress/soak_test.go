package egress

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Ports of the soak's vendor: at most of them a server echoes, at these one resets what is sent to it, or says
// that it has nothing to say and listens on.
const (
	soakResets = 8443
	soakQuiet  = 8444
)

// TestSoak keeps idle tunnels open while others half-close, reset, are reset, carry bulk to readers that are slow,
// begin with a hello, a second one or a wrong one, or are refused. Nothing may grow meanwhile, and in the end it wants everything back: goroutines,
// descriptors, memory. SANDPLAN_SOAK=10m makes it long, with 5,000 idle tunnels (three descriptors each).
func TestSoak(t *testing.T) {
	length, idle := 500*time.Millisecond, 50
	if s := os.Getenv("SANDPLAN_SOAK"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		length, idle = d, 5000
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		if need := uint64(3*idle + 1000); limit.Cur < need {
			t.Fatalf("%d idle tunnels need %d descriptors, and there may be %d: ulimit -n %d", idle, need, limit.Cur, need)
		}
	}
	before := held(t)
	addr, stop := startSoak(t, idle)
	conns := make([]*net.TCPConn, idle)
	for i := range conns {
		if conns[i] = soakTunnel(t, addr, 443); conns[i] == nil {
			t.Fatalf("tunnel %d of %d did not open", i, idle)
		}
	}
	for i, c := range conns { // what its two directions need is there only when something has passed
		soakEchoes(t, i, c)
	}
	during := held(t)
	done := soakTraffic(t, addr, length)
	// What 16 clients are at, with what is only being taken down; a leak in any of thousands of tunnels is more.
	busy := holding{goroutines: 500, descriptors: 500, heap: 64 << 20}
	for running := true; running; {
		select {
		case n := <-done:
			t.Logf("%d connections in %s beside %d idle tunnels, which hold %+v", n, length, idle, during)
			running = false
		case <-time.After(length / 10):
			settle(t, "in the middle of the traffic", during, busy)
		}
	}
	rest := holding{goroutines: 2, descriptors: 4, heap: 8 << 20}
	settle(t, "after the traffic", during, rest)
	for i, c := range conns {
		soakEchoes(t, i, c)
		c.Close()
	}
	stop()
	settle(t, "after the end", before, rest)
}

// soakEchoes sends a byte through an idle tunnel and back.
func soakEchoes(t *testing.T, i int, c *net.TCPConn) {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); err != nil {
		t.Errorf("idle tunnel %d: %v", i, err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Errorf("idle tunnel %d: %v", i, err)
	}
}

// soakTraffic is that of 16 clients. It tells how many connections they have made when all of them are done.
func soakTraffic(t *testing.T, addr string, length time.Duration) <-chan int64 {
	var n atomic.Int64
	var wg sync.WaitGroup
	end := time.Now().Add(length)
	for w := range 16 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for time.Now().Before(end) && !t.Failed() {
				soakOnce(t, addr, r)
				n.Add(1)
			}
		})
	}
	done := make(chan int64, 1)
	go func() { wg.Wait(); done <- n.Load() }()
	return done
}

func startSoak(t *testing.T, idle int) (addr string, stop func()) {
	echo, stopEcho := startEcho(t)
	odd, stopOdd := startOdd(t)
	cfg := plainConfig()
	for _, port := range []int{soakResets, soakQuiet, soakSecure} {
		h := cfg.Hosts[0]
		h.Port, h.TLS = port, port == soakSecure
		cfg.Hosts = append(cfg.Hosts, h)
	}
	cfg.Limits.HelloMS = 10 * patience.Milliseconds() // a client who is slow is none that says nothing
	cfg.Limits.Tunnels, cfg.Limits.TunnelsPerSecond, cfg.Limits.UploadBytes, cfg.Limits.LogBytes = idle+1000, 1<<20, 0, 1<<40
	dial, to := dialOut(), netip.MustParseAddrPort(echo)
	s, err := newServer(cfg, world{
		now: time.Now,
		lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(vendorAddr)}, nil
		},
		dial: func(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
			if at.Port() != 443 {
				return dial(ctx, odd[at.Port()])
			}
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
		stopOdd()
	}
}

// startOdd are the servers that do not echo, by port.
func startOdd(t *testing.T) (at map[uint16]netip.AddrPort, stop func()) {
	t.Helper()
	at = map[uint16]netip.AddrPort{}
	var listeners []net.Listener
	for port, serve := range map[uint16]func(*net.TCPConn){
		soakResets: func(c *net.TCPConn) {
			_, _ = io.ReadFull(c, make([]byte, 1))
			_ = c.SetLinger(0)
		},
		soakQuiet: func(c *net.TCPConn) {
			_ = c.CloseWrite()
			_, _ = io.Copy(io.Discard, struct{ io.Reader }{c})
		},
		soakSecure: soakVendor(t),
	} {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
		at[port] = l.Addr().(*net.TCPAddr).AddrPort()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					serve(c.(*net.TCPConn))
				}()
			}
		}()
	}
	return at, func() {
		for _, l := range listeners {
			l.Close()
		}
	}
}

// soakTunnel opens one, with a deadline that only a client who waits in vain meets: where the machine drops
// packets on loopback, and some do under such a load, TCP itself waits for a minute before it tries again.
func soakTunnel(t *testing.T, addr string, port int) *net.TCPConn {
	d := net.Dialer{KeepAlive: -1}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return nil
	}
	if err := c.SetDeadline(time.Now().Add(10 * patience)); err != nil {
		t.Error(err)
		return nil
	}
	if _, err := io.WriteString(c, connectTo(vendorName+":"+strconv.Itoa(port))); err != nil {
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
	port := []int{443, 443, 443, 443, soakResets, soakQuiet, soakSecure, soakSecure}[r.IntN(8)]
	c := soakTunnel(t, addr, port)
	if c == nil {
		return
	}
	defer c.Close()
	switch port {
	case soakResets:
		_, _ = c.Write([]byte("x"))
		if _, err := io.Copy(io.Discard, c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a reset arrives as %v", err)
		}
	case soakQuiet:
		if n, err := io.Copy(io.Discard, c); n != 0 || err != nil {
			t.Errorf("%d bytes of a server that has nothing to say: %v", n, err)
		}
		if _, err := c.Write(make([]byte, r.IntN(64<<10))); err != nil {
			t.Errorf("to a server that has nothing to say: %v", err)
		}
	case soakSecure:
		soakTLS(t, c, r)
	default:
		soakEcho(t, c, r)
	}
}

// soakEcho sends something to a server that sends it back, and takes it in one way or another.
func soakEcho(t *testing.T, c *net.TCPConn, r *rand.Rand) {
	size := r.IntN(64 << 10)
	if r.IntN(20) == 0 {
		soakBulk(t, c, 4<<20+size)
		return
	}
	if _, err := c.Write(make([]byte, size)); err != nil {
		t.Error(err)
		return
	}
	switch r.IntN(5) {
	case 0: // the whole way
		_ = c.CloseWrite()
		if n, err := io.Copy(io.Discard, c); err != nil || n != int64(size) {
			t.Errorf("%d of %d bytes came back: %v", n, size, err)
		}
	case 1: // reset in the middle
		_ = c.SetLinger(0)
	case 3: // reset behind an end
		_ = c.CloseWrite()
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

// soakBulk is more than all buffers on the way there and back can hold, to a reader that takes nothing for a
// while: everybody on the way waits for it. It takes pipes, too.
func soakBulk(t *testing.T, c *net.TCPConn, size int) {
	sent := make(chan error, 1)
	go func() {
		chunk := make([]byte, 64<<10)
		for left := size; left > 0; left -= len(chunk) {
			chunk = chunk[:min(len(chunk), left)]
			if _, err := c.Write(chunk); err != nil {
				sent <- err
				return
			}
		}
		sent <- c.CloseWrite()
	}()
	time.Sleep(50 * time.Millisecond)
	n, err := io.Copy(io.Discard, struct{ io.Reader }{c})
	if serr := <-sent; err != nil || serr != nil || n != int64(size) {
		t.Errorf("%d of %d bytes came back: %v, %v", n, size, err, serr)
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

// settle waits until no more is held than before, give or take what pools keep and what is going on.
func settle(t *testing.T, when string, want, more holding) {
	t.Helper()
	var got holding
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		got = held(t)
		if got.goroutines <= want.goroutines+more.goroutines && got.descriptors <= want.descriptors+more.descriptors && got.heap <= want.heap+more.heap {
			return
		}
	}
	t.Errorf("%s %+v is held, and before %+v", when, got, want)
}
