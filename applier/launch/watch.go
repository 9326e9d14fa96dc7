package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// linkLimit is how long a container may live without its connection before the connection counts as
// lost: when a container ends, its output ends a little before the engine says so.
const linkLimit = 10 * time.Second

// watch returns when the command has ended, or when it must end; then decision says why.
func (r *run) watch(ctx context.Context) {
	life, quit := context.WithCancel(context.WithoutCancel(ctx))
	looks := make(chan *Decision, 1)
	var looking sync.WaitGroup
	looking.Go(func() { r.relook(life, looks) })
	looking.Go(func() { r.meet(life) })
	defer looking.Wait()
	defer quit()
	timeout := time.NewTimer(r.Timeout + timeoutSlack)
	defer timeout.Stop()
	link := time.NewTimer(0)
	link.Stop()
	defer link.Stop()

	p, end := r.proxyEnds(), r.meddling.end
	for r.decision == nil && r.agent.over == nil {
		select {
		case e := <-r.agent.ended:
			if r.agent.over = &e; e.err != nil {
				r.linkLost(ctx)
			}
		case <-ctx.Done():
			r.decide(&Decision{Code: CodeCancelled, Reason: "cancelled"})
		case <-r.Kill:
			r.decide(&Decision{Code: CodeCancelled, Reason: "cancelled"})
		case <-timeout.C:
			r.decide(&Decision{Code: CodeTimeout, Reason: "timed out after " + r.Timeout.String()})
		case <-r.transcript.Wrong():
			r.decide(r.offersOthers())
		case <-r.output.used:
			r.decide(&Decision{Code: CodeBound, Reason: "the output bound is used up"})
		case d := <-looks:
			r.decide(d)
		case d := <-r.meddling.found:
			r.decide(cmp.Or(r.meddling.drift.Load(), d))
		case e := <-p.ended:
			r.proxyEnded(e)
		case why := <-p.limit:
			r.decide(proxyBound(why, r.Invocation.Limits))
		case <-p.mute:
			link.Reset(linkLimit)
		case <-r.agent.mute:
			link.Reset(linkLimit)
		case <-r.agentOut():
			r.agent.outOver = true
			link.Reset(linkLimit)
		case <-end:
			// Wait says so, too, but may take its time: engines answer late for a container that they are ending.
			end = nil
			link.Reset(time.Second)
		case <-link.C:
			r.linkLost(ctx)
		}
	}
	r.preferNaturalEnd()
	select {
	case d := <-looks: // what a look found before the end counts, whichever of the two was read first
		if d.Code == CodeDrift {
			r.decide(d)
		}
	default:
	}
	if r.decision == nil {
		r.hearOut()
	}
}

// linkLost finds out why nothing goes through to a container any more: because it has ended and Wait
// does not say so, or because the connection is gone.
func (r *run) linkLost(ctx context.Context) {
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineLimit)
	defer cancel()
	p, err := r.agent.engine.Process(look, r.agent.id)
	if errors.Is(err, planner.ErrGone) || err == nil && p.Status == planner.StatusExited {
		r.agent.over = &ending{process: p}
		return
	}
	select {
	case <-r.meddling.end: // the engine says that it has ended, and does not say more
		r.agent.over = &ending{process: planner.Process{Status: planner.StatusExited}}
		return
	default:
	}
	r.decide(&Decision{Code: CodeEngine, Reason: "the link to the containers is lost"})
}

// proxyEnded decides what follows from the proxy's end: nothing, if the engine has told of the command's end before,
// and only not answered yet how that was.
func (r *run) proxyEnded(e ending) {
	r.proxy.over = &e
	select {
	case <-r.meddling.end:
		return
	default:
	}
	if e.err != nil && !errors.Is(e.err, planner.ErrGone) {
		r.decide(&Decision{Code: CodeEngine, Reason: "the engine is lost", Err: e.err})
		return
	}
	r.decide(&Decision{Code: CodeProxy, Reason: "the proxy is lost",
		Err: fmt.Errorf("it ended with exit code %d%s", e.process.ExitCode, r.proxy.said(nil))})
}

// proxyEnds are the channels of the proxy, or ones that never say anything.
func (r *run) proxyEnds() (p struct {
	ended <-chan ending
	mute  <-chan error
	limit <-chan string
}) {
	if r.proxy != nil {
		p.ended, p.mute, p.limit = r.proxy.ended, r.proxy.mute, r.egress.limit
	}
	return p
}

func (r *run) agentOut() <-chan error {
	if r.agent.outOver {
		return nil
	}
	return r.agent.out
}

// preferNaturalEnd drops a decision that came after the command had ended by itself: select takes any of
// the channels that are ready. What certainly was before the end stays.
func (r *run) preferNaturalEnd() {
	if r.decision == nil || r.agent.over != nil {
		return
	}
	select {
	case e := <-r.agent.ended:
		r.agent.over = &e
		if r.decision.Code != CodeDrift && !r.decision.beforeEnd {
			r.decision = nil // what the container itself says decides
		}
	default:
	}
}

// relook looks at the running sandbox again and again, at once when something has happened to it, and
// sends what it finds, once. An engine that does not answer is forgiven for a while.
func (r *run) relook(ctx context.Context, found chan<- *Decision) {
	heard, read := time.Now(), time.Time{}
	joined := time.Time{} // since when there is somebody who may have got hold of the program
	for took := time.Duration(0); ; {
		if !r.pauseLooking(ctx, took) {
			return
		}
		began := time.Now()
		d := r.lookInTime(ctx, false, &heard, engineLimit)
		if r.meddling.joined.Swap(false) && joined.IsZero() {
			joined = time.Now()
		}
		if d == nil && !joined.IsZero() && time.Since(read) >= programEvery {
			since := joined
			if d = r.lookInTime(ctx, true, &since, programLimit); since != joined {
				read, joined = time.Now(), time.Time{}
			}
		}
		if ctx.Err() != nil {
			return
		}
		if d != nil {
			found <- d
			return
		}
		took = time.Since(began)
	}
}

// pauseLooking waits until the next look is due, after one that took some time. Where many agents run, what
// one of them does makes the others look, too, and all of them ask one engine: without pauses their looks
// would keep it from starting the next. What is done to this run's own containers and on its network is told by
// the events themselves, and who comes to the uplink is asked for at once: they wait for no look.
func (r *run) pauseLooking(ctx context.Context, took time.Duration) bool {
	due := time.NewTimer(min(max(RecheckEvery, lookShare*took), recheckMost))
	defer due.Stop()
	rest := time.NewTimer(min(max(lookPause, took), RecheckEvery))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-due.C:
		return true
	case <-r.meddling.kick:
	}
	select {
	case <-ctx.Done():
		return false
	case <-rest.C:
		return true
	}
}

// lookInTime takes one look, with the program in the shim's volume or without, and returns what ends the
// run. A look that succeeds sets heard; one that fails counts when none has succeeded for too long.
func (r *run) lookInTime(ctx context.Context, program bool, heard *time.Time, limit time.Duration) *Decision {
	look, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	err := r.lookAtRunning(look, program)
	var d *Decision
	switch {
	case err == nil:
		*heard = time.Now()
	case errors.As(err, &d):
		return d
	case time.Since(*heard) > limit:
		return &Decision{Code: CodeEngine, Reason: "the engine is lost", Err: err}
	}
	return nil
}
