package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// plainConfig lets a tunnel carry anything.
func plainConfig() *Config {
	cfg := testConfig()
	cfg.Hosts[0].TLS = false
	return cfg
}

func TestHalfCloseIsPassedOn(t *testing.T) {
	p := startProxy(t, plainConfig(), upstream(t, func(c *net.TCPConn) {
		all, err := io.ReadAll(c) // ends only with the client's half-close
		if err == nil {
			_, _ = io.WriteString(c, "got "+string(all))
		}
	}))
	c := p.tunnel(vendorName + ":443")
	if _, err := io.WriteString(c, "all of it"); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); err != nil || string(b) != "got all of it" {
		t.Errorf("after a half-close: %q, %v", b, err)
	}
	e := p.await("closed", func(e Entry) bool { return e.Event == EventClosed })
	if e.Reason != reason.Closed || e.Up != 9 || e.Down != 13 {
		t.Errorf("log: %+v", e)
	}
}

func TestServersHalfCloseIsPassedOn(t *testing.T) {
	got := make(chan string, 1)
	p := startProxy(t, plainConfig(), upstream(t, func(c *net.TCPConn) {
		if err := c.CloseWrite(); err != nil {
			t.Error(err)
		}
		b, _ := io.ReadAll(c)
		got <- string(b)
	}))
	c := p.tunnel(vendorName + ":443")
	if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
		t.Fatalf("%q, %v", b, err)
	}
	if _, err := io.WriteString(c, "still here"); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != "still here" {
		t.Errorf("the server got %q after its half-close", s)
	}
}

func TestResetIsPassedOn(t *testing.T) {
	t.Run("from upstream", func(t *testing.T) {
		p := startProxy(t, plainConfig(), upstream(t, func(c *net.TCPConn) {
			buf := make([]byte, 5)
			_, _ = io.ReadFull(c, buf)
			_ = c.SetLinger(0) // close with a reset
		}))
		c := p.tunnel(vendorName + ":443")
		if _, err := io.WriteString(c, "hello"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the client sees %v; an ordinary end would make a torn answer look whole", err)
		}
		p.awaitReason(reason.Reset)
	})
	t.Run("from the client", func(t *testing.T) {
		got := make(chan error, 1)
		p := startProxy(t, plainConfig(), upstream(t, func(c *net.TCPConn) {
			_, err := io.ReadAll(c)
			got <- err
		}))
		c := p.tunnel(vendorName + ":443")
		if _, err := io.WriteString(c, "hello"); err != nil {
			t.Fatal(err)
		}
		p.awaitReason(reason.Allowed)
		_ = c.SetLinger(0)
		c.Close()
		if err := <-got; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("upstream sees %v", err)
		}
		p.awaitReason(reason.Reset)
	})
}

func TestBothDirectionsAtOnce(t *testing.T) {
	p := startProxy(t, testConfig(), vendor(t, nil))
	c := tls.Client(p.tunnel(vendorName+":443"), &tls.Config{ServerName: vendorName, InsecureSkipVerify: true})
	const size = 8 << 20
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 64<<10)
		for sent := 0; sent < size; sent += len(buf) {
			if _, err := c.Write(buf); err != nil {
				t.Errorf("after %d bytes: %v", sent, err)
				return
			}
		}
	})
	if _, err := io.CopyN(io.Discard, c, size); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

