package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker/probe"
)

// Compiled is the declaration of what is verified as objects of one engine.
type Compiled interface {
	launch.Compiled
	Allocation() planner.Allocation
	// Memories are the memory file systems of a container with their sizes.
	Memories(planner.Address) map[string]int64
	// Bridge is the name that the bridge of an invocation's network has on the host.
	Bridge(planner.Address) string
}

// Probe is a probe outside of any sandbox.
type Probe interface {
	Tell([]byte) error
	Done() <-chan error
	Remove(context.Context) error
}

// Open says where a container without the boundary is, and what it has.
type Open struct {
	Network, DNS          string
	Tree, ReadOnly, Shown string
}

// Params are what one verification is made of.
type Params struct {
	Spec     *hclspec.Spec
	Subjects []hclspec.Invocation
	// Session is 12 random hex digits.
	Session string
	Origin  string
	Version string
	// EngineVersion and EngineSocket are of the engine.
	EngineVersion, EngineSocket string

	Engine  launch.Engine
	Compile func(ctx context.Context, s *hclspec.Spec, snap planner.Snapshot, seal func(s *hclspec.Spec, addr, runner string) (policy.Command, error)) (Compiled, error)
	// Canary starts the canary on the host's network, Control a container without the boundary.
	Canary  func(ctx context.Context, scope planner.Scope, stdout, stderr io.Writer) (Probe, error)
	Control func(ctx context.Context, scope planner.Scope, o Open, stdout, stderr io.Writer) (Probe, error)
	// LockScope and LockLease lock something of a scope for an operation.
	LockScope func(ctx context.Context, scope planner.Scope, op string) (launch.Lock, error)
	LockLease func(ctx context.Context, scope planner.Scope, inv planner.Address) (launch.Lock, error)
	// Apply carries out a plan. c is nil when it only removes.
	Apply func(ctx context.Context, c Compiled, p *planner.Plan, l launch.Lock) error
	// Launch runs an invocation: launch.Run.
	Launch func(context.Context, launch.Params) launch.Result

	// HostAddresses are the host's own, as they are now. A verification that cannot know them proves nothing.
	HostAddresses func() ([]string, error)
	// PID is this process.
	PID int
	// TempDir is where directories for the time of the verification are made; the engine must see them.
	TempDir string
	Now     func() time.Time
	// Tell gets a line about each step.
	Tell func(string)
	// Kill ends everything at once, where the end of the context asks for a graceful end.
	Kill <-chan struct{}
}

// The programs of a verification, by the number that stands in their tokens. Subjects follow.
const (
	runFence = iota
	runHost
	runOpen
	runSecond
	runSubjects
)

// verification is one in progress.
type verification struct {
	Params
	scope, canaries planner.Scope
	spec            *hclspec.Spec
	secondInv       hclspec.Invocation
	places          *places
	compiled        Compiled
	declared        policy.Host // the canary, as the one host that may be reached
	canary          *listener
	open            *collector
	openLeft        map[string]string
	second          *running
	fences          int // so far
}

// listener is the canary with what it said.
type listener struct {
	*collector
	probe Probe
	ready probe.Ready
}

// Workspace is the workspace that a verification has for itself.
func Workspace(session string) string { return "verify-" + session[:8] }

// Run verifies invocations, one after another. Whatever happens, what was made is removed before it returns,
// or Report.Unsettled says what is left.
func Run(ctx context.Context, p Params) Report {
	v := &verification{Params: p}
	v.scope = planner.Scope{Project: p.Spec.Project.V, Workspace: Workspace(p.Session)}
	// Apart from what is verified: a container of the same scope that nobody declared refuses every run.
	v.canaries = planner.Scope{Project: v.scope.Project, Workspace: v.scope.Workspace + "-canary"}
	began := p.Now()
	out := Report{Scope: v.scope, Engine: p.EngineVersion}
	if err := v.verify(ctx, &out); err != nil {
		out.Decision = decision(ctx, err)
	}
	out.Unsettled = v.clean(context.WithoutCancel(ctx))
	out.Took = p.Now().Sub(began)
	return out
}

// decision is what follows from an error before the first subject was verified.
func decision(ctx context.Context, err error) *launch.Decision {
	var d *launch.Decision
	switch {
	case errors.As(err, &d):
		return d
	case ctx.Err() != nil:
		return &launch.Decision{Code: launch.CodeCancelled, Reason: "cancelled"}
	}
	return &launch.Decision{Code: launch.CodeRefused, Reason: "it cannot be verified", Err: err}
}

