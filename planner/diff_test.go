package planner_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandplan/sandplan/planner"
)

type diffCase struct {
	name   string
	reason string // why the case is there
	want   []planner.Resource
	have   *engine
	opts   planner.Options
	plan   string
}

func runDiffCases(t *testing.T, cases []diffCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			requireReason(t, c.name, c.reason)
			p := planner.Diff(c.want, c.have.Snapshot, c.opts)
			if d := cmp.Diff(c.plan, text(p)); d != "" {
				t.Errorf("%s\nplan (-want +got):\n%s", c.reason, d)
			}
			if _, err := p.Graph(); err != nil {
				t.Errorf("graph: %v", err)
			}
		})
	}
}

func TestDiffOfWholeObjects(t *testing.T) {
	agent, proxy, network := inv.With("agent"), inv.With("proxy"), inv.With("network")
	runDiffCases(t, []diffCase{
		{
			name: "equal", reason: "what is as declared is left alone, and nothing is said of it",
			want: world("test"), have: has(world("test")), plan: "",
		},
		{
			name: "empty engine", reason: "one finding for the invocation, not one for each part",
			want: world(), have: has(nil),
			plan: lines(
				"invocation.a is absent",
				"pending: sandplan.image is missing",
				"pending: sandplan.shim is missing",
				"pending: sandplan.uplink is missing",
				"pending: vendor.v.image is missing",
				"pending: invocation.a does not exist yet",
				"create sandplan.image it does not exist yet",
				"create sandplan.shim it does not exist yet",
				"create sandplan.uplink it does not exist yet",
				"create vendor.v.image it does not exist yet",
				"create invocation.a.network it does not exist yet",
				"create invocation.a.proxy it does not exist yet",
				"create invocation.a.agent it does not exist yet",
			),
		},
		{
			name: "agent absent", reason: "the agent is created last: without it the invocation is merely not made yet",
			want: world(), have: has(world()).without(agent, proxy),
			plan: lines(
				"invocation.a is absent",
				"pending: invocation.a is incomplete: its agent is missing",
				"create invocation.a.proxy it does not exist yet",
				"create invocation.a.agent it does not exist yet",
			),
		},
		{
			name: "half made", reason: "without an agent, a part that is not as its label says was cut short, not tampered with",
			want: world(), have: has(world()).without(agent).tampered(proxy, "Text", "new").tampered(network, "Set", 0),
			plan: lines(
				"invocation.a is absent",
				"pending: invocation.a is incomplete: its agent is missing",
				"update invocation.a.network its creation was not finished",
				"replace invocation.a.proxy its creation was not finished",
				"create invocation.a.agent it does not exist yet",
			),
		},
		{
			name: "network gone", reason: "with the agent there, somebody took the network away; what binds its ID goes with it",
			want: world(), have: has(world()).without(network).
				tampered(proxy, "Refs.invocation.a.network", "dead").tampered(agent, "Refs.invocation.a.network", "dead"),
			plan: lines(
				"drift: invocation.a.network is missing",
				`drift: invocation.a.proxy Refs.invocation.a.network: want the ID of invocation.a.network, got "dead"`,
				`drift: invocation.a.agent Refs.invocation.a.network: want the ID of invocation.a.network, got "dead"`,
				"create invocation.a.network it is missing",
				"replace invocation.a.proxy somebody changed it",
				"replace invocation.a.agent somebody changed it",
			),
		},
		{
			name: "proxy gone", reason: "the agent is replaced because of the proxy although none of its own rows differs",
			want: world(), have: has(world()).without(proxy),
			plan: lines(
				"drift: invocation.a.proxy is missing",
				"create invocation.a.proxy it is missing",
				"replace invocation.a.agent its proxy is missing",
			),
		},
		{
			name: "shared gone", reason: "with any agent there, a shared object that is missing was taken away",
			want: world(), have: has(world()).without(planner.AddrUplink),
			plan: lines(
				"drift: sandplan.uplink is missing",
				"create sandplan.uplink it is missing",
				"replace invocation.a.proxy sandplan.uplink is missing",
				"replace invocation.a.agent its proxy will be replaced",
			),
		},
		{
			name: "runner not there", reason: "a runner that was declared just now must not read as drift",
			want: world("test"), have: has(world()),
			plan: lines(
				`pending: invocation.a.runner["test"] is missing`,
				`create invocation.a.runner["test"] it does not exist yet`,
			),
		},
		{
			name: "pinned image not there", reason: "an image that is pulled again has the same ID: nothing else is replaced",
			want: world(), have: has(world()).without(planner.VendorImage("v")),
			plan: lines(
				"pending: vendor.v.image is missing",
				"create vendor.v.image it does not exist yet",
			),
		},
		{
			name: "image of an agent not there", reason: "the agent was made of it, so somebody has removed it since",
			want: slices.Concat(shared(), invocation(inv, "image-1")), have: has(slices.Concat(shared(), invocation(inv, "image-1"))).without(planner.VendorImage("v")),
			plan: lines(
				"drift: vendor.v.image is missing",
				"create vendor.v.image it is missing",
			),
		},
		{
			name: "conflict", reason: "a foreign object in our place is told of and never touched",
			want: world(), have: func() *engine {
				e := has(world()).without(network, agent, proxy)
				e.Conflicts = []planner.Conflict{{Addr: network, Name: "sandplan-x", ID: "foreign", Detail: "is taken by network sandplan-x"}}
				return e
			}(),
			plan: lines(
				"invocation.a is absent",
				"conflict: invocation.a.network is taken by network sandplan-x",
				"pending: invocation.a does not exist yet",
				"noop invocation.a.network something that is not sandplan's stands in its place",
				"create invocation.a.proxy it does not exist yet",
				"create invocation.a.agent it does not exist yet",
			),
		},
		{
			name: "duplicate", reason: "a second object with our labels goes, the first is compared as ever",
			want: world(), have: func() *engine {
				e := has(world())
				twin := *e.at(network)
				twin.ID, twin.Name = "ffffffffffffffff", "sandplan-twin"
				e.Duplicates = []planner.Object{twin}
				return e
			}(),
			plan: lines(
				"drift: invocation.a.network is there twice: sandplan-twin (ffffffffffff) carries its labels as well",
				"delete invocation.a.network another object stands at this address already",
			),
		},
	})
}