func TestUploadLimitEndsAllUploads(t *testing.T) {
	cfg := plainConfig()
	cfg.Limits.UploadBytes = 1000
	got := &lines{}
	p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(got, c) }))
	a, b := p.tunnel(vendorName+":443"), p.tunnel(vendorName+":443")
	if _, err := a.Write(make([]byte, 600)); err != nil {
		t.Fatal(err)
	}
	awaitLen(t, got, 600)
	p.awaitPassed(600, 0)
	if _, err := b.Write(make([]byte, 600)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(b); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the tunnel over the limit ends with %v", err)
	}
	l := p.await("limit", func(e Entry) bool { return e.Event == EventLimit && e.Reason == reason.UploadLimit })
	if l.Up != 600 || l.Down != 0 {
		t.Errorf("of the run it says %d up, %d down: what does not fit does not pass", l.Up, l.Down)
	}
	if resp, _ := p.ask(connectTo(vendorName + ":443")); resp.Header.Get("X-Sandplan-Reason") != string(reason.UploadLimit) {
		t.Errorf("a new tunnel after the limit: %s", resp.Status)
	}
	if got.len() != 600 {
		t.Errorf("%d bytes went up; the limit was 1000, and what does not fit stays", got.len())
	}
}

func TestTunnelLimits(t *testing.T) {
	cfg := plainConfig()
	cfg.Limits.Tunnels = 2
	p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }))
	a := p.tunnel(vendorName + ":443")
	p.tunnel(vendorName + ":443")
	resp, body := p.ask(connectTo(vendorName + ":443"))
	if resp.StatusCode != 503 || !strings.Contains(body, "try again later") {
		t.Errorf("a third tunnel of two: %s %q", resp.Status, body)
	}
	a.Close()
	p.await("closed", func(e Entry) bool { return e.Event == EventClosed })
	for len(p.server.slots) > 1 { // the slot is free right after the line
		time.Sleep(time.Millisecond)
	}
	p.tunnel(vendorName + ":443")
}

func TestTunnelsPerSecond(t *testing.T) {
	now := time.Now()
	b := newBucket(func() time.Time { return now }, 3)
	taken := func(of int) (n int) {
		for range of {
			if b.take() {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		after  time.Duration
		want   int
		reason string
	}{
		{0, 3, "as many at once"}, {0, 0, "and no more"}, {time.Second * 2 / 5, 1, "one in its time"},
		{time.Hour, 3, "a pause saves no more than a second's"},
	} {
		now = now.Add(c.after)
		if got := taken(10); got != c.want {
			t.Errorf("%s: %d, want %d", c.reason, got, c.want)
		}
	}

	cfg := plainConfig()
	cfg.Limits.TunnelsPerSecond = 1
	p := startProxy(t, cfg, "")
	refused := false
	for start := time.Now(); !refused && time.Since(start) < patience; {
		resp, _ := p.ask(connectTo("github.com:443"))
		refused = resp.StatusCode == 429
	}
	if !refused {
		t.Error("nobody is told that this is too much")
	}
}

func TestRunEndsTunnels(t *testing.T) {
	got := make(chan error, 1)
	up := upstream(t, func(c *net.TCPConn) {
		_, err := io.ReadAll(c)
		got <- err
	})
	cfg := plainConfig()
	log := &lines{}
	p := &proxy{t: t, log: log, to: up, answer: []netip.Addr{netip.MustParseAddr(vendorAddr)}}
	s, err := newServer(cfg, world{now: time.Now, lookup: p.lookup, dial: p.dialUpstream}, newLog(log, time.Now, "invocation.a", 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx, l) }()
	p.tunnel(vendorName + ":443")
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the proxy waits for a silent tunnel")
	}
	<-got
	p.awaitReason(reason.Stopping)
}

// unbounded is a connection that is closed before its deadline can be taken back.
type unbounded struct{ net.Conn }

func (unbounded) SetDeadline(time.Time) error { return net.ErrClosed }

// TestAnsweredTunnelsAreTold: a tunnel that got its 200 stands in the log, however soon it ended.
func TestAnsweredTunnelsAreTold(t *testing.T) {
	for _, tt := range []struct {
		name string
		stop bool
		want reason.Reason
	}{{"with the run", true, reason.Stopping}, {"by itself", false, reason.HelloMissing}} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			log := &lines{}
			s, err := newServer(plainConfig(), world{
				now: time.Now,
				lookup: func(context.Context, string) ([]netip.Addr, error) {
					return []netip.Addr{netip.MustParseAddr(vendorAddr)}, nil
				},
				dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
					if tt.stop {
						cancel()
					}
					_, outer := pipe()
					return outer, nil
				},
			}, newLog(log, time.Now, "invocation.a", 1<<20))
			if err != nil {
				t.Fatal(err)
			}
			client, inner := pipe()
			go func() {
				_, _ = io.WriteString(client, connectTo(okTarget))
				_, _ = io.ReadAll(client)
			}()
			s.handle(ctx, unbounded{inner})
			if es := log.entries(t); len(es) != 1 || es[0].Decision != Refuse || es[0].Reason != tt.want {
				t.Errorf("%+v", es)
			}
		})
	}
}