func (v *verification) verify(ctx context.Context, out *Report) error {
	steps := []struct {
		says string
		do   func(context.Context) error
	}{
		{"making a place for what is tried", v.makePlaces},
		{"starting the canary on the host's network", v.startCanary},
		{"making the same sandboxes once more, as " + v.scope.String(), v.apply},
		{"trying everything without the boundary, where it has to succeed", v.tryOpen},
		{"starting a second invocation", v.startSecond},
	}
	for _, s := range steps {
		v.Tell(s.says)
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.says, err)
		}
	}
	var tried []attempted
	for i, b := range boxes(v.spec, v.derived(v.Subjects)) {
		v.Tell("trying everything inside " + string(b.addr()))
		s, err := v.subject(ctx, b, runSubjects+i)
		if err == nil {
			tried = append(tried, s)
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	log := v.log()
	for _, s := range tried {
		s.evidence.log = log
		s.Findings = s.evidence.judge()
		out.Subjects = append(out.Subjects, s.Subject)
	}
	return nil
}

// patience bounds each step that waits for a probe. It is far above what any takes.
const patience = 3 * time.Minute

func (v *verification) token(run int) probe.Token { return probe.Token{Session: v.Session, Run: run} }

// startCanary starts what sees the host's network, and waits until it has shown that it does.
func (v *verification) startCanary(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := &listener{collector: newCollector()}
	said := &tail{}
	host, err := v.HostAddresses()
	if err != nil {
		return err
	}
	p, err := v.Canary(ctx, v.canaries, c.collector, said)
	if err != nil {
		return err
	}
	c.probe, v.canary = p, c
	job := probe.Job{Role: probe.RoleCanary, Token: v.token(runHost), HostAddresses: host, HostPID: v.PID, HostStart: probe.StartOf(v.PID)}
	if err := tell(p, job); err != nil {
		return err
	}
	if err := c.until(ctx, p.Done(), func(c *collector) bool { return c.ready != nil && c.done }); err != nil {
		return fmt.Errorf("%w%s", err, said.text())
	}
	c.ready = *c.collector.ready
	return nil
}

// apply makes the objects. The canary's address is the host's on the uplink, which only compiling tells.
func (v *verification) apply(ctx context.Context) (err error) {
	v.spec, v.secondInv = derive(v.Spec, v.Subjects, v.scope.Workspace, v.places.second)
	lock, err := v.LockScope(ctx, v.scope, "verify")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release(context.WithoutCancel(ctx))) }()
	snap, err := v.Engine.Observe(ctx, v.scope)
	if err != nil {
		return err
	}
	v.declared = policy.Host{Name: "canary.sandplan.test", Port: v.canary.ready.TLS, TLS: true, Decl: "verify", Addresses: []string{"10.0.0.1"}}
	if v.compiled, err = v.compile(ctx, snap); err != nil {
		return err
	}
	v.declared.Addresses = []string{v.compiled.Allocation().Uplink.Gateway.String()}
	if v.compiled, err = v.compile(ctx, snap); err != nil {
		return err
	}
	snap = v.compiled.Complete(snap)
	plan := planner.Diff(v.compiled.Resources(), snap, planner.Options{Origin: v.Origin})
	if c := plan.Conflicts(); len(c) > 0 {
		return fmt.Errorf("%s: %s", c[0].Addr, c[0].Text)
	}
	return v.Apply(ctx, v.compiled, plan, lock)
}

func (v *verification) compile(ctx context.Context, snap planner.Snapshot) (Compiled, error) {
	return v.Compile(ctx, v.spec, snap, seal(v.declared))
}

// clean removes everything, whatever has been made by then.
func (v *verification) clean(ctx context.Context) error {
	var errs []error
	if v.second != nil {
		v.second.end()
	}
	if v.spec != nil {
		if err := v.destroy(ctx, v.scope); err != nil {
			errs = append(errs, fmt.Errorf("what was made was not removed: %w; `sandplan destroy -project=%s -workspace=%s` removes it",
				err, v.scope.Project, v.scope.Workspace))
		}
	}
	if v.canary != nil && v.canary.probe != nil {
		if err := v.canary.probe.Remove(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%w; `sandplan destroy -project=%s -workspace=%s` removes it", err, v.canaries.Project, v.canaries.Workspace))
		}
	}
	if v.places != nil {
		errs = append(errs, v.places.remove())
	}
	return errors.Join(errs...)
}

func (v *verification) destroy(ctx context.Context, scope planner.Scope) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lock, err := v.LockScope(ctx, scope, "destroy")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release(context.WithoutCancel(ctx))) }()
	snap, err := v.Engine.Observe(ctx, scope)
	if err != nil {
		return err
	}
	return v.Apply(ctx, nil, planner.Diff(nil, snap, planner.Options{Destroy: true}), lock)
}
