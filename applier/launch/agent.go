package launch

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// startAgent takes the last look before the start, and starts the first process of the agent, unfed.
func (r *run) startAgent(d *deadline) error {
	var started []planner.Address
	if r.proxy != nil {
		started = append(started, r.proxy.addr)
	}
	err := d.step("attaching to the agent", func(ctx context.Context) (err error) {
		token := newSecret()
		stdout := r.outputTo()
		r.exit = wire.NewExitFilter(r.output.writer(r.Stderr, r.record.output()), token)
		r.agent, err = r.open(ctx, r.main, stdout, r.exit, token)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", r.main, err)
	}
	var sources []planner.Source
	err = d.step("comparing once more before the start", func(ctx context.Context) (err error) {
		if err := r.lockHeld(ctx); err != nil {
			return err
		}
		if r.proxy != nil {
			if err := r.proxy.alive(ctx); err != nil {
				return err
			}
			if _, err := r.proxy.authentic(ctx); err != nil {
				return err
			}
		}
		if sources, err = r.compiled.Sources(r.main); err != nil {
			return err
		}
		// Last of all: nothing stands between this look and the start.
		fs, err := r.recheck(ctx, started, true)
		if err == nil && len(fs) > 0 {
			return &Decision{Code: CodeRefused, Reason: "the engine differs from the declaration", Findings: fs}
		}
		if err != nil {
			return err
		}
		return r.meddled()
	})
	if err != nil {
		return err
	}
	r.record.Sources = sources
	err = d.step("starting the agent's container", func(ctx context.Context) error {
		r.touched = true
		return r.agent.start(ctx, r.HostAddresses)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", r.main, err)
	}
	return nil
}

// lockHeld makes sure that nobody took the locks away, as `docker container prune` does.
func (r *run) lockHeld(ctx context.Context) error {
	return errors.Join(r.scope.Check(ctx), r.lease.Check(ctx))
}

// prove waits for the report from the inside, judges it, looks at the running containers once more, and
// only then hands over what the command needs.
func (r *run) prove(d *deadline) error {
	err := d.step("waiting for the proof from the inside", func(ctx context.Context) error {
		line, err := r.agent.line(ctx)
		if err != nil {
			return unproven(err)
		}
		report, err := wire.ParseReport(line, r.agent.nonce)
		if err != nil {
			return unproven(err)
		}
		r.agent.identify(d.ctx)
		r.record.Report = &report
		failed := append(report.Failed(), sameSources(r.record.Sources, report.Mounts)...)
		if len(failed) > 0 {
			return &Decision{Code: CodeProof, Reason: "the sandbox is not as declared, seen from the inside", Checks: failed}
		}
		if len(report.Checks) == 0 {
			return &Decision{Code: CodeProof, Reason: "the report from the inside has no checks"}
		}
		r.tell(Event{Kind: EventProven, N: len(report.Checks)})
		return nil
	})
	if late := (*LateError)(nil); errors.As(err, &late) {
		return unproven(late)
	}
	if err != nil {
		return err
	}
	err = d.step("comparing once more before the prompt", func(ctx context.Context) error {
		if err := r.lookAtRunning(ctx, false); err != nil {
			return err
		}
		known, err := r.agent.authentic(ctx)
		if err == nil && !known {
			// Where the running program cannot be read, what it was started from is read once more.
			err = r.lookAtRunning(ctx, true)
		}
		if err != nil {
			return unproven(err)
		}
		return r.meddled()
	})
	if err != nil {
		return err
	}
	err = d.step("handing over the prompt", func(ctx context.Context) error {
		defer r.bundle.wipe()
		err := r.agent.write(ctx, func() error {
			return r.agent.frames.Bundle(wire.Bundle{Prompt: r.bundle.prompt, Credentials: r.bundle.credentials})
		})
		if err != nil { // a pipe breaks when its engine is gone, or the container
			err = errors.Join(r.agent.alive(ctx), err)
		}
		return err
	})
	if err != nil {
		return err
	}
	r.running = r.Now()
	r.tell(Event{Kind: EventRunning, ID: r.agent.id})
	return nil
}

func unproven(err error) error {
	if errors.Is(err, context.Canceled) || errors.As(err, new(*Decision)) {
		return err
	}
	return &Decision{Code: CodeProof, Reason: "the sandbox was not proven from the inside", Err: err}
}

// lookAtRunning compares everything that runs, and the processes themselves. What differs is drift: the
// agent's container has been started.
func (r *run) lookAtRunning(ctx context.Context, shim bool) error {
	if err := r.lease.Check(ctx); errors.Is(err, planner.ErrLockLost) {
		// Without it the next run would take these containers for its own.
		return &Decision{Code: CodeDrift, Reason: "the lease was removed while it ran", Err: err}
	} else if err != nil {
		return err
	}
	fs, err := r.recheck(ctx, r.started(), shim)
	if err != nil {
		return err
	}
	for _, c := range r.containers() {
		detached := r.detachedFrom(c)
		if err := c.alive(ctx); err != nil {
			if c == r.proxy && errors.Is(err, errEnded) {
				if both := r.agent.alive(ctx); errors.Is(both, errEnded) {
					return both // which of them ended first, the engine's events tell
				}
				return &Decision{Code: CodeProxy, Reason: "the proxy is lost", Err: err}
			}
			return err
		}
		if detached != nil {
			return detached
		}
	}
	if len(fs) > 0 {
		return &Decision{Code: CodeDrift, Reason: "the sandbox changed while it ran", Findings: fs}
	}
	if err := r.compiled.Unmoved(r.record.Sources); err != nil {
		return &Decision{Code: CodeDrift, Reason: "somebody moved what the sandbox has mounted", Err: err}
	}
	return nil
}

// containers are those that this run has started, the proxy first.
func (r *run) containers() []*container {
	var out []*container
	for _, c := range []*container{r.proxy, r.agent} {
		if c != nil {
			out = append(out, c)
		}
	}
	return out
}

func (r *run) started() []planner.Address {
	var out []planner.Address
	for _, c := range r.containers() {
		out = append(out, c.addr)
	}
	return out
}