// TestSilenceOfHours runs in a world where time passes only when everybody waits.
func TestSilenceOfHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, inner := pipe()
		outer, vendor := pipe()
		s, err := newServer(plainConfig(), world{
			now: time.Now,
			lookup: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr(vendorAddr)}, nil
			},
			dial: func(context.Context, netip.AddrPort) (net.Conn, error) { return outer, nil },
		}, newLog(io.Discard, time.Now, "invocation.a", 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { s.handle(t.Context(), inner); close(done) }()
		go func() { _, _ = io.WriteString(client, connectTo(vendorName+":443")) }()
		if _, err := io.ReadFull(client, make([]byte, len(established))); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 5)
		for _, silence := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour} {
			time.Sleep(silence)
			start := time.Now()
			go func() { _, _ = io.WriteString(vendor, "event") }()
			if _, err := io.ReadFull(client, buf); err != nil {
				t.Fatalf("after %s of silence: %v", silence, err)
			}
			go func() { _, _ = io.WriteString(client, "reply") }()
			if _, err := io.ReadFull(vendor, buf); err != nil {
				t.Fatalf("after %s of silence, the other way: %v", silence, err)
			}
			if d := time.Since(start); d != 0 {
				t.Errorf("after %s of silence an event was held back for %s", silence, d)
			}
		}
		client.Close()
		vendor.Close()
		<-done
	})
}

// TestSilentRequestEnds: before a tunnel stands, silence is bounded.
func TestSilentRequestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, inner := pipe()
		cfg := testConfig()
		s, err := newServer(cfg, world{now: time.Now}, newLog(io.Discard, time.Now, "invocation.a", 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		done := make(chan struct{})
		go func() { s.handle(t.Context(), inner); close(done) }()
		answer, err := io.ReadAll(client)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408") {
			t.Errorf("%q, %v", answer, err)
		}
		client.Close()
		<-done
		if d := time.Since(start); d < ms(cfg.Limits.HeadMS) || d > ms(cfg.Limits.HeadMS)+2*time.Second {
			t.Errorf("it took %s", d)
		}
	})
}

// pipe is a connection in memory that comes from the agent's address.
func pipe() (net.Conn, net.Conn) {
	a, b := net.Pipe()
	return pipeConn{a}, pipeConn{b}
}

type pipeConn struct{ net.Conn }

func (pipeConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// TestIdleTunnelsAreCheap: what an idle tunnel costs is two goroutines and no buffer.
func TestIdleTunnelsAreCheap(t *testing.T) {
	const n = 200
	cfg := plainConfig()
	cfg.Limits.Tunnels, cfg.Limits.TunnelsPerSecond = 2*n, 2*n
	p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c) }))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	conns := make([]*net.TCPConn, n)
	for i := range conns {
		conns[i] = p.tunnel(vendorName + ":443")
		if _, err := io.WriteString(conns[i], "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conns[i], make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.GC() // a pool keeps its buffers over one collection
	runtime.ReadMemStats(&after)
	per := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / n
	t.Logf("%d bytes of heap per idle tunnel, client and server included", per)
	if per > 2*bufferSize {
		t.Errorf("%d bytes per idle tunnel: a buffer is held in silence", per)
	}
}
