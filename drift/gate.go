package drift

import (
	"fmt"
	"slices"

	"github.com/sandplan/sandplan/planner"
)

// Look is what a gate looks at, and for whom.
type Look struct {
	// Run are the invocations, or runners of invocations, that are about to start.
	Run []planner.Address
	// Lease is the ID of the lease that the caller itself holds.
	Lease string
	// Started are the objects that the caller itself has started: they must be running, everything else
	// must never have been started.
	Started []planner.Address
	// Only restricts the look to what these addresses contain, for a snapshot that was taken of them alone.
	Only []planner.Address
}

// Verdict is the answer of a gate.
type Verdict struct {
	// Refusals are what forbids the start, sorted. With one of them, nothing may start.
	Refusals []planner.Finding
	// Rearm is what would have to be armed again before the start because it has run; apart from that,
	// and from Refusals, it is as declared.
	Rearm []planner.Address
}

// OK reports whether the start is allowed as things are.
func (v Verdict) OK() bool { return len(v.Refusals) == 0 && len(v.Rearm) == 0 }

// Gate judges whether everything that the scope has is what the configuration wants, field by field.
// It compares what was observed with want and trusts no label but for finding the object: two objects
// at one address, one that nobody wants, and one in place of another refuse. Not judged are the objects of
// invocations that are absent, spent or under somebody's live lease, unless they are to run.
func Gate(want []planner.Resource, s planner.Snapshot, l Look) Verdict {
	g := gate{Look: l, snap: &s, states: planner.States(want, s, l.Lease), have: map[planner.Address]*planner.Object{}}
	for i := range s.Objects {
		o := &s.Objects[i]
		if g.have[o.Addr] != nil {
			g.out.Refusals = append(g.out.Refusals, planner.DuplicateFinding(*o, true))
			continue
		}
		g.have[o.Addr] = o
	}
	for i := range s.Duplicates {
		o := &s.Duplicates[i]
		if g.looked(o.Addr) {
			g.out.Refusals = append(g.out.Refusals, planner.DuplicateFinding(*o, g.have[o.Addr] != nil))
		}
	}
	wanted := map[planner.Address]*planner.Resource{}
	needed := g.images(want)
	for i := range want {
		wanted[want[i].Addr] = &want[i]
		if g.judged(want[i].Addr) && (want[i].Kind != planner.KindPinned || needed[want[i].Addr]) {
			g.judge(&want[i])
		}
	}
	for _, o := range s.Objects {
		if wanted[o.Addr] == nil && o.Kind != planner.KindPinned && !o.Shared && g.judged(o.Addr) {
			g.refuse(nil, o.Addr, "is not wanted by the configuration; `sandplan apply` removes it")
		}
	}
	for _, c := range s.Conflicts {
		if g.judged(c.Addr) {
			g.out.Refusals = append(g.out.Refusals, planner.ConflictFinding(wanted[c.Addr], c))
		}
	}
	for _, a := range l.Run {
		g.admit(want, a)
	}
	planner.SortFindings(g.out.Refusals)
	planner.SortAddresses(g.out.Rearm)
	g.out.Rearm = slices.Compact(g.out.Rearm)
	return g.out
}

type gate struct {
	Look
	snap   *planner.Snapshot
	states map[planner.Address]planner.InvocationState
	have   map[planner.Address]*planner.Object
	out    Verdict
}

func (g *gate) refuse(r *planner.Resource, a planner.Address, text string) {
	f := planner.Finding{Kind: planner.FindingDrift, Addr: a, Text: text}
	if r != nil {
		f.Decl = r.Decl
	}
	g.out.Refusals = append(g.out.Refusals, f)
}

// looked reports whether the snapshot covers the address at all.
func (g *gate) looked(a planner.Address) bool { return len(g.Only) == 0 || containsAny(g.Only, a) }

// judged reports whether the object at an address has to be right for the start.
func (g *gate) judged(a planner.Address) bool {
	if !g.looked(a) {
		return false
	}
	inv := a.Invocation()
	if inv == "" || g.runs(inv) {
		return true
	}
	switch g.states[inv] {
	case planner.StateAbsent, planner.StateSpent, planner.StateRunning:
		return false
	}
	return true
}

