package render

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/sandplan/sandplan/planner"
)

// createAuth are the changes that make one invocation.
func (e example) createAuth() []planner.Change {
	const name = "sandplan-codeboost-default-login-auth-"
	return []planner.Change{
		create(login.With(planner.PartNetwork), planner.KindNetwork, network(name+"6be1f2", "10.213.4.8/29")),
		create(login.With(planner.PartProxy), planner.KindProxy, proxy("auth-proxy-6be1f2", "10.213.4.10:3128", "api.anthropic.com:443")),
		create(login.With(planner.PartAgent), planner.KindAgent, e.agent(login, name+"agent-6be1f2", "10.213.4.11", "/home/dev/codeboost/auth", 2<<30)),
	}
}

// drift are the findings about the agent and the network of the invocation "session".
func (e example) drift(want planner.FindingKind) []planner.Finding {
	block := e.at(`invocation "login" {`)
	memory := e.attr("limits.memory", "HostConfig.Memory", `memory = "2GiB"`, 0, planner.UnitBytes)
	memory.Value = planner.Value{}
	return []planner.Finding{
		{Kind: want, Addr: session.With(planner.PartNetwork), Decl: block, Mismatch: &planner.Mismatch{
			Field: planner.Field{Path: "arp_ignore", Class: planner.ClassSet}, Want: planner.JSON(1), Got: planner.JSON(0)}},
		{Kind: want, Addr: session.With(planner.PartAgent), Decl: memory.At(), Mismatch: &planner.Mismatch{
			Field: memory, Want: planner.JSON(2 << 30), Got: planner.JSON(8 << 30)}},
		{Kind: want, Addr: session.With(planner.PartAgent), Decl: block, Extra: &planner.Extra{
			Path: "NetworkSettings.Networks.bridge", Detail: `attached to the network "bridge"`}},
	}
}

// changedPlan has every action, and drift.
func (e example) changedPlan() *planner.Plan {
	const name = "sandplan-codeboost-default-login-"
	runnerImage := planner.RunnerImage("review", "test")
	changes := []planner.Change{
		{Addr: runnerImage, Kind: planner.KindPinned, Action: planner.ActionNoOp, Object: planner.Object{ID: "sha256:aa55"}},
	}
	changes = append(changes, e.createAuth()...)
	changes = append(changes, create(login.Runner("test"), planner.KindRunner,
		e.runner(name+"auth-runner-test-6be1f2", "npm", "test", "--", "--run")))
	net := network(name+"session-90ab12", "10.213.4.16/29")
	agent := e.agent(session, name+"session-agent-90ab12", "10.213.4.19", "/home/dev/codeboost/session", 2<<30)
	was := with(with(agent, "HostConfig.Memory", 8<<30), "HostConfig.MemorySwap", 8<<30)
	run := e.runner(name+"session-runner-test-90ab12", "npm", "test", "--", "--run")
	replace := func(a planner.Address, k planner.Kind, before, after []planner.Field, why []planner.Reason) planner.Change {
		return planner.Change{Addr: a, Kind: k, Title: title, Action: planner.ActionReplace, Before: before, After: after,
			Object: planner.Object{ID: "5b2d8e1f0a3c"}, Reasons: why}
	}
	changes = append(changes,
		planner.Change{Addr: session.With(planner.PartNetwork), Kind: planner.KindNetwork, Title: title, Action: planner.ActionRestore,
			Before: with(net, "arp_ignore", 0), After: net, Reasons: because(planner.ReasonDrift, "because somebody changed it")},
		replace(session.With(planner.PartProxy), planner.KindProxy,
			proxy("session-proxy-90ab12", "10.213.4.18:3128", "api.anthropic.com:443"),
			proxy("session-proxy-90ab12", "10.213.4.18:3128", "api.anthropic.com:443", "statsig.anthropic.com:443"),
			because(planner.ReasonDeclaration, "because its declaration was changed")),
		replace(session.With(planner.PartAgent), planner.KindAgent, was, agent, because(planner.ReasonDrift, "because somebody changed it")),
		replace(session.Runner("test"), planner.KindRunner, with(run, "Config.Cmd", []string{"npm", "test"}), run,
			because(planner.ReasonDeclaration, "because its declaration was changed")),
		destroy(tokens.With(planner.PartNetwork), planner.KindNetwork, network(name+"tokens-1c77d0", "10.213.4.24/29"),
			because(planner.ReasonNoKey, `because the key "tokens" is no longer in for_each`)),
	)
	return &planner.Plan{Scope: codeboost, Changes: changes, Findings: e.drift(planner.FindingDrift)}
}

