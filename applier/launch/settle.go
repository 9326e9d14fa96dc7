package launch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// drainLimit is how long output may still come from a container that has ended.
const drainLimit = 5 * time.Second

// settle stops what runs, finds out how the run ended, arms the invocation again (or keeps or disposes
// of it), writes the record, and gives the locks back. It is not cancelled with ctx.
func (r *run) settle(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	stopped := r.stopAll(ctx)
	if r.deafen != nil {
		r.deafen()
		r.record.Events = r.meddling.seen
	}
	r.conclude(ctx)
	if r.egress != nil {
		r.tell(Event{Kind: EventEgress, Egress: &r.result.Egress})
	}
	if r.touched && stopped {
		r.tidy(ctx)
	}
	r.bundle.wipe()
	r.writeRecord()
	r.release(ctx, r.lease, "the lease of "+string(r.inv))
	r.result.Unsettled = errors.Join(r.unsettled...)
}

// stopAll stops the agent first and the proxy after it, and reports whether both certainly ended.
func (r *run) stopAll(ctx context.Context) bool {
	stopped := true
	if r.decision != nil && r.touched {
		r.tell(Event{Kind: EventStopping, Detail: r.decision.Error()})
	}
	for _, c := range []*container{r.agent, r.proxy} {
		if c == nil {
			continue
		}
		grace := r.grace(c)
		limited, cancel := context.WithTimeout(ctx, grace+settleLimit)
		if err := c.stop(limited, grace, r.Kill); err != nil {
			r.unsettled = append(r.unsettled, err)
			stopped = false
		}
		cancel()
		if c == r.agent && !r.running.IsZero() {
			r.result.Took = r.Now().Sub(r.running)
		}
		if c.tried {
			if err := c.drain(drainLimit, r.output.moving(), r.Kill); err != nil {
				r.unsettled = append(r.unsettled, fmt.Errorf("%s: %w", c.addr, err))
			}
		}
		c.close()
	}
	return stopped
}

// grace is how long a container may take to end by itself.
func (r *run) grace(c *container) time.Duration {
	if c == r.proxy {
		return 5 * time.Second // it has only lines to write
	}
	if r.decision == nil {
		return 0
	}
	switch r.decision.Code {
	case CodeDrift:
		return 0 // whoever changed the sandbox gets no time to use it
	case CodeCancelled, CodeTimeout, CodeBound:
		return Grace
	}
	return 2 * time.Second // it knows already, and is about to end
}

// conclude finds out how the run ended and who decided that.
func (r *run) conclude(ctx context.Context) {
	r.result.RunID = r.record.ID
	if r.egress != nil {
		r.result.Egress = r.egress.summary()
	}
	if r.agent != nil && r.agent.tried {
		r.concludeAgent(ctx)
	}
	r.settleTree(ctx)
	if r.decision != nil {
		r.result.By, r.result.Code, r.result.Decision = BySandplan, int(r.decision.Code), r.decision
	}
	if !r.running.IsZero() {
		r.tell(Event{Kind: EventEnded, Took: r.result.Took, Code: r.result.Code, Detail: r.record.Exit.Reason})
	}
}

// lastBound finds a bound of the proxy that was used up just before the command ended by itself: whether the proxy's
// line or the end is heard of first is chance.
func (r *run) lastBound() {
	if r.egress == nil || r.running.IsZero() {
		return
	}
	select {
	case why := <-r.egress.limit:
		r.decide(proxyBound(why, r.Invocation.Limits))
	default:
	}
}

