package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// TestEventsAreLost cuts the connection that events come through, three seconds into a run of ten.
func TestEventsAreLost(t *testing.T) {
	agent := login.With(planner.PartAgent)
	exec := func(b *bench) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.signal("container", "exec_create: /bin/sh", b.object(agent).ID, "")
	}
	late := func(d time.Duration, also func(*bench)) func(*bench) {
		return func(b *bench) {
			b.mu.Lock()
			b.late = d
			b.mu.Unlock()
			if also != nil {
				also(b)
			}
		}
	}
	forget := func(b *bench) { b.mu.Lock(); b.history = nil; b.mu.Unlock() }
	forgetMore := func(b *bench) { forget(b); b.mu.Lock(); b.signal("image", "load", "x", ""); b.mu.Unlock() }
	for name, c := range map[string]struct {
		refused   time.Duration // how long no new connection is to be had
		meanwhile func(*bench)
		code      int
		says      string
		reason    string
	}{
		"heard again":           {0, nil, 0, "", "the engine repeats what was heard last: nothing is missing"},
		"refused for a while":   {3 * time.Second, nil, 0, "", "engines take their time"},
		"refused for good":      {time.Hour, nil, 122, "the engine is lost", "an engine that does not talk is lost"},
		"exec meanwhile":        {0, exec, 120, "exec_create", "what happened while nobody listened is told afterwards"},
		"exec, refused a while": {3 * time.Second, exec, 120, "exec_create", "however long that takes"},
		"slow to repeat":        {0, late(6*time.Second, nil), 0, "", "an engine that says nothing for a while has not forgotten"},
		"exec, slow to repeat":  {0, late(6*time.Second, exec), 120, "exec_create", "it is told in the end"},
		"never repeated":        {0, late(time.Hour, nil), 122, "the engine is lost", "it remembers, and does not tell: nobody waits for ever"},
		"forgotten, and slow":   {0, late(time.Hour, forget), 120, "nobody can say", "it says that it has forgotten"},
		"forgotten":             {0, forget, 120, "nobody can say", "an engine remembers 256 events, and does not say what it forgot"},
		"forgotten with more":   {0, forgetMore, 120, "nobody can say", "other events prove nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newBench(t)
				b.agentProgram(shimProgram(goodReport, runFor(10*time.Second, 0)))
				if c.code == 122 {
					b.agentProgram(shimProgram(goodReport, runFor(time.Minute, 0)))
				}
				var cut atomic.Int64
				b.before = func(_ context.Context, call string, _ int) error {
					if at := cut.Load(); call == "watch" && at != 0 && time.Since(time.Unix(0, at)) < c.refused {
						return errors.New("not now")
					}
					return nil
				}
				time.AfterFunc(3*time.Second, func() {
					cut.Store(time.Now().UnixNano())
					b.deafen()
					if c.meanwhile != nil {
						c.meanwhile(b)
					}
				})
				res := b.run(t.Context())
				if res.Code != c.code {
					t.Fatalf("code %d by %s (%v), want %d (%s)", res.Code, res.By, res.Decision, c.code, c.reason)
				}
				if c.says != "" && !strings.Contains(res.Decision.Error(), c.says) {
					t.Errorf("it says %v, not %q", res.Decision, c.says)
				}
			})
		})
	}
}

// TestEventsAreCutAtOnce cuts the connection soon after the sandbox was made: a new one that begins a little
// before what was heard last must not tell of the making, which is no part of the run.
func TestEventsAreCutAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		b.agentProgram(shimProgram(goodReport, runFor(10*time.Second, 0)))
		b.mu.Lock()
		b.signal("network", "create", b.object(login.With(planner.PartNetwork)).ID, "")
		b.signal("container", "create", b.object(login.With(planner.PartAgent)).ID, "")
		b.mu.Unlock()
		time.Sleep(overlap / 4)
		for cut := overlap / 4; cut < 2*overlap; cut += overlap / 4 {
			time.AfterFunc(cut, b.deafen)
		}
		if res := b.run(t.Context()); res.Code != 0 {
			t.Errorf("code %d by %s (%v)", res.Code, res.By, res.Decision)
		}
	})
}