func TestPlan(t *testing.T) {
	e := readExample(t, "sandplan.hcl")
	view := PlanView{Free: 8123, Pool: "10.213.0.0/16", Hint: true, Permissions: allowedAuth()}
	golden(t, filepath.Join(outputDir, "plan.txt"), e.renderer().Plan(e.changedPlan(), view))
}

func TestPlanInColor(t *testing.T) {
	e := readExample(t, "sandplan.hcl")
	r := e.renderer()
	r.Color = true
	golden(t, "testdata/plan-color.txt", strings.ReplaceAll(r.Plan(e.changedPlan(), PlanView{}), "\x1b", "␛"))
}

func TestPlanEmpty(t *testing.T) {
	e := readExample(t, "sandplan.hcl")
	pl := &planner.Plan{Scope: codeboost}
	for i := range 9 {
		pl.Changes = append(pl.Changes, planner.Change{Addr: planner.VendorImage(fmt.Sprint("v", i)), Action: planner.ActionNoOp, Object: planner.Object{ID: "x"}})
	}
	golden(t, filepath.Join(outputDir, "plan-empty.txt"), e.renderer().Plan(pl, PlanView{Hint: true}))
}

// TestPlanWithoutChanges: what a target leaves out was not looked at, and a plan that was saved was saved.
func TestPlanWithoutChanges(t *testing.T) {
	pl := &planner.Plan{Scope: codeboost, Changes: []planner.Change{{Action: planner.ActionNoOp, Object: planner.Object{ID: "x"}}}}
	for _, tt := range []struct {
		view         PlanView
		says, reason string
	}{
		{PlanView{Hint: true}, "in every setting of the 1 object", "all of it"},
		{PlanView{Hint: true, Targeted: true}, "to what -target names", "a part of it"},
		{PlanView{Hint: true, Saved: "p"}, "\n\nSaved to p.\n", "an empty plan can be saved, too"},
	} {
		got := (&Renderer{}).Plan(pl, tt.view)
		if !strings.HasPrefix(got, "No changes.") || !strings.Contains(got, tt.says) || strings.Contains(got, "every setting") == tt.view.Targeted {
			t.Errorf("%s: %q", tt.reason, got)
		}
	}
}

// TestOutputChangesText: what becomes of outputs stands below the summary, nothing secret with it, and nothing at
// all where nothing does.
func TestOutputChangesText(t *testing.T) {
	id := cty.StringVal("0123")
	was := []Output{{Name: "same", Value: id}, {Name: "id", Value: id}, {Name: "secret", Value: id, Sensitive: true}}
	will := []Output{{Name: "fresh", Value: cty.MapVal(map[string]cty.Value{"a": id})}, {Name: "id", Value: cty.UnknownVal(cty.String)},
		{Name: "same", Value: id}, {Name: "secret", Value: cty.StringVal("hunter2"), Sensitive: true}}
	p := &page{r: &Renderer{}}
	p.outputChanges(OutputChanges(was, will))
	const want = `
Changes to outputs:
  + fresh  = { a = "0123" }
  ~ id     = "0123" -> (known after apply)
  ~ secret = (sensitive value) -> (sensitive value)
`
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Errorf("rendered: %s", diff)
	}
	p = &page{r: &Renderer{}}
	if p.outputChanges(OutputChanges(was, was)); p.String() != "" {
		t.Errorf("nothing changes, and this is printed: %q", p.String())
	}
}