func (r *run) concludeAgent(ctx context.Context) {
	var said wire.Exit
	var ok bool
	if r.agent.outOver {
		// Otherwise something may still write to the filter; then it has no record either.
		said, ok, _ = r.exit.Close()
	}
	var p planner.Process
	if r.agent.over != nil {
		p = r.agent.over.process
	}
	r.record.Process = p
	if ok && r.decision != nil && (r.decision.Code == CodeEngine || r.decision.Code == CodeKilled) && said.Cause != wire.CauseStop && said.Cause != wire.CauseLease {
		r.decision = r.meddling.drift.Load() // it looked so from outside; the container itself says more
	}
	r.lastBound()
	switch {
	case r.decision != nil:
	// An engine that hears of the end before it hears of the reason never tells the reason.
	case p.OOM && (!ok || said.Signal == 9), ok && said.By == wire.ByAgent && said.Detail == wire.OutOfMemory:
		r.decide(&Decision{Code: CodeKilled, Reason: "it needed more memory than limits.memory allows"})
	case ok && said.By == wire.ByAgent:
		r.ownEnd(said.Code)
	case ok && said.Cause == wire.CauseProof && !r.running.IsZero():
		// It had been proven: what does not hold any more has changed since.
		r.decide(r.changedInside(ctx, said.Detail))
	case ok:
		r.decide(cause(said))
	case r.agent.over == nil || r.agent.over.err != nil:
		r.decide(&Decision{Code: CodeEngine, Reason: "the engine is lost", Err: overErr(r.agent)})
	case p.Error != "":
		r.decide(&Decision{Code: CodeProof, Reason: "the engine could not run it", Err: errors.New(p.Error)})
	default:
		r.decide(&Decision{Code: CodeKilled, Reason: fmt.Sprintf(
			"its container was ended from outside, with exit code %d and without a word%s", p.ExitCode, r.agent.said(nil))})
	}
}

func overErr(c *container) error {
	if c.over == nil {
		return nil
	}
	return c.over.err
}

// tidy arms, keeps or disposes of the invocation.
func (r *run) tidy(ctx context.Context) {
	after := r.Invocation.AfterRun.V
	if r.Runner != "" {
		after = "rearm"
	}
	if after == "keep" {
		r.tell(Event{Kind: EventKept})
		return
	}
	select {
	case <-r.Kill:
		r.unsettled = append(r.unsettled, fmt.Errorf("%s was left as it is; `sandplan apply` or the next run arms it again", r.inv))
		return
	default:
	}
	err := r.underScopeLock(ctx, func(ctx context.Context, lock Lock) error {
		if err := r.look(ctx); err != nil {
			return err
		}
		if fs := r.strangers(r.before, r.addresses()); len(fs) > 0 {
			return &Decision{Reason: "something changed before the end of the run", Findings: fs}
		}
		if after == "dispose" {
			return r.dispose(ctx, lock)
		}
		if err := r.rearm(ctx, lock, r.own()); err != nil {
			return err
		}
		r.tell(Event{Kind: EventArmed})
		return nil
	})
	if err != nil {
		r.unsettled = append(r.unsettled, fmt.Errorf("%s was not tidied up after the run: %w; `sandplan plan` shows what is left, "+
			"`sandplan apply` puts it right", r.inv, err))
	}
}

// own are the containers that this run starts. What another kind of run left to be looked at is not
// touched.
func (r *run) own() []planner.Address {
	if r.Runner != "" {
		return []planner.Address{r.main}
	}
	return []planner.Address{r.inv.With(planner.PartProxy), r.main}
}

func (r *run) dispose(ctx context.Context, lock Lock) error {
	plan := planner.Diff(r.resources, r.before, planner.Options{
		Destroy: true, Origin: r.Origin, Lease: r.lease.Info().ID, Targets: []planner.Address{r.inv},
	})
	if err := r.Apply(ctx, r.compiled, plan, lock); err != nil {
		return err
	}
	r.tell(Event{Kind: EventDisposed})
	return nil
}

// underScopeLock does something that has its own time once the lock is held: when many runs end at once,
// the last of them waits for all others. Who wants an end at once does not wait for the lock.
func (r *run) underScopeLock(ctx context.Context, do func(context.Context, Lock) error) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	held := make(chan struct{})
	go func() {
		select {
		case <-r.Kill:
			cancel()
		case <-held:
		}
	}()
	lock, err := r.LockScope(waiting)
	close(held)
	if err != nil && waiting.Err() != nil {
		return fmt.Errorf("it was not waited for the lock of the scope any more: %w", err) // which may tell of a lock that is left
	}
	if err != nil {
		return err
	}
	defer r.release(ctx, lock, "the lock of the scope "+r.Scope.String())
	limited, end := context.WithTimeout(ctx, StartLimit)
	defer end()
	return do(limited, lock)
}

// releaseScope gives the scope lock back after the start: from here on the lease protects the run.
func (r *run) releaseScope(ctx context.Context) {
	r.release(ctx, r.scope, "the lock of the scope "+r.Scope.String())
	r.scope = nil
}

func (r *run) release(ctx context.Context, l Lock, what string) {
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	if err := l.Release(ctx); err != nil {
		r.unsettled = append(r.unsettled, fmt.Errorf("%s is still held: %w; `sandplan force-unlock %.12s` removes it", what, err, l.Info().ID))
	}
}
