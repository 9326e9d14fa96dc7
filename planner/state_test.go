package planner_test

import (
	"slices"
	"testing"

	"github.com/sandplan/sandplan/planner"
)

func TestDiffOfStates(t *testing.T) {
	agent, proxy := inv.With("agent"), inv.With("proxy")
	runner := inv.Runner("test")
	runDiffCases(t, []diffCase{
		{
			name: "spent", reason: "agent and proxy that ran are armed anew together; the network stays",
			want: world("test"), have: has(world("test")).status(planner.StatusExited, agent, proxy),
			plan: lines(
				"invocation.a is spent",
				"pending: invocation.a.proxy has run",
				"pending: invocation.a.agent has run",
				"replace invocation.a.proxy it has run",
				"replace invocation.a.agent it has run",
			),
		},
		{
			name: "spent with dead lease", reason: "a run that was killed leaves its lease behind: dead, it protects nothing",
			want: world(), have: has(world()).status(planner.StatusExited, agent, proxy).lease(inv, "l1", false),
			plan: lines(
				"invocation.a is spent",
				"pending: invocation.a.proxy has run",
				"pending: invocation.a.agent has run",
				"replace invocation.a.proxy it has run",
				"replace invocation.a.agent it has run",
			),
		},
		{
			name: "only the agent ran", reason: "no proxy ever serves a second agent",
			want: world(), have: has(world()).status(planner.StatusExited, agent),
			plan: lines(
				"invocation.a is spent",
				"pending: invocation.a.agent has run",
				"replace invocation.a.proxy its agent has run",
				"replace invocation.a.agent it has run",
			),
		},
		{
			name: "only the proxy ran", reason: "the other way round",
			want: world(), have: has(world()).status(planner.StatusExited, proxy),
			plan: lines(
				"invocation.a is spent",
				"pending: invocation.a.proxy has run",
				"replace invocation.a.proxy it has run",
				"replace invocation.a.agent its proxy has run",
			),
		},
		{
			name: "only a runner ran", reason: "a runner is armed alone: nothing is bound to it",
			want: world("test"), have: has(world("test")).status(planner.StatusExited, runner),
			plan: lines(
				"invocation.a is spent",
				`pending: invocation.a.runner["test"] has run`,
				`replace invocation.a.runner["test"] it has run`,
			),
		},
		{
			name: "running", reason: "what runs under a live lease is its holder's business: no change, no finding",
			want: world(), have: has(world()).status(planner.StatusRunning, agent, proxy).lease(inv, "l1", true),
			plan: lines("invocation.a is running"),
		},
		{
			name: "about to run", reason: "a lease counts before its holder has started anything",
			want: world(), have: has(world()).lease(inv, "l1", true),
			plan: lines("invocation.a is running"),
		},
		{
			name: "being armed", reason: "whoever holds the lease takes the containers away and makes them anew",
			want: world(), have: has(world()).without(agent, proxy).lease(inv, "l1", true),
			plan: lines("invocation.a is running"),
		},
		{
			name: "being armed, network gone", reason: "a run makes no network anew: that is somebody else's doing",
			want: world(), have: has(world()).without(agent, proxy, inv.With("network")).lease(inv, "l1", true),
			plan: lines(
				"invocation.a is running",
				"pending: invocation.a.network is missing",
				"create invocation.a.network it does not exist yet",
			),
		},
		{
			name: "runner being armed", reason: "a dispatch does the same with its runner",
			want: world("test"), have: has(world("test")).without(runner).lease(inv, "l1", true).operation("dispatch"),
			plan: lines("invocation.a is running"),
		},
		{
			name: "runner missing under a run", reason: "which makes no runner anew",
			want: world("test"), have: has(world("test")).without(runner).lease(inv, "l1", true),
			plan: lines(
				"invocation.a is running",
				`pending: invocation.a.runner["test"] is missing`,
				`create invocation.a.runner["test"] it does not exist yet`,
			),
		},
		{
			name: "own lease", reason: "to the holder of the lease the invocation is what its containers are",
			want: world(), have: has(world()).status(planner.StatusExited, agent, proxy).lease(inv, "l1", true),
			opts: planner.Options{Lease: "l1"},
			plan: lines(
				"invocation.a is spent",
				"pending: invocation.a.proxy has run",
				"pending: invocation.a.agent has run",
				"replace invocation.a.proxy it has run",
				"replace invocation.a.agent it has run",
			),
		},
		{
			name: "running and tampered", reason: "a live lease hides no drift",
			want: world(), have: has(world()).status(planner.StatusRunning, agent, proxy).lease(inv, "l1", true).tampered(agent, "Text", "x"),
			plan: lines(
				"invocation.a is running",
				`drift: invocation.a.agent Text: want "old", got "x"`,
				"replace invocation.a.agent somebody changed it",
			),
		},
		{
			name: "stray", reason: "running without a live lease is always drift",
			want: world(), have: has(world()).status(planner.StatusRunning, agent).lease(inv, "l1", false),
			plan: lines(
				"invocation.a is stray",
				"drift: invocation.a.agent was started outside a run",
				"replace invocation.a.proxy its agent was started outside a run",
				"replace invocation.a.agent it was started outside a run",
			),
		},
		{
			name: "stray proxy without agent", reason: "absent is no excuse for what runs",
			want: world(), have: has(world()).without(agent).status(planner.StatusRunning, proxy),
			plan: lines(
				"invocation.a is stray",
				"drift: invocation.a.proxy was started outside a run",
				"pending: invocation.a.agent is missing",
				"replace invocation.a.proxy it was started outside a run",
				"create invocation.a.agent it does not exist yet",
			),
		},
		{
			name: "shim started", reason: "the container that seeds the shim volume is never started by anyone",
			want: world(), have: has(world()).status(planner.StatusExited, planner.AddrShim),
			plan: lines(
				"drift: sandplan.shim was started, and nothing ever starts it",
				"replace sandplan.shim it was started, and nothing ever starts it",
				"replace invocation.a.agent sandplan.shim will be replaced",
			),
		},
	})
}

