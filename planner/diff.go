package planner

import (
	"slices"
	"strings"
)

// Options say what a plan is made for.
type Options struct {
	// Destroy plans the removal of everything that the scope has. Labels alone decide: what is wanted is
	// not looked at.
	Destroy bool
	// Targets restrict the plan to what they contain and what that depends on (with Destroy: what depends
	// on it). Whatever binds the ID of an object that goes is part of the plan all the same: left alone, it
	// would point at nothing.
	Targets []Address
	// Replace asks for objects to be made anew although nothing differs.
	Replace []Address
	// Takeover replaces every object of a scope that is in use by another origin.
	Takeover bool
	// Origin is host and directory of this configuration; "" leaves origins alone.
	Origin string
	// Blocks are the invocation blocks of the configuration, those without an instance included, so that a
	// missing key can be told from a missing block.
	Blocks []Address
	// Lease is the ID of the lease that the caller itself holds: to its holder an invocation is not running.
	Lease string
}

// Diff compares what is wanted with what one look at the engine found. It is pure and deterministic:
// the same input gives the same plan, to the byte. It never fails: what stands in the way (conflicts,
// live leases, other origins) is in the plan, and whoever applies it has to refuse.
func Diff(want []Resource, s Snapshot, o Options) *Plan {
	d := newDiffer(want, s, o)
	for _, c := range d.changes {
		d.judge(c)
	}
	d.pair()
	d.request()
	d.decide()
	d.judgeDuplicates()
	p := &Plan{
		Scope: s.Scope, EngineID: s.EngineID, Destroy: o.Destroy,
		States: d.states, Leases: d.leases, ForeignOrigins: d.origins,
	}
	p.Findings = d.findings()
	p.Warnings = d.warnings()
	p.Changes = make([]Change, 0, len(d.changes))
	for _, c := range d.changes {
		if c.Action == ActionNoOp && !c.has(ReasonConflict) {
			c.Reasons = nil // not selected by the targets
		}
		sortReasons(c.Reasons)
		p.Changes = append(p.Changes, c.Change)
	}
	return p
}

// draft is a change in the making: the change, and the two sides that it comes from.
type draft struct {
	Change
	want *Resource
	have *Object
	// duplicate is set for an object whose address another one holds.
	duplicate bool
	// forged is set when the declared label is not what the digest label says.
	forged bool
}

func (c *draft) add(code ReasonCode, cause Address, text string) {
	c.Reasons = append(c.Reasons, Reason{Code: code, Addr: cause, Text: text})
}

func (c *draft) has(codes ...ReasonCode) bool {
	return slices.ContainsFunc(c.Reasons, func(r Reason) bool { return slices.Contains(codes, r.Code) })
}

// gone reports whether the object that is there now will not be there afterwards.
func (c *draft) gone() bool { return c.Action == ActionReplace || c.Action == ActionDelete }

type differ struct {
	opts    Options
	snap    Snapshot
	changes []*draft // in the order of SortAddresses, duplicates behind the object they double
	byAddr  map[Address]*draft
	// conflicts are the addresses where something foreign stands.
	conflicts map[Address]Conflict
	states    map[Address]InvocationState
	leases    []Lease // live, and not the caller's
	origins   []string
	// agents says whether any agent of the scope is there.
	agents bool
}

