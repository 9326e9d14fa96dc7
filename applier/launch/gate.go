package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sandplan/sandplan/drift"
	"github.com/sandplan/sandplan/planner"
)

// gate looks at the whole scope and refuses whatever is not as declared. An invocation that has run
// and is otherwise right is armed again first.
func (r *run) gate(d *deadline) error {
	if err := d.step("looking at the engine", r.look); err != nil {
		return err
	}
	if r.Approve != nil {
		if err := d.step("making the engine what is declared", r.converge); err != nil {
			return err
		}
	}
	v := r.verdict(r.before)
	if len(v.Refusals) == 0 && len(v.Rearm) > 0 {
		r.tell(Event{Kind: EventRearming})
		err := d.step("arming "+string(r.inv)+" again", func(ctx context.Context) error {
			if err := r.rearm(ctx, r.scope, v.Rearm); err != nil {
				return err
			}
			return r.look(ctx)
		})
		if err != nil {
			return err
		}
		v = r.verdict(r.before)
	}
	if err := refuse(v); err != nil {
		return err
	}
	for _, o := range r.before.Objects {
		r.ids[o.Addr] = o.ID
	}
	if r.ids[r.main] == "" {
		return &Decision{Code: CodeRefused, Reason: fmt.Sprintf("%s does not exist", r.main)}
	}
	r.record.compared(r.before)
	r.tell(Event{Kind: EventCompared, N: len(r.before.Objects)})
	return nil
}

// look observes the scope and compiles the declaration against what is there.
func (r *run) look(ctx context.Context) error {
	s, err := r.Engine.Observe(ctx, r.Scope)
	if err != nil {
		return err
	}
	if r.compiled, err = r.Compile(ctx, s); err != nil {
		return err
	}
	r.resources = r.compiled.Resources()
	r.before = r.compiled.Complete(s)
	return nil
}

// subject is what a gate is asked about: the whole invocation, or one runner of it.
func (r *run) subject() planner.Address {
	if r.Runner != "" {
		return r.main
	}
	return r.inv
}

// verdict judges a whole look at the scope.
func (r *run) verdict(s planner.Snapshot) drift.Verdict {
	return drift.Gate(r.resources, s, drift.Look{Run: []planner.Address{r.subject()}, Lease: r.lease.Info().ID})
}

// refuse is the refusal of a verdict, or nil.
func refuse(v drift.Verdict) error {
	if v.OK() {
		return nil
	}
	fs := v.Refusals
	for _, a := range v.Rearm {
		fs = append(fs, planner.Finding{Kind: planner.FindingPending, Addr: a, Text: "has run"})
	}
	return &Decision{Code: CodeRefused, Reason: "the engine differs from the declaration", Findings: fs}
}

// recheck looks again at what this run depends on, while started containers run.
func (r *run) recheck(ctx context.Context, started []planner.Address, shim bool) ([]planner.Finding, error) {
	addrs := r.addresses()
	if shim {
		addrs = append(addrs, planner.AddrShim)
	}
	planner.SortAddresses(addrs)
	s, err := r.Engine.Recheck(ctx, r.Scope, addrs)
	if err != nil {
		return nil, err
	}
	s = r.compiled.Complete(s)
	v := drift.Gate(r.resources, s, drift.Look{
		Run: []planner.Address{r.subject()}, Lease: r.lease.Info().ID, Started: started, Only: addrs,
	})
	fs := v.Refusals
	for _, a := range v.Rearm {
		fs = append(fs, planner.Finding{Kind: planner.FindingDrift, Addr: a, Text: "has run"})
	}
	fs = append(fs, r.strangers(s, addrs)...)
	planner.SortFindings(fs)
	return fs, nil
}

// strangers are objects that are equal in every field, perhaps, and yet others than those that were
// judged before the start.
func (r *run) strangers(s planner.Snapshot, addrs []planner.Address) []planner.Finding {
	var fs []planner.Finding
	for _, a := range addrs {
		if o, ok := s.Object(a); ok && o.ID != r.ids[a] {
			fs = append(fs, planner.Finding{Kind: planner.FindingDrift, Addr: a,
				Text: fmt.Sprintf("was replaced by another object (%.12s in place of %.12s)", o.ID, r.ids[a])})
		}
	}
	return fs
}

// addresses are what this run depends on and can change under it.
func (r *run) addresses() []planner.Address {
	if r.Runner != "" {
		return []planner.Address{r.main}
	}
	return []planner.Address{planner.AddrUplink, r.inv.With(planner.PartNetwork), r.inv.With(planner.PartProxy), r.main}
}

// converge applies what differs, as far as the caller approves of it.
func (r *run) converge(ctx context.Context) error {
	plan := planner.Diff(r.resources, r.before, planner.Options{Origin: r.Origin, Lease: r.lease.Info().ID})
	if !changes(plan) || len(beyondRearming(plan, r.inv)) == 0 {
		return nil
	}
	if err := r.Approve(ctx, plan); err != nil {
		return err
	}
	r.tell(Event{Kind: EventConverging})
	if err := r.Apply(ctx, r.compiled, plan, r.scope); err != nil {
		return err
	}
	return r.look(ctx)
}

// rearm makes containers of the invocation anew, if they have run and nothing else is wrong.
func (r *run) rearm(ctx context.Context, lock Lock, which []planner.Address) error {
	plan := planner.Diff(r.resources, r.before, planner.Options{Origin: r.Origin, Lease: r.lease.Info().ID, Targets: which})
	if more := beyondRearming(plan, r.inv); len(more) > 0 {
		return &Decision{Code: CodeRefused, Reason: "more than a run has changed " + string(r.inv), Findings: plan.Findings,
			Err: errors.New(strings.Join(more, "; "))}
	}
	return r.Apply(ctx, r.compiled, plan, lock)
}

func changes(p *planner.Plan) bool {
	for _, c := range p.Changes {
		if c.Action != planner.ActionNoOp {
			return true
		}
	}
	return false
}

// beyondRearming is what a plan does besides making parts of the invocation anew that have run, one clause for each
// object. What is wrong with one besides must stay as it is, to be looked at.
func beyondRearming(p *planner.Plan, inv planner.Address) []string {
	var out []string
	for _, c := range p.Changes {
		var why []string
		for _, reason := range c.Reasons {
			if reason.Code != planner.ReasonSpent && reason.Code != planner.ReasonDependency {
				why = append(why, reason.Text)
			}
		}
		for _, m := range slices.Concat(c.Drift, c.Pending) {
			why = append(why, m.Field.Path+" differs")
		}
		for _, e := range c.Extra {
			why = append(why, "it has "+e.Path)
		}
		if c.Action != planner.ActionNoOp && (len(why) > 0 || c.Action != planner.ActionReplace || c.Addr.Invocation() != inv) {
			out = append(out, fmt.Sprintf("%s (%s) %s", c.Addr, c.Action, strings.Join(slices.Compact(why), ", ")))
		}
	}
	return out
}
