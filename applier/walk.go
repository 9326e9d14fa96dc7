package applier

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/sandplan/sandplan/planner"
)

type stepState int

const (
	stepWaiting stepState = 0
	stepRunning stepState = 1
	stepDone    stepState = 2
	stepFailed  stepState = 3
	stepSkipped stepState = 4
)

// walk is one pass over a graph. One goroutine schedules, emits events and keeps all state; the others
// only call the provider.
type walk struct {
	plan     *planner.Plan
	graph    planner.Graph
	provider Provider
	lock     Lock
	Options

	state   []stepState
	first   int // no step before it waits
	started []time.Time
	ids     planner.IDs
	running int
	// deletes is how many deletions are neither done, failed nor skipped: creations wait for them.
	deletes int
	ended   chan ended
	failed  []*planner.ObjectError
	// halt is why nothing more is started, nil while work goes on.
	halt error
}

// ended is what came of a step.
type ended struct {
	step int
	id   string
	err  error
	lock error // the lock was lost: the operation was not even tried
}

func newWalk(p *planner.Plan, g planner.Graph, provider Provider, lock Lock, o Options) *walk {
	w := &walk{plan: p, graph: g, provider: provider, lock: lock, Options: o,
		state: make([]stepState, len(g)), started: make([]time.Time, len(g)),
		ids: planner.IDs{}, ended: make(chan ended)}
	for _, c := range p.Changes {
		if _, ok := w.ids[c.Addr]; !ok && c.Object.ID != "" {
			w.ids[c.Addr] = c.Object.ID
		}
	}
	for _, s := range g {
		if s.Op == planner.OpDelete {
			w.deletes++
		}
	}
	return w
}

func (w *walk) run(ctx context.Context) {
	stop := w.Stop
	for {
		select { // before anything is started, not only while something runs
		case <-stop:
			w.halt, stop = firstError(w.halt, ErrInterrupted), nil
		case <-ctx.Done():
			w.halt = firstError(w.halt, context.Cause(ctx))
		default:
		}
		w.schedule(ctx)
		if w.running == 0 {
			return
		}
		select {
		case e := <-w.ended:
			w.finish(e)
		case <-stop:
			w.halt, stop = firstError(w.halt, ErrInterrupted), nil
		}
	}
}

// schedule starts what can be started, in the order of the graph.
func (w *walk) schedule(ctx context.Context) {
	for w.first < len(w.graph) && w.state[w.first] != stepWaiting {
		w.first++
	}
	for i := w.first; i < len(w.graph); i++ {
		s := w.graph[i]
		if w.state[i] != stepWaiting {
			continue
		}
		if w.halt == nil && w.running == w.Parallelism {
			return
		}
		switch w.ready(s) {
		case stepSkipped:
			w.state[i] = stepSkipped
			w.over(s)
		case stepRunning:
			if w.halt == nil && (s.Op == planner.OpDelete || w.deletes == 0) {
				w.start(ctx, i)
			}
		}
	}
}

// ready says what can become of a waiting step now.
func (w *walk) ready(s planner.Step) stepState {
	for _, i := range s.After {
		switch w.state[i] {
		case stepFailed, stepSkipped:
			return stepSkipped
		case stepWaiting, stepRunning:
			return stepWaiting
		}
	}
	return stepRunning
}

func (w *walk) over(s planner.Step) {
	if s.Op == planner.OpDelete {
		w.deletes--
	}
}

func (w *walk) start(ctx context.Context, i int) {
	s := w.graph[i]
	c := w.plan.Changes[s.Change]
	w.state[i] = stepRunning
	w.started[i] = w.Now()
	w.running++
	e := w.event(EventStart, i)
	if s.Op != planner.OpCreate {
		e.ID = c.Object.ID
	}
	w.Events(e)
	ids := w.idsFor(c)
	go func() {
		if err := w.lock.Check(ctx); err != nil {
			w.ended <- ended{step: i, lock: err}
			return
		}
		e := ended{step: i, id: c.Object.ID}
		switch s.Op {
		case planner.OpDelete:
			e.err = w.provider.Delete(ctx, c.Object)
		case planner.OpRestore:
			e.err = w.provider.Restore(ctx, c, ids)
		case planner.OpCreate:
			var o planner.Object
			o, e.err = w.provider.Create(ctx, c.Resource(), ids)
			e.id = o.ID
		}
		w.ended <- e
	}()
}

// idsFor are the IDs that an operation may need: of what the object depends on or refers to, and its own.
func (w *walk) idsFor(c planner.Change) planner.IDs {
	ids := planner.IDs{}
	need := func(a planner.Address) {
		if id := w.ids[a]; id != "" {
			ids[a] = id
		}
	}
	need(c.Addr)
	for _, a := range c.DependsOn {
		need(a)
	}
	for _, f := range c.After {
		if a, ok := f.Value.Ref(); ok {
			need(a)
		}
	}
	return ids
}

func (w *walk) event(t EventType, i int) Event {
	s := w.graph[i]
	return Event{Type: t, Addr: s.Addr, Kind: w.plan.Changes[s.Change].Kind, Op: s.Op}
}

// finish takes in what came of a step.
func (w *walk) finish(r ended) {
	w.running--
	s := w.graph[r.step]
	w.over(s)
	c := w.plan.Changes[s.Change]
	if r.lock != nil {
		w.state[r.step] = stepSkipped
		w.halt = firstError(w.halt, fmt.Errorf("%w: %w", ErrLockLost, r.lock))
		r.err = w.halt
	} else if r.err != nil {
		w.state[r.step] = stepFailed
		w.failed = append(w.failed, &planner.ObjectError{Addr: s.Addr, Op: string(s.Op), Decl: c.Decl, Err: r.err})
	} else {
		w.state[r.step] = stepDone
		switch {
		case s.Op == planner.OpDelete && w.ids[s.Addr] == c.Object.ID:
			delete(w.ids, s.Addr)
		case s.Op == planner.OpCreate:
			w.ids[s.Addr] = r.id
		}
	}
	e := w.event(EventComplete, r.step)
	if e.ID, e.Elapsed = r.id, w.Now().Sub(w.started[r.step]); r.err != nil {
		e.Type, e.Err = EventErrored, r.err
	}
	w.Events(e)
}

func (w *walk) result() Result {
	r := Result{IDs: w.ids}
	skipped := map[planner.Address]bool{}
	for i, s := range w.graph {
		switch {
		case w.state[i] == stepWaiting || w.state[i] == stepSkipped:
			skipped[s.Addr] = true
		case w.state[i] != stepDone:
		case s.Op == planner.OpCreate:
			r.Added++
		case s.Op == planner.OpRestore:
			r.Changed++
		case s.Op == planner.OpDelete:
			r.Destroyed++
		}
	}
	r.Skipped = slices.Collect(maps.Keys(skipped))
	planner.SortAddresses(r.Skipped)
	return r
}

// errors are all that went wrong: why the work was cut short, then what failed, sorted.
func (w *walk) errors() error {
	var errs *multierror.Error
	if w.halt != nil {
		errs = multierror.Append(errs, w.halt)
	}
	slices.SortStableFunc(w.failed, func(a, b *planner.ObjectError) int {
		switch {
		case a.Addr.Less(b.Addr):
			return -1
		case b.Addr.Less(a.Addr):
			return 1
		}
		return 0
	})
	for _, e := range w.failed {
		errs = multierror.Append(errs, e)
	}
	return errs.ErrorOrNil()
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