func newDiffer(want []Resource, s Snapshot, o Options) *differ {
	d := &differ{opts: o, snap: s, byAddr: map[Address]*draft{}, conflicts: map[Address]Conflict{}}
	entry := func(a Address) *draft {
		c := d.byAddr[a]
		if c == nil {
			c = &draft{Change: Change{Addr: a, Action: ActionNoOp}}
			d.byAddr[a] = c
			d.changes = append(d.changes, c)
		}
		return c
	}
	for i := range s.Objects {
		have := &s.Objects[i]
		c := entry(have.Addr)
		if c.have != nil {
			// Two objects at one address are duplicates, whatever the snapshot calls them.
			d.snap.Duplicates = append(slices.Clip(d.snap.Duplicates), *have)
			continue
		}
		c.have, c.Kind, c.Object, c.Before = have, have.Kind, *have, have.Observed
		c.DependsOn = have.DependsOn
		d.agents = d.agents || have.Addr.Part() == PartAgent
	}
	if !o.Destroy {
		for i := range want {
			r := &want[i]
			c := entry(r.Addr)
			c.want, c.Kind, c.Title, c.Decl, c.After, c.Digest, c.Lost = r, r.Kind, r.Title, r.Decl, r.Fields, r.Digest, r.Lost
			c.DependsOn = r.DependsOn
		}
	}
	d.leases = liveLeases(s.Leases, o.Lease)
	d.changes = slices.DeleteFunc(d.changes, func(c *draft) bool {
		// Pinned images are not ours, and what others use is not ours alone: such a one that nobody wants here
		// is none of this plan's business. Nor is what somebody who runs the invocation is just making anew.
		drop := c.want == nil && (c.Kind == KindPinned || c.have.Shared) || d.isBeingArmed(c)
		if drop {
			delete(d.byAddr, c.Addr)
		}
		return drop
	})
	slices.SortFunc(d.changes, func(a, b *draft) int { return compareAddresses(a.Addr, b.Addr) })
	for _, c := range s.Conflicts {
		d.conflicts[c.Addr] = c
	}
	d.states = d.invocationStates()
	d.origins = foreignOrigins(s, o.Origin)
	return d
}

// judge finds the reasons that lie in the object itself. What they lead to is decided once all are known.
func (d *differ) judge(c *draft) {
	_, conflict := d.conflicts[c.Addr]
	switch {
	case c.have == nil && conflict:
		c.add(ReasonConflict, "", "because something that is not sandplan's stands in its place")
	case c.have == nil:
		if d.missing(c) == FindingDrift {
			c.add(ReasonAbsent, "", "because it is missing")
		} else {
			c.add(ReasonAbsent, "", "because it does not exist yet")
		}
	case c.want == nil:
		d.judgeUnwanted(c)
	case c.have.Kind != c.want.Kind:
		c.add(ReasonUnlabelled, "", "because it is labelled as "+string(c.have.Kind)+", not as "+string(c.want.Kind))
	case !labelled(c.Kind):
		// The ID of an image is its content: it cannot have been changed, only be another one.
		c.Pending = Compare(c.want.Fields, c.have.Observed)
	default:
		d.judgeLabelled(c)
	}
	if c.have != nil && labelled(c.Kind) {
		d.judgeStatus(c)
	}
	d.addComparisonReasons(c)
}

// labelled kinds carry their declaration in a label. Images do not.
func labelled(k Kind) bool { return k != KindImage && k != KindPinned }

func (d *differ) judgeUnwanted(c *draft) {
	switch {
	case !d.opts.Destroy:
		c.Reasons = append(c.Reasons, d.unwanted(c.Addr))
	case len(d.opts.Targets) > 0:
		c.add(ReasonDestroy, "", "because its destruction is asked for")
	default:
		c.add(ReasonDestroy, "", "because the scope is destroyed")
	}
	if labelled(c.Kind) && c.have.Schema == Schema && c.have.Declared != nil {
		c.Drift, c.Extra = Compare(c.have.Declared, c.have.Observed), c.have.Extra
		c.forged = c.have.Digest != Digest(c.have.Declared)
	}
}

func (d *differ) judgeLabelled(c *draft) {
	have := c.have
	c.Extra = have.Extra
	switch {
	case have.Schema != Schema:
		c.Extra = nil // judged by rows that its maker did not know
		c.add(ReasonSchema, "", "because it was made by another version of sandplan")
		return
	case have.Declared == nil:
		c.add(ReasonUnlabelled, "", "because its label cannot be read")
		return
	}
	c.Pending = Compare(c.want.Fields, have.Declared)
	c.Drift = Compare(have.Declared, have.Observed)
	borrowRanges(c.Drift, c.want.Fields)
	if c.forged = !honest(c.want, have, c.Pending); c.forged {
		c.add(ReasonUnlabelled, "", "because its label does not match its own digest")
	}
}