func TestDiffOfUnwanted(t *testing.T) {
	b := planner.Address(`invocation.b["old"]`)
	both := slices.Concat(world(), invocation(b, "old"))
	deleted := func(why string, as ...planner.Address) []string {
		var out []string
		for _, a := range as {
			out = append(out, "delete "+string(a)+" "+why)
		}
		return out
	}
	parts := []planner.Address{b.With("network"), b.With("proxy"), b.With("agent")}
	c2, c10 := planner.Address("invocation.c[2]"), planner.Address("invocation.c[10]")
	runDiffCases(t, []diffCase{
		{
			name: "block gone", reason: "one finding for the whole invocation, and the block is named",
			want: world(), have: has(both),
			plan: lines(append([]string{
				`pending: invocation.b["old"] is not wanted because invocation.b is no longer in the configuration`},
				deleted("invocation.b is no longer in the configuration", parts...)...)...),
		},
		{
			name: "key gone", reason: "the block is still there, with other keys",
			want: slices.Concat(world(), invocation(`invocation.b["new"]`, "old")),
			have: has(slices.Concat(both, invocation(`invocation.b["new"]`, "old"))),
			plan: lines(append([]string{
				`pending: invocation.b["old"] is not wanted because the key "old" is no longer in for_each`},
				deleted(`the key "old" is no longer in for_each`, parts...)...)...),
		},
		{
			name: "for_each empty", reason: "the block has no instance, so only the list of blocks tells that it is there",
			want: world(), have: has(both), opts: planner.Options{Blocks: []planner.Address{"invocation.b"}},
			plan: lines(append([]string{
				`pending: invocation.b["old"] is not wanted because the key "old" is no longer in for_each`},
				deleted(`the key "old" is no longer in for_each`, parts...)...)...),
		},
		{
			name: "count lowered", reason: "instances by number; 10 stands behind 2",
			want: world(), have: has(slices.Concat(world(), invocation(c10, "old")[:1], invocation(c2, "old")[:1])),
			opts: planner.Options{Blocks: []planner.Address{"invocation.c"}},
			plan: lines(
				"invocation.c[2] is absent",
				"invocation.c[10] is absent",
				"pending: invocation.c[2] is not wanted because its index is no longer below count",
				"pending: invocation.c[10] is not wanted because its index is no longer below count",
				"delete invocation.c[2].network its index is no longer below count",
				"delete invocation.c[10].network its index is no longer below count",
			),
		},
		{
			name: "repetition taken away", reason: "the block stands, its instances have other addresses now",
			want: world(), have: has(slices.Concat(world(), invocation(`invocation.a["x"]`, "old")[:1])),
			plan: lines(
				`invocation.a["x"] is absent`,
				`pending: invocation.a["x"] is not wanted because invocation.a has neither for_each nor count any more`,
				`delete invocation.a["x"].network invocation.a has neither for_each nor count any more`,
			),
		},
		{
			name: "runner gone", reason: "the invocation stands, a part of it does not",
			want: world(), have: has(world("lint")),
			plan: lines(
				`pending: invocation.a.runner["lint"] is not wanted because invocation.a has no runner["lint"] any more`,
				`delete invocation.a.runner["lint"] invocation.a has no runner["lint"] any more`,
			),
		},
		{
			name: "unwanted and tampered", reason: "an object that is to go can be drift all the same",
			want: world(), have: has(world("lint")).tampered(inv.Runner("lint"), "Text", "x"),
			plan: lines(
				`drift: invocation.a.runner["lint"] Text: want "old", got "x"`,
				`pending: invocation.a.runner["lint"] is not wanted because invocation.a has no runner["lint"] any more`,
				`delete invocation.a.runner["lint"] invocation.a has no runner["lint"] any more`,
			),
		},
		{
			name: "image of no vendor", reason: "pinned images are not ours: never removed, never mentioned",
			want: world(), have: has(slices.Concat(world(), []planner.Resource{resource("vendor.w.image", planner.KindPinned, "x")})),
			plan: "",
		},
	})
}

