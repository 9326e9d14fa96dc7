package planner_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandplan/sandplan/planner"
)

func TestGraph(t *testing.T) {
	agent, network := inv.With("agent"), inv.With("network")
	cases := []struct {
		name, reason string
		want         []planner.Resource
		have         *engine
		opts         planner.Options
		graph        string
	}{
		{
			name: "create", reason: "dependencies first, the agent last",
			want: world("test"), have: has(nil),
			graph: lines(
				"0 create sandplan.image",
				"1 create sandplan.shim after 0",
				"2 create sandplan.uplink",
				"3 create vendor.v.image",
				"4 create invocation.a.network",
				"5 create invocation.a.proxy after 0 2 4",
				"6 create invocation.a.agent after 1 3 4 5",
				`7 create invocation.a.runner["test"] after 1`,
			),
		},
		{
			name: "destroy", reason: "the agent first, and what others need last",
			have: has(world("test")), opts: planner.Options{Destroy: true},
			graph: lines(
				`0 delete invocation.a.runner["test"]`,
				"1 delete invocation.a.agent",
				"2 delete invocation.a.proxy after 1",
				"3 delete invocation.a.network after 1 2",
				"4 delete sandplan.uplink after 2",
				"5 delete sandplan.shim after 0 1",
				"6 delete sandplan.image after 2 5",
			),
		},
		{
			name: "replace", reason: "dependents go first and come back last; each comes back only after it went",
			want: world(), have: has(world()), opts: planner.Options{Replace: []planner.Address{network}},
			graph: lines(
				"0 delete invocation.a.agent",
				"1 delete invocation.a.proxy after 0",
				"2 delete invocation.a.network after 0 1",
				"3 create invocation.a.network after 2",
				"4 create invocation.a.proxy after 1 3",
				"5 create invocation.a.agent after 0 3 4",
			),
		},
		{
			name: "restore", reason: "whoever comes new onto a network waits until its settings are back",
			want: world(), have: has(world()).tampered(network, "Set", 0).tampered(agent, "Text", "x"),
			graph: lines(
				"0 delete invocation.a.agent",
				"1 restore invocation.a.network",
				"2 create invocation.a.agent after 0 1",
			),
		},
		{
			name: "duplicate", reason: "a replacement waits for every object at its address to go",
			want: world(), have: func() *engine {
				e := has(world()).tampered(agent, "Text", "x")
				twin := *e.at(agent)
				twin.ID = "twin"
				e.Duplicates = []planner.Object{twin}
				return e
			}(),
			graph: lines(
				"0 delete invocation.a.agent",
				"1 delete invocation.a.agent",
				"2 create invocation.a.agent after 0 1",
			),
		},
		{
			name: "pull", reason: "a pinned image is never deleted, even where another one is in its place",
			want: world(), have: has(world()).tampered(planner.VendorImage("v"), "Text", "image-0"),
			graph: lines("0 create vendor.v.image"),
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			requireReason(t, c.name, c.reason)
			g, err := planner.Diff(c.want, c.have.Snapshot, c.opts).Graph()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.graph, g.String()); d != "" {
				t.Errorf("%s\ngraph (-want +got):\n%s", c.reason, d)
			}
		})
	}
}

func TestGraphRefusesCircle(t *testing.T) {
	want := []planner.Resource{
		resource(inv.With("network"), planner.KindNetwork, "x", inv.With("agent")),
		resource(inv.With("agent"), planner.KindAgent, "x", inv.With("network")),
	}
	for name, p := range map[string]*planner.Plan{
		"create": planner.Diff(want, has(nil).Snapshot, planner.Options{}),
		"delete": planner.Diff(nil, has(want).Snapshot, planner.Options{Destroy: true}),
	} {
		if _, err := p.Graph(); err == nil || !strings.Contains(err.Error(), "depends on itself") {
			t.Errorf("%s: a circle must be refused, got %v", name, err)
		}
	}
}

// Whatever order the two sides come in, the plan is the same to the byte.
func TestDiffIsDeterministic(t *testing.T) {
	b := planner.Address("invocation.b")
	want := slices.Concat(world("test"), invocation(b, "new"))
	have := has(slices.Concat(world("test"), invocation(b, "old"), invocation("invocation.c", "old"))).
		tampered(inv.With("network"), "Text", "x").status(planner.StatusExited, inv.With("agent")).
		lease(b, "l2", true).lease(inv, "l1", true)
	first := planner.Diff(want, have.Snapshot, planner.Options{})
	for range 20 {
		want, objects, leases := slices.Clone(want), slices.Clone(have.Objects), slices.Clone(have.Leases)
		rotate(want)
		rotate(objects)
		slices.Reverse(leases)
		have.Objects, have.Leases = objects, leases
		again := planner.Diff(want, have.Snapshot, planner.Options{})
		if d := cmp.Diff(first, again, cmp.AllowUnexported(planner.Value{})); d != "" {
			t.Fatalf("another order of the same input changes the plan:\n%s", d)
		}
		g1, _ := first.Graph()
		g2, _ := again.Graph()
		if g1.String() != g2.String() {
			t.Fatalf("graphs differ:\n%s\n%s", g1, g2)
		}
	}
}

// rotate moves three of the elements to the end and turns the rest round.
func rotate[T any](s []T) {
	slices.Reverse(s)
	slices.Reverse(s[:len(s)-3])
}

func TestPlanCounts(t *testing.T) {
	e := has(world("test")).tampered(inv.With("network"), "Set", 0).tampered(inv.With("agent"), "Text", "x").
		without(inv.Runner("test"))
	p := planner.Diff(world("test"), e.Snapshot, planner.Options{})
	add, change, destroy := p.Counts()
	if got, want := [3]int{add, change, destroy}, [3]int{2, 1, 1}; got != want {
		t.Errorf("a replace is one add and one destroy, a restore one change: got %v, want %v", got, want)
	}
	if p.Empty() {
		t.Error("a plan with changes is not empty")
	}
	if q := planner.Diff(world(), has(world()).Snapshot, planner.Options{}); !q.Empty() {
		t.Error("a plan of equal sides is empty")
	}
}

func TestPlanLocked(t *testing.T) {
	b := planner.Address("invocation.b")
	want := slices.Concat(world(), invocation(b, "old"))
	e := has(want).lease(b, "l2", true).lease(inv, "l1", true).tampered(inv.With("agent"), "Text", "x")
	p := planner.Diff(want, e.Snapshot, planner.Options{})
	if got := p.Locked(); len(got) != 1 || got[0].Invocation != inv {
		t.Errorf("only the lease of what the plan changes stands in its way, got %+v", got)
	}
	if got := planner.Diff(want, e.Snapshot, planner.Options{Lease: "l1"}).Locked(); len(got) != 0 {
		t.Errorf("the caller's own lease stands in nobody's way, got %+v", got)
	}
}
