package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/planner"
)

// The tests of planning build the wanted resources and the snapshot by hand, from few rows, and hold the plan as
// text against a few lines. Rows: "Text" (attribute "text"), "Set" (class set), "Noise" (ignored), and one
// reference per dependency whose ID the kind binds.

const inv = planner.Address("invocation.a")

// resource is a wanted object whose rows say text.
func resource(a planner.Address, kind planner.Kind, text string, deps ...planner.Address) planner.Resource {
	r := planner.Resource{
		Addr: a, Kind: kind, DependsOn: deps, Title: "vendor.v, phase.review",
		Decl: hcl.Range{Filename: "sandplan.hcl", Start: hcl.Pos{Line: 10}},
		Fields: []planner.Field{
			{Path: "Noise", Class: planner.ClassIgnored, Reason: "the engine counts it", Value: planner.JSON("wanted")},
			{Path: "Text", Attr: "text", Decl: &hcl.Range{Filename: "sandplan.hcl", Start: hcl.Pos{Line: 12}}, Value: planner.JSON(text)},
		},
	}
	for _, d := range deps {
		r.Fields = append(r.Fields, planner.Field{Path: "Refs." + string(d), Value: planner.Ref(d)})
	}
	if kind == planner.KindNetwork || kind == planner.KindUplink {
		r.Fields = append(r.Fields, planner.Field{Path: "Set", Class: planner.ClassSet, Value: planner.JSON(1)})
	}
	slices.SortFunc(r.Fields, func(a, b planner.Field) int { return strings.Compare(a.Path, b.Path) })
	r.Digest = planner.Digest(r.Fields)
	return r
}

// shared are the objects that every scope has, and one vendor's image.
func shared() []planner.Resource {
	return []planner.Resource{
		resource(planner.AddrImage, planner.KindImage, "binary-1"),
		resource(planner.AddrShim, planner.KindShim, "shim", planner.AddrImage),
		resource(planner.AddrUplink, planner.KindUplink, "uplink"),
		resource(planner.VendorImage("v"), planner.KindPinned, "image-1"),
	}
}

// invocation are the objects of one invocation.
func invocation(a planner.Address, text string, runners ...string) []planner.Resource {
	out := []planner.Resource{
		resource(a.With("network"), planner.KindNetwork, text),
		resource(a.With("proxy"), planner.KindProxy, text, planner.AddrImage, planner.AddrUplink, a.With("network")),
		resource(a.With("agent"), planner.KindAgent, text, planner.AddrShim, planner.VendorImage("v"), a.With("network"), a.With("proxy")),
	}
	for _, r := range runners {
		out = append(out, resource(a.Runner(r), planner.KindRunner, text, planner.AddrShim))
	}
	return out
}

// world is one invocation and what it shares.
func world(runners ...string) []planner.Resource {
	return slices.Concat(shared(), invocation(inv, "old", runners...))
}

// engine is a snapshot that has exactly what is given, freshly made.
type engine struct{ planner.Snapshot }

func has(want []planner.Resource) *engine {
	e := &engine{planner.Snapshot{EngineID: "ENGINE", Scope: planner.Scope{Project: "demo", Workspace: "default"}}}
	for _, r := range want {
		e.Objects = append(e.Objects, object(r))
	}
	return e
}

// object is a resource as the engine has it right after it was made.
func object(r planner.Resource) planner.Object {
	o := planner.Object{Addr: r.Addr, Kind: r.Kind, ID: "id-" + string(r.Addr), Name: "sandplan-" + string(r.Addr),
		DependsOn: r.DependsOn, Fingerprint: "print-" + r.Digest}
	for _, f := range r.Fields {
		f.Decl = nil
		if f.Class == planner.ClassIgnored {
			f.Value = planner.Value{}
		}
		o.Declared = append(o.Declared, f)
		if f.Class == planner.ClassIgnored {
			f.Value = planner.JSON("observed")
		}
		o.Observed = append(o.Observed, f)
	}
	switch r.Kind {
	case planner.KindImage, planner.KindPinned:
		o.Declared = nil
		return o
	case planner.KindProxy, planner.KindAgent, planner.KindRunner, planner.KindShim:
		o.Status = planner.StatusCreated
	}
	o.Schema, o.Digest, o.Origin = planner.Schema, r.Digest, "host:/dir"
	return o
}

