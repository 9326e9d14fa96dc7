package applier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/sandplan/sandplan/planner"
)

// Provider makes and removes objects.
type Provider interface {
	// Create makes an object whose dependencies exist; ids has the engine IDs of all that it depends on
	// or refers to.
	Create(ctx context.Context, r planner.Resource, ids planner.IDs) (planner.Object, error)
	// Restore puts the settings that differ back in place.
	Restore(ctx context.Context, c planner.Change, ids planner.IDs) error
	// Delete removes an object by its engine ID. One that is gone already is no error.
	Delete(ctx context.Context, o planner.Object) error
}

// Lock is the lock of the scope, held by the caller. Check fails when it is not held any more.
type Lock interface {
	Check(ctx context.Context) error
}

// DefaultParallelism is how many operations run at a time. Networks get no faster with more, and from
// some 32 on everything gets slower.
const DefaultParallelism = 8

// Options say how a plan is carried out.
type Options struct {
	// Parallelism is how many operations may run at a time; 0 means DefaultParallelism.
	Parallelism int
	// Events gets every event, one at a time, in the order in which things happen; nil means nobody listens.
	Events func(Event)
	// Now is the clock that the events' durations are read from; without one they are 0.
	Now func() time.Time
	// Stop, once closed, lets what is under way finish and starts nothing more. To break off what is
	// under way, cancel the context.
	Stop <-chan struct{}
}

// EventType is what happened to an operation.
type EventType string

// The types of events.
const (
	EventStart    EventType = "start"
	EventComplete EventType = "complete"
	EventErrored  EventType = "errored"
)

// Event says that one operation on one object has started or ended.
type Event struct {
	Type EventType
	Addr planner.Address
	Kind planner.Kind
	Op   planner.Op
	// ID is the engine ID of the object, where it is known: not when a creation starts.
	ID string
	// Elapsed is how long the operation took; 0 at its start.
	Elapsed time.Duration
	// Err is why it failed. It is in the error that Apply returns, too.
	Err error
}

// Result says what was done.
type Result struct {
	// Added, Changed and Destroyed count what succeeded; a replace counts as one add and one destroy.
	Added, Changed, Destroyed int
	// Skipped are the objects that were left alone, in whole or in part, because something that they need
	// failed or because the work was stopped; sorted.
	Skipped []planner.Address
	// IDs are the engine IDs of all objects afterwards.
	IDs planner.IDs
}

// ErrInterrupted is in the error of Apply when the work was stopped before it was done.
var ErrInterrupted = errors.New("interrupted: what was under way has finished, the rest was not started")

// ErrLockLost is in the error of Apply when the lock of the scope was lost.
var ErrLockLost = errors.New("the lock of the scope was lost, so that nothing more was started")

// Apply carries out a plan. It refuses before it does anything when the plan has conflicts or would
// change an invocation that somebody else runs. When an operation fails, what depends on it is skipped
// and the rest goes on; the error then holds one *planner.ObjectError for each operation that failed.
func Apply(ctx context.Context, p *planner.Plan, provider Provider, lock Lock, o Options) (Result, error) {
	if err := refusal(p); err != nil {
		return Result{}, err
	}
	graph, err := p.Graph()
	if err != nil {
		return Result{}, fmt.Errorf("order the plan: %w", err)
	}
	if o.Parallelism <= 0 {
		o.Parallelism = DefaultParallelism
	}
	if o.Events == nil {
		o.Events = func(Event) {}
	}
	if o.Now == nil {
		o.Now = func() time.Time { return time.Time{} }
	}
	w := newWalk(p, graph, provider, lock, o)
	w.run(ctx)
	return w.result(), w.errors()
}

// refusal says why a plan must not be applied at all.
func refusal(p *planner.Plan) error {
	var errs *multierror.Error
	for _, f := range p.Conflicts() {
		errs = multierror.Append(errs, &planner.ObjectError{Addr: f.Addr, Op: "plan", Decl: f.Decl,
			Err: errors.New(f.Text)})
	}
	for _, l := range p.Locked() {
		errs = multierror.Append(errs, &planner.LockedError{What: string(l.Invocation), Info: l.Info})
	}
	return errs.ErrorOrNil()
}