// images are the images that something judged is made from: one that only an invocation without an agent
// needs may well be absent.
func (g *gate) images(want []planner.Resource) map[planner.Address]bool {
	needed := map[planner.Address]bool{}
	for _, r := range want {
		if g.judged(r.Addr) {
			for _, a := range r.DependsOn {
				needed[a] = true
			}
		}
	}
	return needed
}

// runs reports whether something of the invocation is about to start.
func (g *gate) runs(inv planner.Address) bool {
	return slices.ContainsFunc(g.Run, func(a planner.Address) bool { return a.Contains(inv) || a.Invocation() == inv })
}

// judge holds one object against what is wanted.
func (g *gate) judge(r *planner.Resource) {
	o := g.have[r.Addr]
	if o == nil {
		g.refuse(r, r.Addr, "is missing; `sandplan apply` creates it")
		return
	}
	if o.Kind != r.Kind {
		g.refuse(r, r.Addr, "is labelled as "+string(o.Kind)+", not as "+string(r.Kind))
		return
	}
	for _, m := range planner.Compare(r.Fields, o.Observed) {
		g.out.Refusals = append(g.out.Refusals, planner.MismatchFinding(planner.FindingDrift, r, r.Addr, m))
	}
	for _, e := range o.Extra {
		g.out.Refusals = append(g.out.Refusals, planner.ExtraFinding(planner.FindingDrift, r, r.Addr, e))
	}
	g.judgeLabel(r, o)
	g.judgeStatus(r, o)
}

// judgeLabel refuses an object whose label was tampered with: nothing hangs on it here, but who forged
// it forged the object, and every other command would be misled by it.
func (g *gate) judgeLabel(r *planner.Resource, o *planner.Object) {
	if r.Kind == planner.KindImage || r.Kind == planner.KindPinned {
		return
	}
	switch {
	case o.Schema != planner.Schema:
		g.refuse(r, r.Addr, "was made by another version of sandplan; `sandplan apply` replaces it")
	case o.Declared == nil:
		g.refuse(r, r.Addr, "has a label that cannot be read")
	case o.Digest != r.Digest && o.Digest != planner.Digest(o.Declared):
		g.refuse(r, r.Addr, "has a label that does not match its own digest")
	}
}

// judgeStatus refuses what runs though nobody started it here, and asks to arm again what has run.
func (g *gate) judgeStatus(r *planner.Resource, o *planner.Object) {
	started := slices.Contains(g.Started, r.Addr)
	switch {
	case started && o.Status != planner.StatusRunning:
		g.refuse(r, r.Addr, "has stopped running")
	case started, o.Status == planner.StatusNone, o.Status == planner.StatusCreated:
	case o.Status != planner.StatusExited:
		g.refuse(r, r.Addr, "was started outside a run")
	case r.Addr.Invocation() == "":
		g.refuse(r, r.Addr, "was started, and nothing ever starts it")
	case containsAny(g.Run, r.Addr):
		g.out.Rearm = append(g.out.Rearm, r.Addr)
	default:
		// The agent of a runner's invocation, or the other way round: kept as it ended, it starts nothing.
	}
}

// admit refuses to start what does not exist as a whole, or belongs to somebody else's run.
func (g *gate) admit(want []planner.Resource, a planner.Address) {
	if !slices.ContainsFunc(want, func(r planner.Resource) bool { return a.Contains(r.Addr) }) {
		g.refuse(nil, a, "is not in the configuration")
	}
	for _, l := range g.snap.Leases {
		if l.Live && l.Info.ID != g.Lease && (a.Contains(l.Invocation) || l.Invocation == a.Invocation()) {
			g.refuse(nil, l.Invocation, fmt.Sprintf("is running: its lease is held by %s (%s, lease %.12s)",
				l.Info.Who, l.Info.Operation, l.Info.ID))
		}
	}
}

func containsAny(as []planner.Address, a planner.Address) bool {
	return slices.ContainsFunc(as, func(t planner.Address) bool { return t.Contains(a) })
}
