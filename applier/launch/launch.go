package launch

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// Bounds of a run that no configuration changes.
const (
	// StartLimit is how long everything before the agent's start may take, from holding the scope lock.
	StartLimit = 60 * time.Second
	// RecheckEvery is how often a running sandbox is looked at.
	RecheckEvery = time.Second
	// On a machine where a look takes long, looks take at most one part in lookShare of the time, but come
	// recheckMost apart at most; lookPause stands between two of them that events ask for.
	lookShare   = 4
	recheckMost = 10 * time.Second
	lookPause   = 200 * time.Millisecond
	// Grace is how long an agent has to end after it was asked to.
	Grace = 10 * time.Second
	// settleLimit bounds each step of tidying up: an engine that does not answer is reported, not
	// waited for without end.
	settleLimit = 30 * time.Second
	// timeoutSlack lets the container's own clock, which is exact, end the run first.
	timeoutSlack = 3 * time.Second
	// engineLimit is how long the engine may fail to answer while the agent runs: busy machines take their
	// time, and an agent whose engine is gone ends with its lease, long before.
	engineLimit = 30 * time.Second
	// lookLimit bounds one look at a running sandbox.
	lookLimit = 15 * time.Second
	// programEvery is how often at most the program in the shim's volume is read again because containers
	// were started: it has some 20 MB, and on a busy machine containers start all the time.
	programEvery = 5 * time.Second
	// programLimit is how long that reading may fail.
	programLimit = 2 * time.Minute
)

// Params are what one run is made of.
type Params struct {
	Scope planner.Scope
	// Origin is host and directory of the configuration.
	Origin string
	// Version is sandplan's, for the record.
	Version    string
	Invocation hclspec.Invocation
	// Runner names an approved command of the phase to run in place of the agent; it has no proxy.
	Runner string
	// Timeout and Output are the invocation's, or the runner's.
	Timeout time.Duration
	Output  int64
	// Command is the sealed command of the agent or the runner.
	Command policy.Command

	Engine Engine
	// Compile makes the declaration into resources, given what is there.
	Compile func(context.Context, planner.Snapshot) (Compiled, error)
	// LockScope and LockLease wait as long as the caller lets them.
	LockScope func(context.Context) (Lock, error)
	LockLease func(context.Context) (Lock, error)
	// Approve is asked before a plan is applied that does more than to arm the invocation again. It is nil
	// where that must not happen: then whatever differs refuses the run.
	Approve func(context.Context, *planner.Plan) error
	// Apply carries a plan out, under the scope lock that it is given.
	Apply func(context.Context, Compiled, *planner.Plan, Lock) error

	// Prompt is the user's prompt, without the vendor's preamble.
	Prompt []byte
	// Credentials reads the secrets by the name of their credential block.
	Credentials func() (map[string][]byte, error)
	// HostAddresses are the host's own addresses, which must be unreachable from inside.
	HostAddresses []string

	Stdout, Stderr io.Writer
	Events         func(Event)
	// DataDir is where runs/ID is written; "" writes no record.
	DataDir string
	Now     func() time.Time
	// StartWithin shortens StartLimit, unless it is 0.
	StartWithin time.Duration
	// Kill ends the run at once, where the end of the context asks for a graceful end.
	Kill <-chan struct{}
}

// run is one run in progress. Its methods are called one after another by one goroutine.
type run struct {
	Params
	inv   planner.Address
	main  planner.Address // of the container that the command runs in
	began time.Time

	scope, lease Lock
	compiled     Compiled
	resources    []planner.Resource
	before       planner.Snapshot
	ids          planner.IDs
	bundle       bundle
	record       *record
	tree         *worktree

	proxy, agent *container
	egress       *egressLog
	exit         *wire.ExitFilter
	output       *bound
	transcript   *policy.Transcript // of the CLI's events; nil for the user's own commands
	meddling     *meddling
	deafen       func()    // ends the listening to events
	running      time.Time // when the command got its go
	touched      bool      // something was started
	decision     *Decision
	result       Result
	unsettled    []error
}

// Run runs an invocation's agent, or a runner, from the gate to settlement. The end of ctx asks for a
// graceful end; Run returns when nothing that it started runs any more, or when it can be certain that
// this cannot be made certain, which Result.Unsettled then says.
func Run(ctx context.Context, p Params) Result {
	r := &run{Params: p, inv: planner.Address(p.Invocation.Address), began: p.Now(), ids: planner.IDs{}}
	r.record, r.transcript = r.newRecord(), p.Command.Transcript()
	r.main = r.inv.With(planner.PartAgent)
	if p.Runner != "" {
		r.main = r.inv.Runner(p.Runner)
	}
	if err := r.begin(ctx); err != nil {
		r.decide(refusal(ctx, err))
	}
	r.releaseScope(ctx)
	if r.decision == nil {
		unwatch := r.watchTree(ctx)
		r.watch(ctx)
		unwatch()
	}
	r.settle(ctx)
	return r.result
}

