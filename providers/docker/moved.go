package docker

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// A look takes time: lists first, each container after that. What a run does to an invocation meanwhile
// (start it, end it, make its containers anew) is seen in parts that never were together: an armed agent
// that has no lease and has exited, or one that is listed and gone, or is listed and has lost its layer, of
// which the engine then says 500. No lock keeps a plan or an audit from looking just then, so what does not fit is
// looked at again as long as somebody works there. Where many runs begin and end, somebody always does: each
// invocation is shown as it was when it was looked at in peace, and not all have to be so in the same look.

// odd notes that something at an address is not as it should be.
func (l *look) odd(a planner.Address) { l.mark(&l.oddities, a) }

func (l *look) mark(set *map[planner.Address]bool, a planner.Address) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *set == nil {
		*set = map[planner.Address]bool{}
	}
	(*set)[a.Invocation()] = true
}

// noteLeaving notes a container, shown in full, that somebody is removing at this moment, or will in the next: a
// helper is there for as long as it takes to set a bridge. Docker forgets that a container is being removed when that
// has failed, and calls the container dead from then on: that one stays, and is told.
func (l *look) noteLeaving(f found, v tree) {
	if engineStatus(v) == "removing" || l.isInUse(f.kind, v) {
		l.mark(&l.leaving, f.addr)
	}
}

// leastLooks are taken before a look counts as settled that somebody works on, however long one takes.
const leastLooks = 10

// observe looks at everything until each invocation was looked at while nobody worked on it.
func (l *look) observe(ctx context.Context) (planner.Snapshot, error) {
	over := time.NewTimer(l.engine.passing)
	defer over.Stop()
	late := false
	inPeace := map[planner.Address]planner.Snapshot{}
	var shared []string
	for looks := 1; ; looks++ {
		l.oddities, l.leaving, l.stronger = nil, nil, nil
		s, err := l.snapshot(ctx, nil, nil)
		if err != nil {
			return s, err
		}
		moving, err := l.moving(ctx, s)
		if err != nil || len(moving) == 0 {
			return s, err
		}
		// What was in peace beside another uplink or shim, or beside none, does not go with these.
		before := shared
		if shared = l.footprints(l.listed)[""]; moving[""] || !slices.Equal(before, shared) {
			clear(inPeace)
		}
		for _, o := range s.Objects {
			if inv := o.Addr.Invocation(); inv != "" && !moving[inv] {
				inPeace[inv] = s
			}
		}
		unseen := maps.Clone(moving)
		maps.DeleteFunc(unseen, func(inv planner.Address, _ bool) bool { _, seen := inPeace[inv]; return seen })
		if len(unseen) == 0 || late && looks >= leastLooks {
			return together(s, moving, inPeace), nil
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

// together shows the invocations that somebody works on as they were in the newest look that met each in peace, where
// there was one, and all else as it is.
func together(s planner.Snapshot, moving map[planner.Address]bool, inPeace map[planner.Address]planner.Snapshot) planner.Snapshot {
	for inv := range moving {
		before, seen := inPeace[inv]
		if !seen {
			continue
		}
		s.Objects = replaced(s.Objects, before.Objects, func(o planner.Object) bool { return o.Addr.Invocation() == inv })
		s.Duplicates = replaced(s.Duplicates, before.Duplicates, func(o planner.Object) bool { return o.Addr.Invocation() == inv })
		s.Leases = replaced(s.Leases, before.Leases, func(l planner.Lease) bool { return l.Invocation == inv })
	}
	arrange(s.Objects)
	arrange(s.Duplicates)
	return s
}

// replaced has those of before that are selected in place of those of now.
func replaced[T any](now, before []T, selected func(T) bool) []T {
	var out []T
	for _, v := range now {
		if !selected(v) {
			out = append(out, v)
		}
	}
	for _, v := range before {
		if selected(v) {
			out = append(out, v)
		}
	}
	return out
}

// moving are the invocations that look odd and whose containers are others by now, or in another state, than
// when the lists were read, or are on their way. Where nothing is odd, nothing is asked.
func (l *look) moving(ctx context.Context, s planner.Snapshot) (map[planner.Address]bool, error) {
	held := map[planner.Address]bool{}
	for _, lease := range s.Leases {
		if lease.Live {
			held[lease.Invocation] = true
		} else {
			l.odd(lease.Invocation) // its holder died, or has given it back since the list was read
		}
	}
	for _, o := range s.Objects {
		if !held[o.Addr.Invocation()] && (o.Status == planner.StatusRunning || o.Status == planner.StatusExited) {
			l.odd(o.Addr)
		}
	}
	l.findMissing(s)
	out := map[planner.Address]bool{}
	maps.Copy(out, l.leaving)
	for inv := range held {
		if isBeingArmed(s, inv) {
			out[inv] = true
		}
	}
	if len(l.oddities) == 0 {
		return out, nil
	}
	now, err := l.engine.lists(ctx, url.Values{"filters": {scopeFilter(l.scope)}})
	if err != nil {
		return nil, err
	}
	before, after := l.footprints(l.listed), l.footprints(now)
	for inv := range l.oddities {
		if !slices.Equal(before[inv], after[inv]) {
			out[inv] = true
		}
	}
	return out, nil
}

// findMissing notes what is not there although there are agents, which are made last and removed first: an
// apply or a destroy may be at work, and none of the lists is read at the same moment as another.
func (l *look) findMissing(s planner.Snapshot) {
	there := map[planner.Address]bool{}
	for _, o := range s.Objects {
		there[o.Addr] = true
	}
	for _, o := range s.Objects {
		inv := o.Addr.Invocation()
		if inv == "" || o.Addr.Part() != planner.PartAgent {
			continue
		}
		for _, a := range []planner.Address{planner.AddrImage, planner.AddrShim, planner.AddrUplink, inv.With(planner.PartNetwork), inv.With(planner.PartProxy)} {
			if !there[a] {
				l.odd(a)
			}
		}
	}
}

// isBeingArmed reports whether the holder of an invocation's lease has taken containers away and not made them
// anew yet, as every run does when it is over.
func isBeingArmed(s planner.Snapshot, inv planner.Address) bool {
	has := func(part string) bool { _, ok := s.Object(inv.With(part)); return ok }
	return has(planner.PartNetwork) && !(has(planner.PartProxy) && has(planner.PartAgent))
}

// footprints are what the lists hold of each invocation, and at "" of what all share: networks, volumes, and the
// containers, leases among them, with their states in the engine's own words: from exited to removing is a step. The
// scope's lock is nothing that anybody looks at; it comes and goes with every run.
func (l *look) footprints(listed map[listName][]tree) map[planner.Address][]string {
	out := map[planner.Address][]string{}
	for list, objects := range listed {
		for _, v := range objects {
			if id, ok := readIdentity(labelsOf(treeLabels(v))); ok && id.scope == l.scope && id.kind != kindLock {
				inv := id.address.Invocation()
				out[inv] = append(out[inv], fmt.Sprint(list, treeID(v), v["CreatedAt"], engineStatus(v)))
			}
		}
	}
	for _, f := range out {
		slices.Sort(f)
	}
	return out
}