// TestEventsAreCutBeforeTheFirst cuts the connection before anything has happened: all that has happened since the run
// listens is told by the next one, and where the engine may have forgotten some of it, nothing is started.
func TestEventsAreCutBeforeTheFirst(t *testing.T) {
	for others, want := range map[int]int{0: 0, remembers / 2: 0, remembers: int(CodeRefused)} {
		inBubble(t, func(t *testing.T) {
			b := newBench(t)
			watches := 0
			b.after = func(call string, _ int) {
				switch {
				case call == "watch" && watches == 0:
					watches++
					b.deafen()
					b.mu.Lock()
					for i := range others {
						b.signal("container", "create", fmt.Sprint("other", i), "")
					}
					b.mu.Unlock()
				case call == "attach "+string(login.With(planner.PartAgent)):
					<-b.hook // other calls go on
					time.Sleep(time.Second)
					b.hook <- struct{}{}
				}
			}
			res := b.run(t.Context())
			if res.Code != want || want != 0 && slices.Contains(b.calls, "start "+string(login.With(planner.PartAgent))) {
				t.Errorf("%d events of others: code %d by %s (%v), want %d", others, res.Code, res.By, res.Decision, want)
			}
		})
	}
}

// TestEventsAreCutOften cuts the connection again and again, and lets an exec happen at every moment of
// it: none is missed, and what the run did itself is not taken for somebody else's when it is repeated.
func TestEventsAreCutOften(t *testing.T) {
	for at := range 20 {
		inBubble(t, func(t *testing.T) {
			b := newBench(t)
			b.agentProgram(shimProgram(goodReport, func(ctx context.Context, p *fakeProcess, _ wire.Bundle) int {
				return runFor(10*time.Second, 0)(ctx, p, wire.Bundle{})
			}))
			for i := range 30 {
				time.AfterFunc(2*time.Second+time.Duration(i)*70*time.Millisecond, b.deafen)
			}
			meddled := at%2 == 1
			if meddled {
				time.AfterFunc(2*time.Second+time.Duration(at)*100*time.Millisecond, func() {
					b.mu.Lock()
					defer b.mu.Unlock()
					b.signal("container", "exec_create: /x", b.object(login.With(planner.PartAgent)).ID, "")
				})
			}
			res := b.run(t.Context())
			if want := map[bool]int{false: 0, true: 120}[meddled]; res.Code != want {
				t.Errorf("exec at %d: code %d (%v), want %d", at, res.Code, res.Decision, want)
			}
		})
	}
}

// TestEventIsToldTwice: what happens while an engine begins to tell, it may tell twice. What the run did once itself is
// not taken for somebody else's then, and what somebody else did is told all the same.
func TestEventIsToldTwice(t *testing.T) {
	agent, proxy := login.With(planner.PartAgent), login.With(planner.PartProxy)
	for name, c := range map[string]struct {
		happened int
		code     int
	}{"once": {1, 0}, "twice": {2, int(CodeRefused)}} {
		inBubble(t, func(t *testing.T) {
			b := newBench(t)
			b.after = func(call string, _ int) {
				switch call {
				case "attach " + string(proxy):
					b.mu.Lock()
					last := b.history[len(b.history)-1]
					if c.happened == 2 {
						b.history = append(b.history, last)
					}
					b.signals <- last
					b.mu.Unlock()
				case "attach " + string(agent):
					<-b.hook // other calls go on
					time.Sleep(time.Second)
					b.hook <- struct{}{}
				}
			}
			if res := b.run(t.Context()); res.Code != c.code {
				t.Errorf("%s: code %d by %s (%v), want %d", name, res.Code, res.By, res.Decision, c.code)
			}
		})
	}
}