// begin does everything up to the moment at which the command has its go.
func (r *run) begin(ctx context.Context) error {
	if err := r.prepare(); err != nil {
		return err
	}
	scope, err := r.LockScope(ctx)
	if err != nil {
		return err
	}
	r.scope = scope
	d := newDeadline(ctx, r.startLimit())
	defer d.end()
	// Under the scope lock: an apply never sees an invocation half way between armed and running.
	if err := d.step("taking the lease of "+string(r.inv), func(ctx context.Context) error {
		lease, err := r.LockLease(ctx)
		if err == nil {
			r.lease = lease // and not otherwise: a nil pointer in an interface is not nil
		}
		return err
	}); err != nil {
		return err
	}
	r.record.begin(r.Now())
	if err := r.gate(d); err != nil {
		return err
	}
	if err := r.overlook(d); err != nil {
		return err
	}
	if err := d.step("listening to the engine's events", r.listen); err != nil {
		return err
	}
	if r.Runner == "" {
		if err := r.startProxy(d); err != nil {
			return err
		}
	}
	if err := r.noted(d); err != nil {
		return err
	}
	err = r.startAgent(d)
	if r.agent == nil || !r.agent.started() {
		return err
	}
	// From here on the first process of the agent runs, and nothing is a refusal any more.
	if err == nil {
		err = r.prove(d)
	}
	if err != nil {
		r.decide(started(ctx, err))
	}
	return nil
}

// startLimit is StartLimit, or less.
func (r *run) startLimit() time.Duration {
	if r.StartWithin > 0 {
		return min(r.StartWithin, StartLimit)
	}
	return StartLimit
}

// decide keeps the first decision: what follows from it is no news.
func (r *run) decide(d *Decision) {
	if r.decision == nil {
		r.decision = d
	}
}

// refusal is the decision that follows from an error before the start.
func refusal(ctx context.Context, err error) *Decision {
	var d *Decision
	if errors.As(err, &d) {
		early := *d
		early.Code = CodeRefused // whatever it would mean later
		return &early
	}
	if ctx.Err() != nil {
		return &Decision{Code: CodeCancelled, Reason: "cancelled before the agent was started"}
	}
	return &Decision{Code: CodeRefused, Err: err}
}

// started is the decision that follows from an error after the start.
func started(ctx context.Context, err error) *Decision {
	var d *Decision
	if errors.As(err, &d) {
		return d
	}
	if ctx.Err() != nil {
		return &Decision{Code: CodeCancelled, Reason: "cancelled"}
	}
	if errors.Is(err, errEnded) || errors.Is(err, planner.ErrGone) { // the engine is there, and says that the agent is not
		return &Decision{Code: CodeKilled, Reason: "its container was ended from outside", Err: err}
	}
	return &Decision{Code: CodeEngine, Reason: "the engine is lost", Err: err}
}

func (r *run) tell(e Event) {
	if r.Events == nil {
		return
	}
	e.Addr, e.At = r.inv, r.Now()
	if e.Took == 0 {
		e.Took = e.At.Sub(r.began)
	}
	r.Events(e)
}

// bundle is what the command gets once its sandbox is proven.
type bundle struct {
	prompt      []byte
	credentials map[string][]byte
}

func (b *bundle) wipe() {
	for _, secret := range b.credentials {
		clear(secret)
	}
	b.credentials = nil
}

// prepare does what needs no engine: it fails before anything is locked.
func (r *run) prepare() error {
	inv := r.Invocation
	check := r.Command.Check(inv.Address, inv.Vendor.V, inv.Phase.V)
	if r.Runner != "" {
		check = r.Command.CheckRunner(inv.Address, inv.Vendor.V, inv.Phase.V, r.Runner)
	}
	if check != nil {
		return check
	}
	r.bundle.prompt = append([]byte(r.Command.Preamble()), r.Prompt...)
	r.bundle.credentials = map[string][]byte{}
	wanted := r.Command.Credentials()
	if len(wanted) > 0 {
		secrets, err := r.Credentials()
		if err != nil {
			return err
		}
		for _, c := range wanted {
			content, err := c.Content(secrets[c.Name])
			if err != nil {
				return err
			}
			r.bundle.credentials[c.Name] = content
			clear(secrets[c.Name])
		}
	}
	r.output = newBound(r.Output)
	return nil
}
