package docker

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// A look takes time: lists first, each container after that. What a run does to an invocation meanwhile
// (start it, end it, make its containers anew) is seen in parts that never were together: an armed agent
// that has no lease and has exited, or one that is listed and gone. No lock keeps a plan or an audit from
// looking just then, so what does not fit is looked at again as long as somebody works there.

// odd notes that something at an address is not as it should be.
func (l *look) odd(a planner.Address) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.oddities == nil {
		l.oddities = map[planner.Address]bool{}
	}
	l.oddities[a.Invocation()] = true
}

// leastLooks are taken before a look counts as settled that somebody works on, however long one takes.
const leastLooks = 10

// observe looks at everything until nobody was working on what does not fit.
func (l *look) observe(ctx context.Context) (planner.Snapshot, error) {
	over := time.NewTimer(l.engine.passing)
	defer over.Stop()
	late := false
	for looks := 1; ; looks++ {
		l.oddities = nil
		s, err := l.snapshot(ctx, nil, nil)
		if err != nil {
			return s, err
		}
		moved, err := l.moved(ctx, s)
		if err != nil || !moved || late && looks >= leastLooks {
			return s, err
		}
		select {
		case <-over.C:
			late = true
		case <-time.After(patienceStep):
		case <-ctx.Done():
			return s, ctx.Err()
		}
	}
}

// moved reports whether the containers of an invocation that looks odd are others by now, or in another
// state, than when the lists were read. Where nothing is odd, nothing is asked.
func (l *look) moved(ctx context.Context, s planner.Snapshot) (bool, error) {
	for _, o := range s.Objects {
		held := slices.ContainsFunc(s.Leases, func(l planner.Lease) bool { return l.Live && l.Invocation == o.Addr.Invocation() })
		if !held && (o.Status == planner.StatusRunning || o.Status == planner.StatusExited) {
			l.odd(o.Addr)
		}
	}
	for _, lease := range s.Leases {
		if !lease.Live {
			l.odd(lease.Invocation) // its holder died, or has given it back since the list was read
		}
	}
	if isBeingArmed(s) {
		return true, nil
	}
	delete(l.oddities, "") // what all share is nobody's to work on
	if len(l.oddities) == 0 {
		return false, nil
	}
	now, err := l.engine.list(ctx, listContainers, url.Values{"all": {"1"}, "filters": {scopeFilter(l.scope)}})
	if err != nil {
		return false, err
	}
	before, after := l.footprints(l.listed[listContainers]), l.footprints(now)
	for inv := range l.oddities {
		if !slices.Equal(before[inv], after[inv]) {
			return true, nil
		}
	}
	return false, nil
}

// isBeingArmed reports whether somebody who holds a lease has taken containers away and not made them
// anew yet, as every run does when it is over.
func isBeingArmed(s planner.Snapshot) bool {
	return slices.ContainsFunc(s.Leases, func(lease planner.Lease) bool {
		has := func(part string) bool { _, ok := s.Object(lease.Invocation.With(part)); return ok }
		return lease.Live && has(planner.PartNetwork) && !(has(planner.PartProxy) && has(planner.PartAgent))
	})
}

// footprints are the containers of each invocation, leases among them, with their states.
func (l *look) footprints(containers []tree) map[planner.Address][]string {
	out := map[planner.Address][]string{}
	for _, c := range containers {
		if id, ok := readIdentity(labelsOf(treeLabels(c))); ok && id.scope == l.scope {
			inv := id.address.Invocation()
			out[inv] = append(out[inv], fmt.Sprint(treeID(c), treeStatus(c)))
		}
	}
	for _, f := range out {
		slices.Sort(f)
	}
	return out
}