// honest reports whether the digest label of an object is that of its declared label. Where the
// declaration equals the wanted one, comparing digests is enough; hashing 1500 objects is not free.
func honest(want *Resource, have *Object, pending []Mismatch) bool {
	if len(pending) == 0 && want.Digest != "" {
		return have.Digest == want.Digest
	}
	return have.Digest == Digest(have.Declared)
}

// borrowRanges gives mismatches that come from a label, which knows no HCL, the lines that the wanted
// rows were declared at. Both slices are sorted by path.
func borrowRanges(ms []Mismatch, want []Field) {
	for i := range ms {
		at, ok := slices.BinarySearchFunc(want, ms[i].Field.Path, func(f Field, path string) int {
			return strings.Compare(f.Path, path)
		})
		if ok {
			ms[i].Field.Decl, ms[i].Field.Attr = want[at].Decl, want[at].Attr
			ms[i].Field.Sensitive = ms[i].Field.Sensitive || want[at].Sensitive
		}
	}
}

// settle turns the reasons of an object into its action.
func (c *draft) settle() {
	switch {
	case c.has(ReasonConflict):
	case c.have == nil:
		c.Action = ActionCreate
	case c.want == nil:
		c.Action = ActionDelete
	case len(c.Reasons) == 0:
	case c.Kind == KindPinned || c.have.Shared:
		c.Action = ActionCreate // the wanted image is pulled or made; the one that is there is left alone
	case c.restorable():
		c.Action = ActionRestore
	default:
		c.Action = ActionReplace
	}
}

// addComparisonReasons adds the reasons that lie in fields.
func (d *differ) addComparisonReasons(c *draft) {
	if c.want == nil {
		return
	}
	if len(c.Pending) > 0 {
		c.add(ReasonDeclaration, "", "because its declaration was changed")
	}
	switch {
	case len(c.Drift)+len(c.Extra) == 0:
	case d.unfinished(c.Addr):
		c.add(ReasonUnfinished, "", "because its creation was not finished")
	case c.onlySettings():
		c.add(ReasonDrift, "", "because its settings were changed or lost") // a reboot loses them
	default:
		c.add(ReasonDrift, "", "because somebody changed it")
	}
}

// restorable reports whether all that differs can be put back in place.
func (c *draft) restorable() bool {
	for _, r := range c.Reasons {
		if r.Code != ReasonDrift && r.Code != ReasonUnfinished {
			return false
		}
	}
	return c.onlySettings()
}

// onlySettings reports whether nothing but rows of ClassSet differs from the label.
func (c *draft) onlySettings() bool {
	return len(c.Extra) == 0 && !slices.ContainsFunc(c.Drift, func(m Mismatch) bool { return m.Field.Class != ClassSet })
}

// judgeDuplicates adds one deletion for each object whose address another one holds. None of them is
// ever the one to keep: which of two is ours cannot be told by labels, but the other is compared in full.
func (d *differ) judgeDuplicates() {
	for i := range d.snap.Duplicates {
		o := &d.snap.Duplicates[i]
		if o.Kind == KindPinned {
			continue
		}
		c := &draft{have: o, duplicate: true, Change: Change{
			Addr: o.Addr, Kind: o.Kind, Action: ActionDelete, Object: *o, Before: o.Observed, DependsOn: o.DependsOn,
		}}
		why := "because it has no place in the scope" // what a crash left behind, or forged labels
		if first := d.byAddr[o.Addr]; first != nil {
			c.Title, c.Decl = first.Title, first.Decl
			if first.have != nil {
				why = "because another object stands at this address already"
			}
		}
		c.add(ReasonDuplicate, "", why)
		if len(d.opts.Targets) > 0 && !containsAny(d.opts.Targets, o.Addr) {
			c.Action = ActionNoOp
		}
		d.changes = append(d.changes, c)
	}
	slices.SortStableFunc(d.changes, func(a, b *draft) int {
		if n := compareAddresses(a.Addr, b.Addr); n != 0 {
			return n
		}
		if a.duplicate != b.duplicate {
			return map[bool]int{false: -1, true: 1}[a.duplicate]
		}
		return strings.Compare(a.Object.ID, b.Object.ID)
	})
}