func (e *engine) at(a planner.Address) *planner.Object {
	for i := range e.Objects {
		if e.Objects[i].Addr == a {
			return &e.Objects[i]
		}
	}
	panic("nothing at " + string(a))
}

// without removes everything that the addresses contain.
func (e *engine) without(as ...planner.Address) *engine {
	e.Objects = slices.DeleteFunc(e.Objects, func(o planner.Object) bool {
		return slices.ContainsFunc(as, func(a planner.Address) bool { return a.Contains(o.Addr) })
	})
	return e
}

// with changes one object.
func (e *engine) with(a planner.Address, change func(*planner.Object)) *engine {
	change(e.at(a))
	return e
}

// tampered changes an observed row, as somebody who goes round sandplan does.
func (e *engine) tampered(a planner.Address, path string, v any) *engine {
	return e.with(a, func(o *planner.Object) { setRow(o.Observed, path, v) })
}

// status is that the containers were started, or have run.
func (e *engine) status(s planner.Status, as ...planner.Address) *engine {
	for _, a := range as {
		e.at(a).Status = s
	}
	return e
}

func (e *engine) lease(a planner.Address, id string, live bool) *engine {
	e.Leases = append(e.Leases, planner.Lease{Invocation: a, Live: live,
		Info: planner.LockInfo{ID: id, Operation: "run", Who: "me@here"}})
	return e
}

// operation is what the holder of the last lease does with it.
func (e *engine) operation(op string) *engine {
	e.Leases[len(e.Leases)-1].Info.Operation = op
	return e
}

func setRow(fields []planner.Field, path string, v any) {
	for i := range fields {
		if fields[i].Path == path {
			fields[i].Value = planner.JSON(v)
			return
		}
	}
	panic("no row " + path)
}

// text is a plan as lines: states that are not armed, findings, changes that are not no-ops, warnings.
func text(p *planner.Plan) string {
	var b strings.Builder
	var states []planner.Address
	for a := range p.States {
		states = append(states, a)
	}
	planner.SortAddresses(states)
	for _, a := range states {
		if p.States[a] != planner.StateArmed {
			fmt.Fprintf(&b, "%s is %s\n", a, p.States[a])
		}
	}
	for _, f := range p.Findings {
		fmt.Fprintf(&b, "%s: %s %s\n", f.Kind, f.Addr, findingText(f))
	}
	for _, c := range p.Changes {
		if c.Action == planner.ActionNoOp && len(c.Reasons) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s %s", c.Action, c.Addr)
		for i, r := range c.Reasons {
			fmt.Fprintf(&b, "%s %s", map[bool]string{true: "", false: ";"}[i == 0], strings.TrimPrefix(r.Text, "because "))
		}
		b.WriteByte('\n')
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}

func findingText(f planner.Finding) string {
	if m := f.Mismatch; m != nil {
		return fmt.Sprintf("%s: want %s, got %s", m.Field.Path, valueText(m.Want), valueText(m.Got))
	}
	return f.Text
}

func valueText(v planner.Value) string {
	if a, ok := v.Ref(); ok {
		return "the ID of " + string(a)
	}
	if v.IsZero() {
		return "nothing"
	}
	return v.Text()
}

// lines joins the lines of an expected text.
func lines(ls ...string) string {
	if len(ls) == 0 {
		return ""
	}
	return strings.Join(ls, "\n") + "\n"
}

// requireReason fails a table that does not say why each case is there.
func requireReason(t *testing.T, name, reason string) {
	t.Helper()
	if name == "" || reason == "" {
		t.Fatalf("case %q has no name or no reason", name)
	}
}