func TestDiffOfOptions(t *testing.T) {
	b := planner.Address("invocation.b")
	two := slices.Concat(world(), invocation(b, "old"))
	other := planner.Options{Origin: "laptop:/src"}
	runDiffCases(t, []diffCase{
		{
			name: "destroy", reason: "labels alone decide, and what is wanted is not even looked at",
			want: world(), have: has(world("test")).without(inv.With("network")), opts: planner.Options{Destroy: true},
			plan: lines(
				"delete sandplan.image the scope is destroyed",
				"delete sandplan.shim the scope is destroyed",
				"delete sandplan.uplink the scope is destroyed",
				"delete invocation.a.proxy the scope is destroyed",
				"delete invocation.a.agent the scope is destroyed",
				`delete invocation.a.runner["test"] the scope is destroyed`,
			),
		},
		{
			name: "destroy beside others", reason: "an image that another scope uses stays, and is not even mentioned",
			have: has(world()).without(inv, planner.AddrShim, planner.AddrUplink).with(planner.AddrImage, func(o *planner.Object) { o.Shared = true }),
			opts: planner.Options{Destroy: true}, plan: "",
		},
		{
			name: "other binary beside others", reason: "the new image is made, and the old one is left to those who use it",
			want: append([]planner.Resource{resource(planner.AddrImage, planner.KindImage, "binary-2")}, shared()[2:]...),
			have: has(shared()).without(planner.AddrShim).with(planner.AddrImage, func(o *planner.Object) { o.Shared = true }),
			plan: lines(
				`pending: sandplan.image Text: want "binary-2", got "binary-1"`,
				"create sandplan.image its declaration was changed",
			),
		},
		{
			name: "destroy one", reason: "dispose of one invocation: what it shares stays",
			want: nil, have: has(two), opts: planner.Options{Destroy: true, Targets: []planner.Address{b}},
			plan: lines(
				"delete invocation.b.network its destruction is asked for",
				"delete invocation.b.proxy its destruction is asked for",
				"delete invocation.b.agent its destruction is asked for",
			),
		},
		{
			name: "destroy what others need", reason: "what depends on it goes along, or it would point at nothing",
			want: nil, have: has(world()), opts: planner.Options{Destroy: true, Targets: []planner.Address{inv.With("network")}},
			plan: lines(
				"delete invocation.a.network its destruction is asked for",
				"delete invocation.a.proxy its network will be destroyed",
				"delete invocation.a.agent its network will be destroyed",
			),
		},
		{
			name: "target", reason: "the target and what it is made from, and nothing else",
			want: two, have: has(nil), opts: planner.Options{Targets: []planner.Address{b.With("proxy")}},
			plan: lines(
				"invocation.a is absent",
				"invocation.b is absent",
				"pending: sandplan.image is missing",
				"pending: sandplan.shim is missing",
				"pending: sandplan.uplink is missing",
				"pending: vendor.v.image is missing",
				"pending: invocation.a does not exist yet",
				"pending: invocation.b does not exist yet",
				"create sandplan.image it does not exist yet",
				"create sandplan.uplink it does not exist yet",
				"create invocation.b.network it does not exist yet",
				"create invocation.b.proxy it does not exist yet",
			),
		},
		{
			name: "target with dependents", reason: "replacing the uplink alone would leave every proxy on a dead ID; " +
				"what they are made from anew has to be right too",
			want: two, have: has(two).tampered(planner.AddrUplink, "Text", "x").without(b.With("network")),
			opts: planner.Options{Targets: []planner.Address{planner.AddrUplink}},
			plan: lines(
				`drift: sandplan.uplink Text: want "uplink", got "x"`,
				"drift: invocation.b.network is missing",
				"replace sandplan.uplink somebody changed it",
				"replace invocation.a.proxy sandplan.uplink will be replaced",
				"replace invocation.a.agent its proxy will be replaced",
				"create invocation.b.network it is missing",
				"replace invocation.b.proxy sandplan.uplink will be replaced",
				"replace invocation.b.agent its network is missing",
			),
		},
		{
			name: "target elsewhere", reason: "drift outside the targets is told and left alone",
			want: two, have: has(two).tampered(inv.With("agent"), "Text", "x"), opts: planner.Options{Targets: []planner.Address{b}},
			plan: lines(`drift: invocation.a.agent Text: want "old", got "x"`),
		},
		{
			name: "replace", reason: "asked for although nothing differs, with all that depends on it",
			want: two, have: has(two), opts: planner.Options{Replace: []planner.Address{b.With("network")}},
			plan: lines(
				"replace invocation.b.network -replace asks for it",
				"replace invocation.b.proxy its network will be replaced",
				"replace invocation.b.agent its network will be replaced",
			),
		},
		{
			name: "no such address", reason: "an address with a typing error must not pass in silence",
			want: world(), have: has(world()),
			opts: planner.Options{Replace: []planner.Address{"invocation.zz"}},
			plan: lines("warning: -replace=invocation.zz names nothing, neither in the configuration nor on the engine."),
		},
		{
			name: "other origin", reason: "a scope in use by somebody else is told of; nothing is taken over by itself",
			want: world(), have: has(world()), opts: other,
			plan: lines("warning: The scope demo/default is in use by host:/dir. Use -workspace for a scope of your own, or -takeover to replace every object of this one."),
		},
		{
			name: "takeover", reason: "every object of the scope is made anew; images have no origin",
			want: world(), have: has(world()), opts: planner.Options{Origin: "laptop:/src", Takeover: true},
			plan: lines(
				"replace sandplan.shim the scope is taken over",
				"replace sandplan.uplink the scope is taken over",
				"replace invocation.a.network the scope is taken over",
				"replace invocation.a.proxy the scope is taken over",
				"replace invocation.a.agent the scope is taken over",
				"warning: The scope demo/default is in use by host:/dir. Use -workspace for a scope of your own, or -takeover to replace every object of this one.",
			),
		},
		{
			name: "takeover of one's own", reason: "where nobody else is, there is nothing to take over",
			want: world(), have: has(world()), opts: planner.Options{Origin: "host:/dir", Takeover: true}, plan: "",
		},
		{
			name: "elsewhere and unchecked", reason: "both are said, with the command and the moment",
			want: world(), have: func() *engine {
				e := has(world())
				e.Elsewhere = []planner.Scope{{Project: "old", Workspace: "w"}}
				e.Unchecked = []string{"The engine's namespaces are checked at apply."}
				return e
			}(),
			plan: lines(
				"warning: Objects of this configuration stand in the scope old/w, too. To remove them: sandplan destroy -project=old -workspace=w",
				"warning: The engine's namespaces are checked at apply.",
			),
		},
	})
}

