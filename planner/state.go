package planner

import (
	"slices"
	"strings"
)

// liveLeases are the leases that keep others away: those of holders that live or may live, without the
// caller's own.
func liveLeases(all []Lease, own string) []Lease {
	var out []Lease
	for _, l := range all {
		if l.Live && (own == "" || l.Info.ID != own) {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b Lease) int {
		if n := compareAddresses(a.Invocation, b.Invocation); n != 0 {
			return n
		}
		return strings.Compare(a.Info.ID, b.Info.ID)
	})
	return out
}

// States are the states of all invocations that a snapshot or the wanted resources know. own is the ID
// of the lease that the caller itself holds, or "".
func States(want []Resource, s Snapshot, own string) map[Address]InvocationState {
	return newDiffer(want, s, Options{Lease: own}).states
}

func (d *differ) invocationStates() map[Address]InvocationState {
	type seen struct{ agent, started, over bool }
	all := map[Address]seen{}
	look := func(a Address, o *Object) {
		inv := a.Invocation()
		if inv == "" {
			return
		}
		s := all[inv]
		if o != nil {
			s.agent = s.agent || a.Part() == PartAgent
			s.started = s.started || o.Status == StatusRunning
			s.over = s.over || o.Status == StatusExited
		}
		all[inv] = s
	}
	for _, c := range d.changes {
		look(c.Addr, c.have)
	}
	for i := range d.snap.Duplicates {
		// A duplicate is no part of its invocation, but one that runs is a stray of it.
		if o := &d.snap.Duplicates[i]; o.Status == StatusRunning {
			look(o.Addr, &Object{Status: StatusRunning})
		}
	}
	states := make(map[Address]InvocationState, len(all))
	for inv, s := range all {
		switch {
		case s.started:
			states[inv] = StateStray
		case !s.agent:
			states[inv] = StateAbsent
		case s.over:
			states[inv] = StateSpent
		default:
			states[inv] = StateArmed
		}
	}
	// A lease comes before everything: what runs under it is its holder's business, and so is what its
	// holder has not started yet or is about to re-arm.
	for _, l := range d.leases {
		states[l.Invocation] = StateRunning
	}
	return states
}

// isBeingArmed reports whether a missing container is one that the holder of its invocation's lease takes
// away and makes anew: a run the agent and its proxy, a dispatch its runner. If somebody else took it away, that
// ends the holder's run, which tells so.
func (d *differ) isBeingArmed(c *draft) bool {
	inv, part := c.Addr.Invocation(), c.Addr.Part()
	return c.have == nil && slices.ContainsFunc(d.leases, func(l Lease) bool {
		return l.Invocation == inv &&
			(part == PartProxy || part == PartAgent || c.Kind == KindRunner && l.Info.Operation == OperationDispatch)
	})
}

// judgeStatus tells what has run, and what runs though nobody answers for it.
func (d *differ) judgeStatus(c *draft) {
	if c.have.Status != StatusRunning && c.have.Status != StatusExited {
		return
	}
	inv := c.Addr.Invocation()
	switch {
	case d.opts.Destroy, c.want == nil:
		// It goes anyway.
	case inv == "":
		c.add(ReasonStray, "", "because it was started, and nothing ever starts it")
	case d.states[inv] == StateRunning:
	case c.have.Status == StatusRunning:
		c.add(ReasonStray, "", "because it was started outside a run")
	default:
		c.add(ReasonSpent, "", "because it has run")
	}
}

// pair lets an agent and its proxy be replaced together when one of them has run: the pair is armed as
// one, so that no proxy ever serves a second agent.
func (d *differ) pair() {
	for _, c := range d.changes {
		if c.Kind != KindAgent && c.Kind != KindProxy || c.have == nil || c.want == nil {
			continue
		}
		other, name := PartProxy, "proxy"
		if c.Kind == KindProxy {
			other, name = PartAgent, "agent"
		}
		o := d.byAddr[c.Addr.Invocation().With(other)]
		if o == nil || c.has(ReasonSpent, ReasonStray) || !o.started() {
			continue
		}
		if o.has(ReasonStray) {
			c.add(ReasonSpent, o.Addr, "because its "+name+" was started outside a run")
		} else {
			c.add(ReasonSpent, o.Addr, "because its "+name+" has run")
		}
	}
}

// started reports whether the reasons say that the object itself runs or has run.
func (c *draft) started() bool {
	return slices.ContainsFunc(c.Reasons, func(r Reason) bool {
		return r.Addr == "" && (r.Code == ReasonSpent || r.Code == ReasonStray)
	})
}

// missing says what it means that nothing is there. An agent is created last and deleted first, so
// without it the rest of its invocation is merely not made yet; with it, somebody took the rest away.
func (d *differ) missing(c *draft) FindingKind {
	inv := c.Addr.Invocation()
	switch {
	case c.Kind == KindPinned:
		return map[bool]FindingKind{true: FindingDrift, false: FindingPending}[d.inUse(c)]
	case inv == "":
		return map[bool]FindingKind{true: FindingDrift, false: FindingPending}[d.agents]
	case c.Kind == KindRunner:
		// A runner that was added to the configuration just now looks the same as one that was removed
		// from the engine. Neither lets an agent do anything.
		return FindingPending
	}
	if agent := d.byAddr[inv.With(PartAgent)]; agent != nil && agent.have != nil {
		return FindingDrift
	}
	return FindingPending
}

// inUse reports whether an object is there that was made from an image: the image was there, too, then.
func (d *differ) inUse(image *draft) bool {
	return slices.ContainsFunc(d.changes, func(c *draft) bool {
		return c.have != nil && c.want != nil && slices.Contains(c.want.DependsOn, image.Addr) &&
			slices.ContainsFunc(c.have.Observed, func(f Field) bool {
				return slices.ContainsFunc(image.want.Fields, func(id Field) bool { return id.Value == f.Value })
			})
	})
}

// unfinished reports whether an object can be one whose creation was cut short: nothing was armed yet
// that relies on it.
func (d *differ) unfinished(a Address) bool {
	if inv := a.Invocation(); inv != "" {
		agent := d.byAddr[inv.With(PartAgent)]
		return agent == nil || agent.have == nil
	}
	return !d.agents
}
