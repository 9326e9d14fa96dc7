package egress

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
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
