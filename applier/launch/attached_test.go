package launch

import (
	"context"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// TestAttachmentEndsWithItsContainer: when a container ends, the engine ends what is attached to it. 26.1 and 28.5
// tell that as a "detach", and of the end only then; 20.10 does it the other way round.
func TestAttachmentEndsWithItsContainer(t *testing.T) {
	agent := login.With(planner.PartAgent)
	runs := func(d time.Duration) program { return shimProgram(goodReport, runFor(d, 0)) }
	for name, c := range map[string]struct {
		withItsEnd int
		program    func(b *bench) program
		code       int
		reason     string
	}{
		"with its end":       {1, func(*bench) program { return runs(2 * time.Second) }, 0, "the run's own attachment, which the engine ended"},
		"twice with its end": {2, func(*bench) program { return runs(2 * time.Second) }, 120, "the second one is of somebody who had attached before the run listened"},
		"and it runs on": {0, func(b *bench) program {
			return shimProgram(goodReport, func(ctx context.Context, p *fakeProcess, w wire.Bundle) int {
				time.AfterFunc(2*time.Second, func() {
					b.mu.Lock()
					defer b.mu.Unlock()
					b.signal("container", "detach", b.object(agent).ID, "")
				})
				return runFor(10*time.Second, 0)(ctx, p, w)
			})
		}, 120, "the run's own attachment stays, so it was somebody else's"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newBench(t)
				b.agentProgram(c.program(b))
				b.detaches = map[planner.Address]int{agent: c.withItsEnd}
				if res := b.run(t.Context()); res.Code != c.code {
					t.Errorf("code %d by %s (%v), want %d (%s)", res.Code, res.By, res.Decision, c.code, c.reason)
				}
			})
		})
	}
}