// TestApprovalOfDestruction: the question is about what goes, and not about more.
func TestApprovalOfDestruction(t *testing.T) {
	gone := planner.Change{Action: planner.ActionDelete, Object: planner.Object{ID: "x"}}
	stays := planner.Change{Action: planner.ActionNoOp, Object: planner.Object{ID: "y"}}
	for _, tt := range []struct {
		changes []planner.Change
		want    string
	}{{[]planner.Change{gone}, "destroy everything of"}, {[]planner.Change{gone, stays}, "destroy this of"}} {
		if got := (&Renderer{}).Approval(&planner.Plan{Scope: codeboost, Destroy: true, Changes: tt.changes}); !strings.Contains(got, tt.want) {
			t.Errorf("%q lacks %q", got, tt.want)
		}
	}
}

// TestPlanNeverHidesDrift: the gate refuses on it, so a plan that has nothing else to say still says it.
func TestPlanNeverHidesDrift(t *testing.T) {
	e := readExample(t, "sandplan.hcl")
	got := e.renderer().Plan(&planner.Plan{Scope: codeboost, Findings: e.drift(planner.FindingDrift)}, PlanView{Hint: true})
	for _, want := range []string{"Note: 2 objects were changed", `memory = "2GiB" -> "8GiB"`, "No changes."} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
}

// TestPlanOfManyAlike: of more than twenty invocations with the same changes one is printed.
func TestPlanOfManyAlike(t *testing.T) {
	for _, tt := range []struct {
		n, blocks int
		reason    string
	}{
		{20, 20, "twenty are still read one by one"},
		{21, 1, "of more the first stands for all, and the others are listed"},
	} {
		pl := &planner.Plan{Scope: codeboost}
		for i := range tt.n {
			a := planner.InvocationAddress("login", i).With(planner.PartNetwork)
			pl.Changes = append(pl.Changes, create(a, planner.KindNetwork, network(fmt.Sprint("net-", i), fmt.Sprintf("10.213.4.%d/29", 8*i))))
		}
		got := (&Renderer{}).Plan(pl, PlanView{})
		if n := strings.Count(got, "+ network {"); n != tt.blocks {
			t.Errorf("%d invocations: %d blocks, want %d: %s", tt.n, n, tt.blocks, tt.reason)
		}
		if !strings.Contains(got, fmt.Sprintf("Plan: %d to add", tt.n)) {
			t.Errorf("%d invocations: the summary does not count them all:\n%s", tt.n, got)
		}
		if last := fmt.Sprintf("invocation.login[%d]", tt.n-1); !strings.Contains(got, last) {
			t.Errorf("%d invocations: %s is not named", tt.n, last)
		}
	}
}

func TestPlanMasksSensitive(t *testing.T) {
	secret := planner.Field{Path: "Config.Cmd", Attr: "prompt", Value: planner.JSON("hunter2"), Show: planner.Headline, Sensitive: true}
	other := secret
	other.Value = planner.JSON("hunter3")
	for name, c := range map[string]planner.Change{
		"create":  {Action: planner.ActionCreate, After: []planner.Field{secret}},
		"replace": {Action: planner.ActionReplace, Before: []planner.Field{other}, After: []planner.Field{secret}},
		"delete":  {Action: planner.ActionDelete, Before: []planner.Field{secret}},
	} {
		c.Addr, c.Kind = login.With(planner.PartAgent), planner.KindAgent
		got := (&Renderer{Verbose: true}).Plan(&planner.Plan{Scope: codeboost, Changes: []planner.Change{c}}, PlanView{})
		if strings.Contains(got, "hunter") || !strings.Contains(got, textSensitive) {
			t.Errorf("%s shows a sensitive value, or does not say that it hides one:\n%s", name, got)
		}
	}
}

