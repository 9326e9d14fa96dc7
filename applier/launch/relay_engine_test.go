package launch_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// relay stands between sandplan and the engine, and cuts the engine's events, or everything.
type relay struct {
	socket, engine string

	mu     sync.Mutex
	links  map[*link]bool
	held   bool // requests for events are cut before the engine gets them
	events int  // how many it has passed on
}

// link is one connection of a client, and its counterpart.
type link struct {
	client, engine *net.UnixConn
	events         bool
}

func (l *link) cut() { _ = l.client.Close(); _ = l.engine.Close() }

func newRelay(t *testing.T) *relay {
	t.Helper()
	dir, err := os.MkdirTemp("", "sprelay") // the path of a unix socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{socket: filepath.Join(dir, "s"), engine: dockertest.Socket(t), links: map[*link]bool{}}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: r.socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = ln.Close()
		r.cut(func(*link) bool { return true })
		_ = os.RemoveAll(dir)
	})
	go func() {
		for {
			client, err := ln.AcceptUnix()
			if err != nil {
				return
			}
			engine, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: r.engine, Net: "unix"})
			if err != nil {
				_ = client.Close()
				continue
			}
			l := &link{client: client, engine: engine}
			r.mu.Lock()
			r.links[l] = true
			r.mu.Unlock()
			go r.pass(l)
		}
	}()
	return r
}

// pass passes on what both sides send, and the end of what either sends.
func (r *relay) pass(l *link) {
	var both sync.WaitGroup
	both.Go(func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := l.client.Read(buf)
			if n > 0 && !r.asked(l, buf[:n]) {
				l.cut()
				return
			}
			if _, failed := l.engine.Write(buf[:n]); failed != nil || err != nil {
				_ = l.engine.CloseWrite()
				return
			}
		}
	})
	both.Go(func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := l.engine.Read(buf)
			if _, failed := l.client.Write(buf[:n]); failed != nil || err != nil {
				_ = l.client.CloseWrite()
				return
			}
		}
	})
	both.Wait()
	l.cut()
	r.mu.Lock()
	delete(r.links, l)
	r.mu.Unlock()
}

// asked looks at what a client sends, and reports whether the engine is to get it.
func (r *relay) asked(l *link, b []byte) bool {
	if !bytes.HasPrefix(b, []byte("GET ")) || !bytes.Contains(b, []byte("/events?")) {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l.events = true
	if !r.held {
		r.events++
	}
	return !r.held
}

func (r *relay) cut(which func(*link) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		if which(l) {
			l.cut()
		}
	}
}

func (r *relay) cutEvents() { r.cut(func(l *link) bool { return l.events }) }

// hold lets no request for events through, or lets them through again.
func (r *relay) hold(held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = held
}

func (r *relay) streams() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events
}

// TestRealEventsCut cuts the stream of the engine's events in the middle of a run: the run hears it again
// with nothing missed, or it is stopped.
func TestRealEventsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 19, map[string][]string{"job": {"say=up", "sleep=1h"}, "short": {"say=up", "await=/work/go", "exit=7"}}, nil)
	r := newRelay(t)
	w.env = append(w.env, "DOCKER_HOST=unix://"+r.socket)
	w.apply()

	t.Run("again and again", func(t *testing.T) {
		// An engine remembers 256 events: where others make more than that while nobody listens, the run has
		// to be stopped, and it is tried once more.
		for try := 1; ; try++ {
			cmd, _, stderr := w.running(t, "invocation.short")
			for range 5 {
				before := r.streams()
				r.cutEvents()
				within(t, soon, "it listens again", func() bool {
					return r.streams() > before || bytes.Contains(stderr.bytes(), []byte("sandplan:"))
				})
			}
			if err := os.WriteFile(filepath.Join(w.tree, "go"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if err := os.Remove(filepath.Join(w.tree, "go")); err != nil {
				t.Fatal(err)
			}
			code := cmd.ProcessState.ExitCode()
			if code == 120 && strings.Contains(string(stderr.bytes()), "events were lost") && try < 5 {
				w.must("apply", "-auto-approve")
				continue
			}
			if code != 7 {
				t.Errorf("exit code %d, want the agent's own\n%s", code, stderr.bytes())
			}
			return
		}
	})

	for _, c := range []struct {
		name  string
		do    func()
		codes []int // on a busy machine, what is noticed second may be told first
	}{
		{"meddled with while nobody heard", func() {
			r.hold(true)
			r.cutEvents()
			// A command that is over at once leaves no trace that a look could find.
			_, _ = w.docker("exec", "-u", "0", w.container("invocation.job.agent"), "/agent", "say=owned")
			r.hold(false)
		}, []int{120, 122}},
		{"never again", func() { r.hold(true); r.cutEvents() }, []int{122, 120}},
		{"with everything else", func() { r.cut(func(*link) bool { return true }) }, []int{122, 123, 137}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.must("apply", "-auto-approve")
			cmd, _, stderr := w.running(t, "invocation.job")
			agent := w.container("invocation.job.agent")
			began := time.Now()
			c.do()
			within(t, 2*soon, "the agent is stopped", w.stopped(agent))
			_ = cmd.Wait()
			code := cmd.ProcessState.ExitCode()
			t.Logf("ended with %d after %s", code, time.Since(began))
			lost := code == 120 && bytes.Contains(stderr.bytes(), []byte("events were lost")) // others made too many meanwhile
			if !slices.Contains(c.codes, code) && !lost {
				t.Errorf("exit code %d, want one of %v\n%s", code, c.codes, stderr.bytes())
			}
		})
		r.hold(false)
	}
}
