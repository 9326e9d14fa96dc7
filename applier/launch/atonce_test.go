package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// turns is how often a test lets two things happen at once: a select of both takes either.
const turns = 40

// TestProxyAndAgentEndAtOnce: when both have ended before the engine's answers come, as on a machine that stood still,
// the engine's order decides, and not which of its answers is read first.
func TestProxyAndAgentEndAtOnce(t *testing.T) {
	const own = 5
	proxy, agent := login.With(planner.PartProxy), login.With(planner.PartAgent)
	for _, first := range []planner.Address{proxy, agent} {
		want := map[planner.Address]int{proxy: int(CodeProxy), agent: own}[first]
		for range turns {
			inBubble(t, func(t *testing.T) {
				b := newBench(t)
				over := make(chan struct{})
				b.agentProgram(shimProgram(goodReport, func(ctx context.Context, p *fakeProcess, w wire.Bundle) int {
					if first == proxy {
						<-over
						return own
					}
					return runFor(2500*time.Millisecond, own)(ctx, p, w)
				}))
				// Answers of the engine are held back until both have ended.
				still := time.Now().Add(4 * time.Second)
				b.after = func(call string, _ int) {
					if strings.HasPrefix(call, "wait ") {
						<-b.hook // other calls go on
						time.Sleep(time.Until(still))
						b.hook <- struct{}{}
					}
				}
				time.AfterFunc(2*time.Second, func() {
					b.mu.Lock()
					b.repeatLate(b.signals, time.Now(), time.Until(still)-100*time.Millisecond)
					b.mu.Unlock()
					if first == proxy {
						_ = b.fakeEngine.Kill(context.Background(), b.object(proxy).ID)
						time.AfterFunc(time.Second, func() { close(over) })
					} else {
						time.AfterFunc(time.Second, func() { _ = b.fakeEngine.Kill(context.Background(), b.object(proxy).ID) })
					}
				})
				if res := b.run(t.Context()); res.Code != want {
					t.Errorf("%s ended first: code %d by %s (%v), want %d", first, res.Code, res.By, res.Decision, want)
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}

// TestBoundIsUsedUpAtTheEnd: a command whose tunnel is cut because a bound is used up may end at once, and then the
// engine tells of its end as early as the proxy of the bound.
func TestBoundIsUsedUpAtTheEnd(t *testing.T) {
	for _, before := range []time.Duration{0, time.Millisecond} { // the end of the line
		for range turns {
			inBubble(t, func(t *testing.T) {
				b := newBench(t)
				b.agentProgram(shimProgram(goodReport, runFor(3*time.Second-before, 1)))
				b.programs[login.With(planner.PartProxy)] = func(p *fakeProcess) int {
					l := wire.Hold(p.stdin, wire.Silence)
					ch, _ := l.Challenge(context.Background())
					_ = wire.WriteReady(p.stdout, goodReady(ch.Nonce))
					line := time.NewTimer(3 * time.Second)
					<-line.C
					fmt.Fprint(p.stdout, `{"seq":1,"event":"limit","reason":"upload_limit"}`+"\n"+`{"seq":2,"event":"end"}`+"\n")
					<-l.Done()
					return 0
				}
				if res := b.run(t.Context()); res.Code != int(CodeBound) || !strings.Contains(res.Decision.Error(), "limits.upload") {
					t.Errorf("%s before the line: code %d by %s (%v)", before, res.Code, res.By, res.Decision)
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}

// TestEndIsToldLate: the engine's events come a while after its other answers. They are waited for, and what was done
// to the command in its last moment counts.
func TestEndIsToldLate(t *testing.T) {
	for name, meddled := range map[string]bool{"alone": false, "meddled with": true} {
		inBubble(t, func(t *testing.T) {
			b := newBench(t)
			b.agentProgram(shimProgram(goodReport, runFor(3*time.Second, 0)))
			time.AfterFunc(2500*time.Millisecond, func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.repeatLate(b.signals, time.Now(), 6*time.Second)
				if meddled {
					b.signal("container", "exec_create: /x", b.object(login.With(planner.PartAgent)).ID, "")
				}
			})
			res := b.run(t.Context())
			if want := map[bool]int{false: 0, true: int(CodeDrift)}[meddled]; res.Code != want || !meddled && res.Unsettled != nil {
				t.Errorf("%s: code %d by %s (%v), unsettled %v, want %d", name, res.Code, res.By, res.Decision, res.Unsettled, want)
			}
		})
	}
}

// TestEventsAreLostAtTheEnd: the command has ended, and the engine never tells what was done to it before: its end
// stands, and somebody is told that not all is known.
func TestEventsAreLostAtTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		const ends = engineLimit + 5*time.Second
		b.agentProgram(shimProgram(goodReport, runFor(ends, 3)))
		b.before = func(_ context.Context, call string, n int) error {
			if call == "watch" && n > 5 {
				return errors.New("not now")
			}
			return nil
		}
		time.AfterFunc(ends-engineLimit+500*time.Millisecond, b.deafen)
		res := b.run(t.Context())
		if res.Code != 3 || res.By != ByAgent || res.Unsettled == nil || !strings.Contains(res.Unsettled.Error(), "not known in full") {
			t.Errorf("code %d by %s (%v), unsettled %v", res.Code, res.By, res.Decision, res.Unsettled)
		}
	})
}

// TestDriftWhileTheLinkIsLost: while the engine says nothing of the command's end, somebody meddles, and the command
// ends by itself meanwhile. What was found counts, whatever the engine says in the end.
func TestDriftWhileTheLinkIsLost(t *testing.T) {
	agent := login.With(planner.PartAgent)
	for name, c := range map[string]struct {
		meddle func(b *bench)
		says   error // the engine, of the command, in the end
		code   int
	}{
		"nobody meddles":       {func(*bench) {}, nil, 7},
		"nobody, engine fails": {func(*bench) {}, errors.New("not now"), 7},
		"a look finds it":      {func(b *bench) { b.tamper(agent) }, nil, int(CodeDrift)},
		"an event tells it": {func(b *bench) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.signal("container", "exec_create: /x", b.object(agent).ID, "")
		}, errors.New("not now"), int(CodeDrift)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newBench(t)
				b.agentProgram(shimProgram(goodReport, runFor(5*time.Second, 7)))
				began := time.Now()
				time.AfterFunc(3*time.Second, func() { c.meddle(b) })
				const broken = 2300 * time.Millisecond // no look is at that moment
				b.before = func(_ context.Context, call string, _ int) error {
					switch {
					case call == "wait "+string(agent) && time.Since(began) < broken:
						<-time.After(broken - time.Since(began))
						return errors.New("connection reset")
					case call == "process "+string(agent) && time.Since(began) == broken:
						<-time.After(8 * time.Second)
						return c.says
					}
					return nil
				}
				if res := b.run(t.Context()); res.Code != c.code {
					t.Errorf("code %d by %s (%v), want %d", res.Code, res.By, res.Decision, c.code)
				}
			})
		})
	}
}

// TestDriftComesFirst: what changed the sandbox is told although something else was found before.
func TestDriftComesFirst(t *testing.T) {
	m := &meddling{found: make(chan *Decision, 1)}
	for _, code := range []Code{CodeEngine, CodeDrift, CodeProxy} {
		m.tell(&Decision{Code: code})
	}
	if d := m.told(); d == nil || d.Code != CodeDrift {
		t.Errorf("told %v", d)
	}
}
