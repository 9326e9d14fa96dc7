package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// failing is a listener whose Accept fails a number of times.
type failing struct {
	net.Listener
	mu    sync.Mutex
	left  int
	err   error
	times []time.Time
}

func (f *failing) Accept() (net.Conn, error) {
	f.mu.Lock()
	f.times = append(f.times, time.Now())
	fail := f.left > 0
	f.left--
	f.mu.Unlock()
	if fail {
		return nil, f.err
	}
	return f.Listener.Accept()
}

func TestAcceptBacksOff(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &failing{Listener: l, left: 4, err: &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}}
	log := &lines{}
	p := &proxy{t: t, log: log, addr: l.Addr().String()}
	s, err := newServer(testConfig(), world{now: time.Now}, newLog(log, time.Now, "invocation.a", 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx, f) }()
	if resp, _ := p.ask(connectTo("github.com:443")); resp.StatusCode != 403 {
		t.Errorf("after the trouble: %s", resp.Status)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	var pauses []time.Duration
	for i := 1; i < 5; i++ {
		pauses = append(pauses, f.times[i].Sub(f.times[i-1]))
	}
	if pauses[0] < minPause || pauses[3] < 8*minPause {
		t.Errorf("pauses %v; without them a lack of descriptors burns a core", pauses)
	}
	n := 0
	for _, e := range log.entries(t) {
		if e.Event == EventTrouble {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d lines about one trouble", n)
	}
}

func TestAcceptFailsForGood(t *testing.T) {
	s, err := newServer(testConfig(), world{now: time.Now}, newLog(io.Discard, time.Now, "", 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := s.serve(context.Background(), l); err == nil {
		t.Error("a closed listener is served")
	}
}

// once is a listener that accepts one connection, and then fails for good.
type once struct {
	net.Listener
	fail     chan struct{}
	accepted bool
}

func (o *once) Accept() (net.Conn, error) {
	if !o.accepted {
		o.accepted = true
		return o.Listener.Accept()
	}
	<-o.fail
	return nil, net.ErrClosed
}

// TestAcceptFailsWithTunnelsOpen: a proxy that can accept nothing any more ends, and waits for no tunnel.
func TestAcceptFailsWithTunnelsOpen(t *testing.T) {
	p := &proxy{t: t, log: &lines{}, to: upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) })}
	p.answer = []netip.Addr{netip.MustParseAddr(vendorAddr)}
	s, err := newServer(plainConfig(), world{now: time.Now, lookup: p.lookup, dial: p.dialUpstream}, newLog(p.log, time.Now, "invocation.a", 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p.addr = l.Addr().String()
	o := &once{Listener: l, fail: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- s.serve(context.Background(), o) }()
	c := p.tunnel(okTarget)
	close(o.fail)
	if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the tunnel goes on")
	}
	select {
	case err := <-done:
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("serve: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("serve waits for a tunnel")
	}
	p.awaitReason(reason.Stopping)
	// Who was accepted in the last moment is closed as well.
	late, other := sockets(t)
	s.open.add(late)
	if _, err := io.ReadAll(other); err != nil {
		t.Errorf("a connection behind the end: %v", err)
	}
}
