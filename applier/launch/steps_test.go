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

// worldChange changes something, and reports whether there was something to change.
type worldChange func(b *bench) bool

func tampering(a planner.Address) worldChange {
	return func(b *bench) bool { b.tamper(a); return true }
}

// replacing puts an equal object with another ID in an object's place.
func replacing(a planner.Address) worldChange {
	return func(b *bench) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.object(a).ID = "imposter"
		return true
	}
}

// TestWorldChangesAfterEachCall changes one thing after each call of the engine in turn: whenever it
// happens, the run must end as refused or stopped, never as a success, and unfed unless the agent ran before.
func TestWorldChangesAfterEachCall(t *testing.T) {
	for name, change := range map[string]worldChange{
		"agent changed":    tampering(login.With(planner.PartAgent)),
		"proxy changed":    tampering(login.With(planner.PartProxy)),
		"network changed":  tampering(login.With(planner.PartNetwork)),
		"uplink changed":   tampering(planner.AddrUplink),
		"network replaced": replacing(login.With(planner.PartNetwork)),
		"uplink replaced":  replacing(planner.AddrUplink),
		"agent replaced":   replacing(login.With(planner.PartAgent)),
		"endpoint added": func(b *bench) bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.object(login.With(planner.PartNetwork)).Extra = []planner.Extra{{Path: "Containers", Detail: "intruder"}}
			return true
		},
		"proxy restarted": func(b *bench) bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			p := b.running[b.object(login.With(planner.PartProxy)).ID]
			if p == nil || p.process.PID == 0 {
				return false
			}
			p.process.Restarts, p.process.Started = 1, p.process.Started.Add(time.Millisecond)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			for n, more := 1, true; more; n++ {
				inBubble(t, func(t *testing.T) { more = worldChanges(t, n, change) })
				if !more && n < 10 {
					t.Errorf("the run made only %d calls", n)
				}
			}
		})
	}
}

// worldChanges changes the world after call n, and reports whether the run made that many.
func worldChanges(t *testing.T, n int, change worldChange) bool {
	b := newBench(t)
	var fed, ended atomic.Bool
	var endedAt, changedAt time.Time
	b.agentProgram(shimProgram(goodReport, func(ctx context.Context, p *fakeProcess, bu wire.Bundle) int {
		fed.Store(true)
		code := runFor(4*time.Second, 0)(ctx, p, bu)
		endedAt = time.Now()
		ended.Store(true)
		return code
	}))
	what, at := "", 0
	b.after = func(call string, k int) {
		if k >= n && what == "" && !ended.Load() && change(b) {
			what, changedAt, at = call, time.Now(), k
		}
	}
	res := b.run(t.Context())
	started := slices.Index(b.calls, "start "+string(login.With(planner.PartAgent))) + 1
	switch {
	case what == "":
		return false
	case at <= started && fed.Load(): // everything is looked at once more between its start and its prompt
		t.Errorf("changed after call %d (%s), before the agent ran or as it started, and it got its prompt", n, what)
	case res.Code == int(CodeRefused) && res.By == BySandplan && !fed.Load():
	case res.Code == int(CodeDrift):
	case res.By == ByAgent && endedAt.Sub(changedAt) <= RecheckEvery:
		// After the last look nobody looks before the end; settling must say so all the same.
		if res.Unsettled == nil && b.object(login.With(planner.PartAgent)).ID != "" && !restarted(b) {
			t.Errorf("changed after call %d (%s), just before the end: nobody noticed, not even afterwards", n, what)
		}
	default:
		t.Errorf("changed after call %d (%s): code %d by %s (%v), fed: %v", n, what, res.Code, res.By, res.Decision, fed.Load())
	}
	return true
}

// restarted: a restart leaves no trace once the proxy was replaced.
func restarted(b *bench) bool {
	for _, p := range b.running {
		if p.process.Restarts > 0 {
			return true
		}
	}
	return false
}

// TestStepsFail lets each call of the engine in turn fail, and then hang: before the start that refuses,
// with the reason; after it the run ends in order, or the call was one of several and is forgiven.
func TestStepsFail(t *testing.T) {
	for _, hang := range []bool{false, true} {
		t.Run(fmt.Sprintf("hang=%v", hang), func(t *testing.T) {
			for n, more := 1, true; more; n++ {
				inBubble(t, func(t *testing.T) { more = stepFails(t, n, hang) })
				if !more && n < 15 {
					t.Errorf("the run made only %d calls", n)
				}
			}
		})
	}
}

// stepFails lets call n fail or hang, and reports whether the run made that many.
func stepFails(t *testing.T, n int, hang bool) bool {
	b := newBench(t)
	b.agentProgram(shimProgram(goodReport, runFor(2500*time.Millisecond, 0)))
	what := ""
	b.before = func(ctx context.Context, call string, k int) error {
		if k != n {
			return nil
		}
		what = call
		if !hang {
			return errors.New("the engine says no")
		}
		<-ctx.Done()
		return ctx.Err()
	}
	res := b.run(t.Context())
	if what == "" {
		return false
	}
	started := slices.Index(b.calls, "start "+string(login.With(planner.PartAgent))) + 1
	proven := slices.Index(b.calls, "release scope") + 1
	ok := false
	switch {
	case strings.HasPrefix(what, "wait "):
		ok = res.Code == 0 || res.Code == int(CodeEngine) // its answer may have come by another way
	case started == 0 || n <= started:
		reason := map[bool]string{false: "says no", true: "within 1m0s; it was still"}[hang]
		ok = res.Code == int(CodeRefused) && strings.Contains(res.Decision.Error(), reason)
	case n < proven:
		ok = res.Code == int(CodeProof) || res.Code == int(CodeEngine)
	case what == "observe":
		ok = res.Code == 0 && res.Unsettled != nil
	default:
		ok = res.Code == 0 // one look of many
	}
	if !ok {
		t.Errorf("call %d (%s): code %d by %s, %v, unsettled: %v", n, what, res.Code, res.By, res.Decision, res.Unsettled)
	}
	return true
}
