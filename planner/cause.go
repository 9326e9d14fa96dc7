package planner

import (
	"slices"
	"strings"
)

// reasonRank orders the reasons of one change: the decisive one first.
var reasonRank = map[ReasonCode]int{
	ReasonConflict: 0, ReasonDestroy: 1, ReasonTakeover: 2, ReasonDuplicate: 3, ReasonNotConfigured: 4,
	ReasonNoKey: 5, ReasonNoPart: 6, ReasonSchema: 7, ReasonUnlabelled: 8, ReasonStray: 9, ReasonDrift: 10,
	ReasonDeclaration: 11, ReasonUnfinished: 12, ReasonSpent: 13, ReasonDependency: 14, ReasonRequested: 15,
	ReasonAbsent: 16,
}

func sortReasons(rs []Reason) {
	slices.SortStableFunc(rs, func(a, b Reason) int {
		if n := reasonRank[a.Code] - reasonRank[b.Code]; n != 0 {
			return n
		}
		return compareAddresses(a.Addr, b.Addr)
	})
}

// request adds what the user asked for beyond the configuration.
func (d *differ) request() {
	for _, c := range d.changes {
		if c.want == nil || c.have == nil || !labelled(c.Kind) {
			continue
		}
		if containsAny(d.opts.Replace, c.Addr) {
			c.add(ReasonRequested, "", "because -replace asks for it")
		}
		if d.opts.Takeover && len(d.origins) > 0 {
			c.add(ReasonTakeover, "", "because the scope is taken over")
		}
	}
}

// decide gives every selected object its action. Whatever binds the ID of an object that gets another
// one is replaced too, and so on, selected or not: left alone, it would point at nothing.
func (d *differ) decide() {
	dependents := map[Address][]*draft{}
	for _, c := range d.changes {
		if c.have != nil {
			for _, a := range c.dependencies() {
				dependents[a] = append(dependents[a], c)
			}
		}
	}
	var queue, caused []*draft
	settle := func(c *draft) {
		c.settle()
		queue = append(queue, c)
	}
	sel := d.selection(settle)
	for len(queue) > 0 {
		c := queue[0]
		queue = queue[1:]
		if !c.shakes() {
			continue
		}
		for _, dep := range dependents[c.Addr] {
			if dep.gone() {
				continue
			}
			if d.opts.Destroy && !sel.in[dep.Addr] {
				dep.Reasons = nil // nobody asked for this one
			}
			sel.take(dep) // what it is made anew from has to be right, too
			if !dep.gone() {
				dep.Action = map[bool]Action{true: ActionReplace, false: ActionDelete}[dep.want != nil]
				queue = append(queue, dep)
			}
			caused = append(caused, dep)
		}
	}
	// Named only now: the cause is the first of all that will go, not the one that was found first.
	for _, c := range caused {
		if len(c.Reasons) > 0 {
			continue
		}
		for _, a := range c.dependencies() {
			if x := d.byAddr[a]; x != nil && x.shakes() {
				c.add(ReasonDependency, a, "because "+relative(c.Addr, a)+" "+fate(x.Action))
				break
			}
		}
	}
}

// dependencies are what the object depends on now or will depend on, sorted.
func (c *draft) dependencies() []Address {
	out := slices.Clone(c.DependsOn)
	if c.have != nil {
		for _, a := range c.have.DependsOn {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	SortAddresses(out)
	return out
}

// shakes reports whether what depends on this object has to be made anew. The ID of an image is its
// content, so creating it changes no ID; and nothing binds the ID of a runner.
func (c *draft) shakes() bool {
	switch {
	case c.duplicate || c.Kind == KindRunner || c.Kind == KindPinned:
		return false
	case c.Action == ActionCreate:
		return c.Kind != KindImage
	}
	return c.gone()
}

func fate(a Action) string {
	return map[Action]string{
		ActionReplace: "will be replaced", ActionDelete: "will be destroyed", ActionCreate: "is missing",
	}[a]
}

// relative names b as seen from a: "its network" within one invocation, the address elsewhere.
func relative(a, b Address) string {
	if inv := a.Invocation(); inv != "" && inv == b.Invocation() && b.Part() != "" {
		return "its " + b.Part()
	}
	return string(b)
}

// unwanted says why an object of ours is not wanted any more.
func (d *differ) unwanted(a Address) Reason {
	inv := a.Invocation()
	if inv == "" {
		return Reason{Code: ReasonNotConfigured, Text: "because nothing in the configuration uses it any more"}
	}
	block, key := inv.Block(), strings.TrimPrefix(string(inv), string(inv.Block()))
	var sameInstance, sameBlock, plain bool
	for _, c := range d.changes {
		if c.want == nil || c.Addr.Invocation() == "" || !block.Contains(c.Addr) {
			continue
		}
		sameBlock = true
		sameInstance = sameInstance || c.Addr.Invocation() == inv
		plain = plain || c.Addr.Invocation() == block
	}
	switch {
	case sameInstance:
		return Reason{Code: ReasonNoPart, Text: "because " + string(inv) + " has no " + a.Part() + " any more"}
	case !sameBlock && !slices.Contains(d.opts.Blocks, block):
		return Reason{Code: ReasonNotConfigured, Text: "because " + string(block) + " is no longer in the configuration"}
	case key == "":
		return Reason{Code: ReasonNoKey, Text: "because " + string(block) + " has for_each or count now"}
	case plain:
		return Reason{Code: ReasonNoKey, Text: "because " + string(block) + " has neither for_each nor count any more"}
	case strings.HasPrefix(key, `["`):
		return Reason{Code: ReasonNoKey, Text: "because the key " + strings.Trim(key, "[]") + " is no longer in for_each"}
	}
	return Reason{Code: ReasonNoKey, Text: "because its index is no longer below count"}
}