func TestDiffOfRecordedLabels(t *testing.T) {
	agent, proxy, network := inv.With("agent"), inv.With("proxy"), inv.With("network")
	cases := []diffCase{
		{name: "equal", reason: "every object is as its label says", have: has(world("test")), plan: ""},
		{
			name: "tampered", reason: "no configuration is needed to see drift",
			have: has(world()).tampered(agent, "Text", "x"),
			plan: lines(
				`drift: invocation.a.agent Text: want "old", got "x"`,
				"replace invocation.a.agent somebody changed it",
			),
		},
		{
			name: "part gone", reason: "what an object depends on is wanted with it",
			have: has(world()).without(network),
			plan: lines(
				"drift: invocation.a.network is missing",
				"create invocation.a.network it is missing",
				"replace invocation.a.proxy its network is missing",
				"replace invocation.a.agent its network is missing",
			),
		},
		{
			name: "forged digest", reason: "the digest label is judged, not believed",
			have: has(world()).with(proxy, func(o *planner.Object) { o.Digest = "0000" }),
			plan: lines(
				"drift: invocation.a.proxy has a label that does not match its own digest",
				"replace invocation.a.proxy its label does not match its own digest",
				"replace invocation.a.agent its proxy will be replaced",
			),
		},
	}
	for i := range cases {
		cases[i].want = planner.Recorded(cases[i].have.Snapshot)
	}
	runDiffCases(t, cases)
}