// TestEar repeats signals in every order that an engine can: each is heard once.
func TestEar(t *testing.T) {
	at := time.Unix(1000, 0)
	signal := func(i int) planner.Signal {
		return planner.Signal{At: at.Add(time.Duration(i) * time.Millisecond), Type: "container", Action: "exec", ID: "a"}
	}
	twice := signal(2) // an engine may do the same thing twice in one instant
	for name, c := range map[string]struct{ first, second, want, past []planner.Signal }{
		"repeats the last":         {[]planner.Signal{signal(1), signal(2)}, []planner.Signal{signal(2), signal(3)}, []planner.Signal{signal(1), signal(2), signal(3)}, nil},
		"repeats all":              {[]planner.Signal{signal(1), signal(2)}, []planner.Signal{signal(1), signal(2), signal(3)}, []planner.Signal{signal(1), signal(2), signal(3)}, nil},
		"an older one came late":   {[]planner.Signal{signal(2)}, []planner.Signal{signal(1), signal(2)}, []planner.Signal{signal(2), signal(1)}, nil},
		"older one after the last": {[]planner.Signal{signal(1), signal(3)}, []planner.Signal{signal(1), signal(3), signal(2)}, []planner.Signal{signal(1), signal(3), signal(2)}, nil},
		"clock set back":           {[]planner.Signal{signal(1), signal(-5000)}, []planner.Signal{signal(-5000), signal(-4000)}, []planner.Signal{signal(1), signal(-5000), signal(-4000)}, nil},
		"twice at once":            {[]planner.Signal{signal(1), twice}, []planner.Signal{signal(1), twice, twice}, []planner.Signal{signal(1), twice, twice}, nil},
		"told twice as news":       {[]planner.Signal{signal(1), signal(2), signal(2)}, []planner.Signal{signal(2)}, []planner.Signal{signal(1), signal(2)}, []planner.Signal{signal(1), signal(2)}},
		"told twice when repeated": {[]planner.Signal{signal(1)}, []planner.Signal{signal(1), signal(2), signal(2)}, []planner.Signal{signal(1), signal(2)}, []planner.Signal{signal(1), signal(2)}},
		"told twice and forgotten": {[]planner.Signal{signal(1), signal(2), signal(2)}, []planner.Signal{signal(2), signal(2)}, []planner.Signal{signal(1), signal(2), signal(2)}, []planner.Signal{signal(3)}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				ctx, quit := context.WithCancel(t.Context())
				defer quit()
				connection := func(signals []planner.Signal) chan planner.Signal {
					out := make(chan planner.Signal, len(signals))
					for _, s := range signals {
						out <- s
					}
					return out
				}
				var got []planner.Signal
				e := &ear{hear: func(s planner.Signal) { got = append(got, s) }, since: at}
				e.watch = func(ctx context.Context, since time.Time) (<-chan planner.Signal, error) {
					if last := c.first[len(c.first)-1].At; since.After(last) || since.Before(at) && since.Before(last) {
						t.Errorf("listens again from %s on, and heard the last at %s, after it had begun at %s", since, last, at)
					}
					out := connection(c.second)
					context.AfterFunc(ctx, func() { close(out) })
					return out, nil
				}
				e.past = func(context.Context, time.Time) ([]planner.Signal, error) {
					if c.past == nil {
						return c.second, nil
					}
					return c.past, nil
				}
				first := connection(c.first)
				close(first)
				time.AfterFunc(time.Minute, quit)
				if err := e.follow(ctx, first, func() {}); err != nil {
					t.Fatal(err)
				}
				if !slices.EqualFunc(got, c.want, func(a, b planner.Signal) bool { return keyOf(a) == keyOf(b) }) {
					t.Errorf("heard %v, want %v", got, c.want)
				}
			})
		})
	}
}