// TestPlanNeutralisesControlCharacters: names come from repositories and from the engine.
func TestPlanNeutralisesControlCharacters(t *testing.T) {
	evil := "\x1b[2J\x1b]0;owned\a\r\nPlan: 0 to add\u202e\u009b31m\xff"
	f := planner.Field{Path: "Name" + evil, Label: evil, Value: planner.JSON(evil), Show: planner.Headline}
	c := planner.Change{Addr: planner.Address("invocation.a" + evil), Kind: planner.Kind(evil), Title: evil,
		Action: planner.ActionReplace, After: []planner.Field{f}, Reasons: because(planner.ReasonDrift, evil),
		Extra: []planner.Extra{{Path: evil, Detail: evil}}}
	pl := &planner.Plan{Scope: planner.Scope{Project: evil}, Changes: []planner.Change{c}, Findings: []planner.Finding{
		{Kind: planner.FindingDrift, Addr: c.Addr, Text: evil},
		{Kind: planner.FindingDrift, Addr: c.Addr, Extra: &c.Extra[0]}}}
	r := &Renderer{Sources: map[string][]byte{evil: []byte("a = " + evil)}}
	place := hcl.Range{Filename: evil, Start: hcl.InitialPos, End: hcl.Pos{Line: 1, Column: 4, Byte: 8}}
	text := r.Plan(pl, PlanView{Saved: evil, Pool: evil, Hint: true}) + r.Refusal(c.Addr, pl.Findings) +
		r.Diagnostics(hcl.Diagnostics{{Severity: hcl.DiagError, Summary: evil, Detail: strings.ReplaceAll(evil, "\n", ""), Subject: &place, Extra: About(evil)}})
	for i, b := range []byte(text) {
		if b < 0x20 && b != '\n' {
			t.Fatalf("byte %d is %#x: %q", i, b, text[max(0, i-30):i+5])
		}
	}
	for _, bad := range []string{"\u202e", "\u009b", "\xff", "\nPlan: 0 to add\\u202e"} {
		if strings.Contains(text, bad) && bad != "\xff" {
			t.Errorf("%q got through", bad)
		}
	}
	if n := strings.Count(text, "\nPlan: "); n != 1 {
		t.Errorf("%d lines begin with Plan:, and one of them is a name", n)
	}
}

// TestPlanNamesTheCauseOfANewID: what binds the ID of an object that is replaced shows that, and why.
func TestPlanNamesTheCauseOfANewID(t *testing.T) {
	e := readExample(t, "sandplan.hcl")
	net, agent := login.With(planner.PartNetwork), login.With(planner.PartAgent)
	fields := e.agent(login, "agent", "10.213.4.11", "/tree", 2<<30)
	before, after := network("net", "10.213.4.8/29"), network("net", "10.213.4.16/29")
	pl := &planner.Plan{Scope: codeboost, Changes: []planner.Change{
		{Addr: net, Kind: planner.KindNetwork, Action: planner.ActionReplace, Before: before, After: after,
			Object: planner.Object{ID: longID("7f00aa11bb22")}, Reasons: because(planner.ReasonDeclaration, "because its declaration was changed")},
		{Addr: agent, Kind: planner.KindAgent, Action: planner.ActionReplace, Before: fields, After: fields, Object: planner.Object{ID: longID("c0ffee")},
			Reasons: because(planner.ReasonDependency, "because its network will be replaced")},
	}}
	got := e.renderer().Plan(pl, PlanView{})
	for _, want := range []string{
		"  # (because its network will be replaced)\n",
		"      ~ network = \"7f00aa11bb22\" -> (known after apply) # forces replacement\n        # (14 unchanged settings hidden; -verbose)\n",
		"Plan: 2 to add, 0 to change, 2 to destroy.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
}