func TestDiffOfLeftovers(t *testing.T) {
	e := has(world())
	e.Duplicates = []planner.Object{{Addr: "sandplan.unknown", Kind: "stray-container", ID: "0123456789abcdef", Name: "x"}}
	runDiffCases(t, []diffCase{
		{
			name: "leftover", reason: "what carries our labels and has no place is drift, and goes",
			want: world(), have: e,
			plan: lines(
				"drift: sandplan.unknown is the label of x (0123456789ab), which has no place in the scope",
				"delete sandplan.unknown it has no place in the scope",
			),
		},
		{
			name: "leftover at destroy", reason: "nothing of the scope may stay",
			want: nil, have: func() *engine {
				f := has(nil)
				f.Duplicates = e.Duplicates
				return f
			}(),
			opts: planner.Options{Destroy: true},
			plan: lines(
				"drift: sandplan.unknown is the label of x (0123456789ab), which has no place in the scope",
				"delete sandplan.unknown it has no place in the scope",
			),
		},
	})
}

func TestDiffOfFields(t *testing.T) {
	agent, proxy, network := inv.With("agent"), inv.With("proxy"), inv.With("network")
	newText := func(as ...planner.Address) []planner.Resource {
		out := world()
		for i := range out {
			if slices.Contains(as, out[i].Addr) {
				out[i] = resource(out[i].Addr, out[i].Kind, "new", out[i].DependsOn...)
			}
		}
		return out
	}
	runDiffCases(t, []diffCase{
		{
			name: "declaration changed", reason: "label ≠ HCL is pending, at the attribute's name",
			want: newText(agent), have: has(world()),
			plan: lines(
				`pending: invocation.a.agent Text: want "new", got "old"`,
				"replace invocation.a.agent its declaration was changed",
			),
		},
		{
			name: "tampered", reason: "observed ≠ label is drift, and is replaced",
			want: world(), have: has(world()).tampered(proxy, "Text", "evil"),
			plan: lines(
				`drift: invocation.a.proxy Text: want "old", got "evil"`,
				"replace invocation.a.proxy somebody changed it",
				"replace invocation.a.agent its proxy will be replaced",
			),
		},
		{
			name: "both", reason: "an object may be pending and drifted at once; drift is the decisive reason",
			want: newText(proxy), have: has(world()).tampered(proxy, "Text", "new"),
			plan: lines(
				`drift: invocation.a.proxy Text: want "old", got "new"`,
				`pending: invocation.a.proxy Text: want "new", got "old"`,
				"replace invocation.a.proxy somebody changed it; its declaration was changed",
				"replace invocation.a.agent its proxy will be replaced",
			),
		},
		{
			name: "ignored", reason: "a row that is ignored on both sides never differs",
			want: world(), have: has(world()).tampered(agent, "Noise", 17), plan: "",
		},
		{
			name: "set", reason: "only settings differ: they are put back in place and nothing is replaced",
			want: world(), have: has(world()).tampered(network, "Set", 0),
			plan: lines(
				"drift: invocation.a.network Set: want 1, got 0",
				"update invocation.a.network its settings were changed or lost",
			),
		},
		{
			name: "set and more", reason: "a setting beside a field that cannot be put back: replaced as a whole",
			want: world(), have: has(world()).tampered(network, "Set", 0).tampered(network, "Text", "x"),
			plan: lines(
				"drift: invocation.a.network Set: want 1, got 0",
				`drift: invocation.a.network Text: want "old", got "x"`,
				"replace invocation.a.network somebody changed it",
				"replace invocation.a.proxy its network will be replaced",
				"replace invocation.a.agent its network will be replaced",
			),
		},
		{
			name: "set and a stranger", reason: "something that nothing declares cannot be put back in place",
			want: world(), have: has(world()).tampered(network, "Set", 0).with(network, func(o *planner.Object) {
				o.Extra = []planner.Extra{{Path: "Containers.evil", Detail: "10.0.0.9"}}
			}),
			plan: lines(
				"drift: invocation.a.network has Containers.evil, which nothing declares: 10.0.0.9",
				"drift: invocation.a.network Set: want 1, got 0",
				"replace invocation.a.network somebody changed it",
				"replace invocation.a.proxy its network will be replaced",
				"replace invocation.a.agent its network will be replaced",
			),
		},
		{
			name: "extra alone", reason: "an extra endpoint is drift although every row is equal",
			want: world(), have: has(world()).with(agent, func(o *planner.Object) {
				o.Extra = []planner.Extra{{Path: "NetworkSettings.Networks.bridge"}}
			}),
			plan: lines(
				"drift: invocation.a.agent has NetworkSettings.Networks.bridge, which nothing declares",
				"replace invocation.a.agent somebody changed it",
			),
		},
		{
			name: "another binary", reason: "an image's ID is its content: another one is pending, not drift",
			want: func() []planner.Resource {
				out := world()
				out[0] = resource(planner.AddrImage, planner.KindImage, "binary-2")
				return out
			}(),
			have: has(world()),
			plan: lines(
				`pending: sandplan.image Text: want "binary-2", got "binary-1"`,
				"replace sandplan.image its declaration was changed",
				"replace sandplan.shim sandplan.image will be replaced",
				"replace invocation.a.proxy sandplan.image will be replaced",
				"replace invocation.a.agent sandplan.shim will be replaced",
			),
		},
		{
			name: "other schema", reason: "rows that another version wrote are not compared at all: pending, never drift",
			want: world(), have: has(world()).tampered(agent, "Text", "x").with(agent, func(o *planner.Object) {
				o.Schema, o.Digest = "0", "whatever"
				o.Extra = []planner.Extra{{Path: "HostConfig.Old"}}
			}),
			plan: lines(
				`pending: invocation.a.agent was made by another version of sandplan (schema "0", this one writes `+planner.Schema+`)`,
				"replace invocation.a.agent it was made by another version of sandplan",
			),
		},
		{
			name: "unreadable label", reason: "a declaration that cannot be read proves nothing, so the object goes",
			want: world(), have: has(world()).with(agent, func(o *planner.Object) { o.Declared = nil }),
			plan: lines(
				"drift: invocation.a.agent has a label that cannot be read",
				"replace invocation.a.agent its label cannot be read",
			),
		},
		{
			name: "forged digest", reason: "declared label as wanted, digest label not: nobody but a forger makes that",
			want: world(), have: has(world()).with(agent, func(o *planner.Object) { o.Digest = "0000" }),
			plan: lines(
				"drift: invocation.a.agent has a label that does not match its own digest",
				"replace invocation.a.agent its label does not match its own digest",
			),
		},
		{
			name: "forged label", reason: "label rewritten to what the object was turned into: pending by its rows, and the digest tells",
			want: world(), have: has(world()).tampered(agent, "Text", "evil").with(agent, func(o *planner.Object) {
				setRow(o.Declared, "Text", "evil")
			}),
			plan: lines(
				"drift: invocation.a.agent has a label that does not match its own digest",
				`pending: invocation.a.agent Text: want "old", got "evil"`,
				"replace invocation.a.agent its label does not match its own digest; its declaration was changed",
			),
		},
		{
			name: "wrong kind", reason: "a network that says it is the agent is not compared by rows it cannot have",
			want: world(), have: has(world()).with(agent, func(o *planner.Object) { o.Kind = planner.KindNetwork }),
			plan: lines(
				"drift: invocation.a.agent is labelled as network",
				"replace invocation.a.agent it is labelled as network, not as agent",
			),
		},
	})
}
