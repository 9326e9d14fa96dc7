package launch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// ear hears the engine's events without a gap, over as many connections as it takes. An engine remembers
// its last 256 events and does not say what it has forgotten. So each connection after the first begins
// with what was heard last: if the engine repeats that, it has forgotten nothing since; if it does not,
// something may have happened that nobody will ever tell, and that ends the run.
type ear struct {
	watch func(context.Context, time.Time) (<-chan planner.Signal, error)
	// past is all that the engine remembers of the time since a moment.
	past func(context.Context, time.Time) ([]planner.Signal, error)
	hear func(planner.Signal)
	// since is when the first connection begins: what happened before is judged by looks, and never asked for.
	since time.Time
	// recent is what was heard last, in the order in which it came.
	recent []planner.Signal
	// again is what a later connection may repeat: how often each signal was heard.
	again map[signalKey]int
}

// signalKey is a signal in a form that can be compared.
type signalKey struct {
	at                          int64
	kind, action, id, container string
}

func keyOf(s planner.Signal) signalKey {
	return signalKey{s.At.UnixNano(), s.Type, s.Action, s.ID, s.Container}
}

const (
	// remembers is how many events an engine remembers.
	remembers = 256
	// maxRecent is more than an engine repeats.
	maxRecent = 2 * remembers
	// overlap is how much is asked for again: two things that happen at once may come in either order.
	overlap = time.Second
	// repeatLimit is how long an engine repeats what it remembers before it is asked whether it still does; it does
	// so before all else, and so at once, but for a machine that stands still meanwhile.
	repeatLimit = 5 * time.Second
	// reconnectPause is between two attempts to listen again.
	reconnectPause = 200 * time.Millisecond
)

var errForgotten = errors.New("the engine's events do not go on where they had ended")

// follow hears signals until ctx ends, or until it cannot be certain any more to hear everything. cut is
// called each time a connection is lost.
func (e *ear) follow(ctx context.Context, signals <-chan planner.Signal, cut func()) error {
	for {
		for s := range signals {
			e.take(ctx, s)
		}
		if ctx.Err() != nil {
			return nil
		}
		cut()
		next, err := e.reconnect(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		signals = next
	}
}

// take hears a signal, unless it is one that was heard before.
func (e *ear) take(ctx context.Context, s planner.Signal) {
	if k := keyOf(s); e.again[k] > 0 {
		e.again[k]--
		return
	}
	if e.isEcho(ctx, s) {
		return
	}
	if len(e.recent) == maxRecent {
		e.recent = append(e.recent[:0], e.recent[1:]...)
	}
	e.recent = append(e.recent, s)
	e.hear(s)
}

// isEcho reports whether something is told for the second time that happened once. What an engine writes down at the
// moment at which somebody begins to listen it may tell twice: out of its memory, and as news. How often it did
// happen, that memory says; where it does not, it counts as often as it is told.
func (e *ear) isEcho(ctx context.Context, s planner.Signal) bool {
	heard := times(e.recent, s)
	if heard == 0 {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, repeatLimit)
	defer cancel()
	remembered, err := e.past(limited, s.At)
	n := times(remembered, s)
	return err == nil && n > 0 && n <= heard
}

// times is how often a signal is among others.
func times(among []planner.Signal, s planner.Signal) int {
	n := 0
	for _, other := range among {
		if keyOf(other) == keyOf(s) {
			n++
		}
	}
	return n
}

// reconnect listens again, for as long as an engine may fail to answer, and returns once it is certain
// that nothing was missed.
func (e *ear) reconnect(ctx context.Context) (<-chan planner.Signal, error) {
	limit, end := context.WithTimeoutCause(ctx, engineLimit, errLate)
	defer end()
	for {
		signals, err := e.listenAgain(ctx, limit)
		if err == nil || errors.Is(err, errForgotten) {
			return signals, err
		}
		select {
		case <-time.After(reconnectPause):
		case <-limit.Done():
			return nil, fmt.Errorf("its events ended, and it tells no more: %w", err)
		}
	}
}

// listenAgain makes one attempt. The connection lives as long as life, if it is good.
func (e *ear) listenAgain(life, limit context.Context) (<-chan planner.Signal, error) {
	ctx, quit := context.WithCancel(life)
	inTime := context.AfterFunc(limit, quit)
	last, heard := planner.Signal{At: e.since}, len(e.recent) > 0
	if heard {
		last = e.recent[len(e.recent)-1]
	}
	signals, err := e.watch(ctx, e.before(last))
	if err != nil {
		quit()
		return nil, err
	}
	e.again = map[signalKey]int{}
	for _, s := range e.recent {
		e.again[keyOf(s)]++
	}
	if heard {
		err = e.repeated(limit, signals, last)
	} else {
		err = e.allThere(limit)
	}
	if !inTime() && err == nil {
		err = context.Cause(limit)
	}
	if err != nil {
		quit()
		for range signals { // whoever sends them must not wait
		}
		return nil, err
	}
	context.AfterFunc(life, quit)
	return signals, nil
}

// before is where to begin so that a signal, and what may have happened at once with it, is told again.
func (e *ear) before(s planner.Signal) time.Time {
	first := e.since
	if s.At.Before(first) {
		first = s.At // the engine's clock was set back
	}
	if at := s.At.Add(-overlap); at.After(first) {
		return at
	}
	return first
}

// allThere makes sure that an engine remembers all since the beginning, of which nothing was heard yet that it could
// repeat.
func (e *ear) allThere(limit context.Context) error {
	remembered, err := e.past(limit, e.since)
	if err == nil && len(remembered) >= remembers {
		err = errForgotten
	}
	return err
}

// repeated hears a new connection until it has repeated what was heard last.
func (e *ear) repeated(limit context.Context, signals <-chan planner.Signal, last planner.Signal) error {
	timer := time.NewTimer(repeatLimit)
	defer timer.Stop()
	for {
		select {
		case s, ok := <-signals:
			if !ok {
				return errors.New("the connection was closed")
			}
			e.take(limit, s)
			if keyOf(s) == keyOf(last) {
				return nil
			}
		case <-timer.C:
			// It has nothing to repeat, or has not come to it yet. Silence says neither; an answer that ends does.
			remembered, err := e.past(limit, e.before(last))
			if err != nil {
				return err
			}
			if times(remembered, last) == 0 {
				return errForgotten
			}
			timer.Reset(repeatLimit)
		case <-limit.Done():
			return context.Cause(limit)
		}
	}
}
