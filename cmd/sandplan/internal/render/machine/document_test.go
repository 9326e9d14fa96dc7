package machine

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/zclconf/go-cty/cty"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
)

const inv = planner.Address(`invocation.login["auth"]`)

// valid holds a document, or a line, to its schema.
func valid(t *testing.T, schema, text string) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(filepath.Join("../../../../../docs/schema", schema+".json"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if schema != "events" {
			line = text
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err == nil {
			err = s.Validate(v)
		}
		if err != nil {
			t.Fatalf("not as docs/schema/%s.json says: %v\n%s", schema, err, line)
		}
	}
}

func field(path string, v planner.Value) planner.Field { return planner.Field{Path: path, Value: v} }

// examplePlan has a change of each kind, and one of each thing that must not be shown as it is.
func examplePlan() *planner.Plan {
	agent, network, proxy := inv.With(planner.PartAgent), inv.With(planner.PartNetwork), inv.With(planner.PartProxy)
	secret := planner.Field{Path: "Config.Env.TOKEN", Value: planner.JSON("hunter2"), Sensitive: true}
	ignored := planner.Field{Path: "Created", Value: planner.JSON("yesterday"), Class: planner.ClassIgnored}
	was := []planner.Field{ignored, secret, field("HostConfig.Memory", planner.JSON(1)), field("Network", planner.Ref(network))}
	will := []planner.Field{ignored, secret, field("HostConfig.Memory", planner.JSON(2)), field("Network", planner.Ref(network)), field("Proxy", planner.Ref(proxy))}
	return &planner.Plan{
		Scope: planner.Scope{Project: "p", Workspace: "w"}, EngineID: "ENGINE",
		Changes: []planner.Change{
			{Addr: network, Kind: planner.KindNetwork, Action: planner.ActionNoOp, Object: planner.Object{Addr: network, ID: "net-id"},
				Before: []planner.Field{field("Driver", planner.JSON("bridge"))}, After: []planner.Field{field("Driver", planner.JSON("bridge"))}},
			{Addr: proxy, Kind: planner.KindProxy, Action: planner.ActionCreate, After: []planner.Field{field("Image", planner.JSON("sha256:1"))}},
			{Addr: agent, Kind: planner.KindAgent, Action: planner.ActionReplace, Object: planner.Object{Addr: agent, ID: "agent-id"}, Before: was, After: will,
				DependsOn: []planner.Address{network, proxy},
				Reasons:   []planner.Reason{{Code: planner.ReasonDrift, Text: "because somebody changed it"}},
				Drift:     []planner.Mismatch{{Field: will[2], Want: planner.JSON(1), Got: planner.JSON(8)}, {Field: secret, Want: secret.Value, Got: planner.JSON("hunter3")}},
				Extra:     []planner.Extra{{Path: "Networks.bridge", Detail: "attached to\x1b[31m bridge"}}},
			{Addr: inv.Runner("old"), Kind: planner.KindRunner, Action: planner.ActionDelete, Object: planner.Object{ID: "runner-id"},
				Before: []planner.Field{field("Config.Cmd", planner.JSON([]string{"a"}))}, Reasons: []planner.Reason{{Code: planner.ReasonNotConfigured}}},
		},
	}
}

func document(t *testing.T) Plan {
	t.Helper()
	return NewPlan(PlanInput{
		Plan: examplePlan(), Snapshot: planner.Snapshot{EngineID: "ENGINE"}, Version: "1.2.3", Now: time.Unix(0, 0),
		Outputs: []render.Output{{Name: "open", Value: cty.StringVal("x")}, {Name: "secret", Sensitive: true, Value: cty.StringVal("hunter2")},
			{Name: "later", Value: cty.UnknownVal(cty.String)}},
		Variables:     []Variable{{Name: "token", Sensitive: true, From: "-var"}, {Name: "n", From: "default", Value: json.RawMessage("1")}},
		Configuration: NewConfiguration(&hclspec.Spec{Provider: hclspec.Provider{}}),
		Checks:        NewChecks([]hclspec.CheckResult{{Name: "c", State: hclspec.CheckFail, Problems: []string{"It is wrong."}}, {Name: "d", State: hclspec.CheckPass}}),
	})
}

func TestPlanDocument(t *testing.T) {
	p := document(t)
	text := Document(p)
	valid(t, "plan", text)
	for _, secret := range []string{"hunter", "yesterday", "\\u001b", "\x1b"} {
		if strings.Contains(text, secret) {
			t.Errorf("the document holds %q:\n%s", secret, text)
		}
	}
	if diff := cmp.Diff(map[string][]string{
		string(inv.With("network")): {"no-op"}, string(inv.With("proxy")): {"create"}, string(inv.With("agent")): {"delete", "create"}, string(inv.Runner("old")): {"delete"},
	}, actionsOf(p)); diff != "" {
		t.Errorf("actions: %s", diff)
	}
	agent := p.Changes[2]
	if want := (identity{Address: string(inv.With("agent")), Mode: "managed", Type: "agent", Name: "login", Index: "auth", ProviderName: "docker"}); agent.identity != want {
		t.Errorf("identity %+v, want %+v", agent.identity, want)
	}
	want := changeDetail{
		Actions: []string{"delete", "create"},
		Before:  map[string]any{"HostConfig.Memory": json.RawMessage("1"), "Network": "net-id"},
		// The network stays, so that its ID is known; the proxy is new, and its ID is not.
		After:           map[string]any{"HostConfig.Memory": json.RawMessage("2"), "Network": "net-id"},
		AfterUnknown:    map[string]bool{"Proxy": true},
		BeforeSensitive: map[string]bool{"Config.Env.TOKEN": true}, AfterSensitive: map[string]bool{"Config.Env.TOKEN": true},
		ReplacePaths: agent.Change.ReplacePaths,
	}
	if diff := cmp.Diff(want, agent.Change); diff != "" {
		t.Errorf("the agent's change: %s", diff)
	}
	if len(p.Drift) != 1 || len(p.Drift[0].Change.Before) != 1 || !p.Drift[0].Change.AfterSensitive["Config.Env.TOKEN"] || p.Drift[0].Extra[0].Path != "Networks.bridge" {
		t.Errorf("drift: %+v", p.Drift)
	}
	if !p.Outputs["later"].AfterUnknown || p.Outputs["secret"].After != nil || !p.Outputs["secret"].AfterSensitive || p.Outputs["open"].After == nil {
		t.Errorf("outputs: %+v", p.Outputs)
	}
	if v := p.Variables["token"]; v.Value != nil || !v.Sensitive || string(p.Variables["n"].Value) != "1" {
		t.Errorf("variables: %+v", p.Variables)
	}
	if c := p.Checks[0]; c.Status != "fail" || c.Instances[0].Problems[0].Message != "It is wrong." || c.Address.Display != "check.c" {
		t.Errorf("checks: %+v", p.Checks)
	}
	if len(p.Planned.Root.Resources) != 3 {
		t.Errorf("planned are %d resources, want those that there will be", len(p.Planned.Root.Resources))
	}
}

// TestOutputChanges: an output is new, differs or stays, as people who know other plans expect, and nothing
// secret is told on the way.
func TestOutputChanges(t *testing.T) {
	text := func(s string) cty.Value { return cty.StringVal(s) }
	partly := cty.TupleVal([]cty.Value{text("a"), cty.UnknownVal(cty.String)})
	absent := cty.NilVal
	for _, tt := range []struct {
		was, will cty.Value
		action    string
		unknown   bool
		before    string
		reason    string
	}{
		{absent, text("a"), "create", false, "", "nothing was applied yet"},
		{cty.UnknownVal(cty.String), text("a"), "create", false, "", "what it is about was not there"},
		{partly, text("a"), "create", false, "", "a part of what it is about was not there"},
		{text("a"), text("a"), "no-op", false, `"a"`, "nothing changes"},
		{text("a"), text("b"), "update", false, `"a"`, "another value"},
		{text("1"), cty.NumberIntVal(1), "update", false, `"1"`, "another type"},
		{text("a"), cty.UnknownVal(cty.String), "update", true, `"a"`, "what it is about is replaced"},
		{cty.NullVal(cty.String), cty.NullVal(cty.String), "no-op", false, "null", "null is a value"},
	} {
		for _, sensitive := range []bool{false, true} {
			var was []render.Output
			if tt.was != absent {
				was = []render.Output{{Name: "o", Value: tt.was, Sensitive: sensitive}}
			}
			c := newOutputChanges(was, []render.Output{{Name: "o", Value: tt.will, Sensitive: sensitive}})["o"]
			if len(c.Actions) != 1 || c.Actions[0] != tt.action || c.AfterUnknown != (tt.unknown && !sensitive) || c.AfterSensitive != sensitive {
				t.Errorf("%s, sensitive %t: %+v, want %s", tt.reason, sensitive, c, tt.action)
			}
			before, _ := c.Before.(json.RawMessage)
			if sensitive && (c.Before != nil || c.After != nil || c.BeforeSensitive != (tt.action != "create")) || !sensitive && string(before) != tt.before {
				t.Errorf("%s, sensitive %t: before %s, want %s; %+v", tt.reason, sensitive, before, tt.before, c)
			}
		}
	}
}

func actionsOf(p Plan) map[string][]string {
	out := map[string][]string{}
	for _, c := range p.Changes {
		out[c.Address] = c.Change.Actions
	}
	return out
}

// TestConfigurationDocument: what policies ask for is there; prompts, values of environments and where
// credentials come from are not.
func TestConfigurationDocument(t *testing.T) {
	s := &hclspec.Spec{
		Vendors: []hclspec.Vendor{{Name: "v", Kind: hclspec.Val[string]{V: "custom"}, Image: hclspec.Val[string]{V: "agent:1"},
			Env:         []hclspec.EnvVar{{Name: "LANG", Value: hclspec.Val[string]{V: "hunter2"}}},
			Credentials: []hclspec.Credential{{Name: "TOKEN", SourceEnv: hclspec.Val[string]{V: "hunter2"}}},
			Hosts:       []hclspec.Host{{Name: "api.example", Port: hclspec.Val[int]{V: 443}}}}},
		Phases: []hclspec.Phase{{Name: "review", Base: hclspec.Val[string]{V: "review"}, Runners: []hclspec.Runner{{Name: "test", Timeout: hclspec.Val[time.Duration]{V: time.Minute}}}}},
		Invocations: []hclspec.Invocation{{Address: string(inv), Vendor: hclspec.Val[string]{V: "v"}, Prompt: hclspec.Val[string]{V: "hunter2", Set: true},
			AfterRun: hclspec.Val[string]{V: "rearm"}}},
	}
	text := Document(NewConfiguration(s))
	if strings.Contains(text, "hunter2") {
		t.Errorf("a secret is shown: %s", text)
	}
	for _, want := range []string{`"credentials":["TOKEN"]`, `"environment":["LANG"]`, `"name":"api.example","port":443`, `"timeout_seconds":60`, `"declares_prompt":true`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

func TestStateDocument(t *testing.T) {
	network := inv.With(planner.PartNetwork)
	s := planner.Snapshot{EngineID: "E", Scope: planner.Scope{Project: "p", Workspace: "w"}, Objects: []planner.Object{
		{Addr: network, Kind: planner.KindNetwork, ID: "net-id", Schema: "1", Observed: []planner.Field{field("Driver", planner.JSON("bridge"))}},
		{Addr: inv.With(planner.PartAgent), Kind: planner.KindAgent, ID: "agent-id", Schema: "1", Status: planner.StatusCreated, DependsOn: []planner.Address{network},
			Observed: []planner.Field{field("Network", planner.Ref(network)), field("Gone", planner.Ref("sandplan.uplink")), {Path: "Prompt", Sensitive: true, Value: planner.JSON("hunter2")}}},
	}}
	text := Document(NewState(s, "1.2.3"))
	valid(t, "state", text)
	if strings.Contains(text, "hunter2") || !strings.Contains(text, `"Network":"net-id"`) || strings.Contains(text, `"Gone"`) {
		t.Error(text)
	}
}

func TestNameAndKey(t *testing.T) {
	for _, tt := range []struct {
		addr   planner.Address
		name   string
		key    any
		reason string
	}{
		{"invocation.one.agent", "one", nil, "a single instance"},
		{"invocation.many[2].proxy", "many", 2, "count"},
		{`invocation.login["a\"b"].agent`, "login", `a"b`, "for_each, with a quote in the key"},
		{"vendor.claude.image", "claude", nil, "an image has its vendor's name"},
		{"sandplan.uplink", "sandplan", nil, "a shared object"},
	} {
		if name, key := nameAndKey(tt.addr); name != tt.name || key != tt.key {
			t.Errorf("%s: %s: %q, %v", tt.reason, tt.addr, name, key)
		}
	}
}

func TestDiagnosticDocument(t *testing.T) {
	src := []byte("sandplan {\n  project = 1\n}\n")
	at := hcl.Range{Filename: "sandplan.hcl", Start: hcl.Pos{Line: 2, Column: 13, Byte: 23}, End: hcl.Pos{Line: 2, Column: 14, Byte: 24}}
	d := NewDiagnostic(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "S", Detail: "D", Subject: &at, Extra: render.About(inv)}, map[string][]byte{"sandplan.hcl": src})
	if d.Snippet == nil || d.Snippet.Code != "  project = 1" || d.Snippet.Code[d.Snippet.From:d.Snippet.To] != "1" || d.Address != string(inv) || d.Range.Start.Line != 2 {
		t.Errorf("%+v, snippet %+v", d, d.Snippet)
	}
	// A range that is not within its source must not end the program.
	at.Start.Byte, at.End.Byte = 500, 20
	if d := NewDiagnostic(&hcl.Diagnostic{Subject: &at}, map[string][]byte{"sandplan.hcl": src}); d.Snippet == nil || d.Snippet.From != d.Snippet.To {
		t.Errorf("%+v", d.Snippet)
	}
	if d := NewDiagnostic(&hcl.Diagnostic{Severity: hcl.DiagWarning, Subject: &at}, nil); d.Snippet != nil || d.Severity != "warning" || d.Range == nil {
		t.Errorf("without its source: %+v", d)
	}
	valid(t, "validate", Document(NewValidation(hcl.Diagnostics{{Severity: hcl.DiagWarning, Summary: "w"}, {Severity: hcl.DiagError, Summary: "e"}}, nil)))
	valid(t, "validate", Document(NewValidation(nil, nil)))
}
