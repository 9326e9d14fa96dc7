package hclspec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

const liveBody = `
variable "token" {
  default   = "hunter2"
  sensitive = true
}
locals {
  secret = { token = var.token, list = ["a", var.token], plain = "x" }
  set    = toset(["b", "a"])
}
invocation "one" {
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/w"
}
invocation "each" {
  for_each = local.set
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/w"
}
invocation "counted" {
  count    = 2
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/w"
}
output "proxies" {
  description = "who talks to whom"
  value       = { for k, i in invocation.each : k => i.proxy_address }
}
output "list"    { value = invocation.counted[*].address }
output "subnet"  { value = invocation.counted[1].subnet }
output "id"      { value = invocation.one.agent_id }
output "plain"   { value = "${local.secret.plain} ${local.secret.list[0]} ${vendor.claude.image} ${path.root} ${sandplan.workspace} ${file("note.txt")}" }
output "secret" {
  value     = local.secret
  sensitive = true
}
check "proxy" {
  assert {
    condition     = invocation.one.proxy_address == "10.0.0.2"
    error_message = "It is ${invocation.one.proxy_address}."
  }
}
check "secret" {
  assert {
    condition     = var.token == "x"
    error_message = "It is ${var.token}."
  }
}
`

// throughJSON is the Spec as a plan file gives it back.
func throughJSON(t *testing.T, s *Spec) *Spec {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	back := &Spec{FS: s.FS}
	if err := json.Unmarshal(b, back); err != nil {
		t.Fatal(err)
	}
	return back
}

func TestOutputsOfBothSpecs(t *testing.T) {
	files := map[string]string{"sandplan.hcl": head + liveBody, "note.txt": "noted"}
	loaded, diags := loadFiles(t, files, Vars{})
	if len(diags) > 0 {
		t.Fatal(details(diags))
	}
	saved := throughJSON(t, loaded)
	if diff := cmp.Diff(loaded.Invocations, saved.Invocations); diff != "" {
		t.Errorf("a Spec changes on its way through JSON: %s", diff)
	}
	live := map[string]Live{
		`invocation.each["a"]`:  {ProxyAddress: "10.0.0.10"},
		`invocation.each["b"]`:  {ProxyAddress: "10.0.0.18"},
		`invocation.counted[1]`: {Subnet: "10.0.0.24/29"},
		`invocation.one`:        {ProxyAddress: "10.0.0.34"},
	}
	want := map[string]string{
		"proxies": `{"a":"10.0.0.10","b":"10.0.0.18"}`,
		"list":    `["invocation.counted[0]","invocation.counted[1]"]`,
		"subnet":  `"10.0.0.24/29"`,
		"id":      "unknown",
		"plain":   `"x a agent:1 /conf default noted"`,
		"secret":  `sensitive {"list":["a","hunter2"],"plain":"x","token":"hunter2"}`,
	}
	for name, spec := range map[string]*Spec{"loaded": loaded, "saved": saved} {
		out, diags := spec.EvalOutputs(live)
		if len(diags) > 0 {
			t.Fatalf("%s: %s", name, details(diags))
		}
		got := map[string]string{}
		for n, o := range out {
			got[n] = show(t, o)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if out["proxies"].Description != "who talks to whom" {
			t.Errorf("%s: the description is lost", name)
		}
		checks := spec.EvalChecks(live)
		if len(checks) != 2 || checks[0].Summary != FailedCheck || !strings.HasPrefix(checks[0].Detail, "It is 10.0.0.34.") {
			t.Fatalf("%s: %s", name, details(checks))
		}
		if strings.Contains(details(checks), "hunter2") {
			t.Errorf("%s: a check shows a secret: %s", name, details(checks))
		}
	}
}

func show(t *testing.T, o Output) string {
	t.Helper()
	if !o.Value.IsWhollyKnown() {
		return "unknown"
	}
	b, err := ctyjson.Marshal(o.Value, o.Value.Type())
	if err != nil {
		t.Fatal(err)
	}
	if o.Sensitive {
		return "sensitive " + string(b)
	}
	return string(b)
}

func TestScopeKeepsWhatIsReferredTo(t *testing.T) {
	spec := mustLoad(t, `
locals {
  used   = "u"
  unused = "secret of another place"
}
output "o" { value = local.used }
`, Vars{})
	b, err := json.Marshal(spec.Scope)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(b); strings.Contains(s, "secret of another place") || !strings.Contains(s, `"local.unused"`) {
		t.Errorf("names are kept, values only where they are used: %s", s)
	}
}

// TestInstanceKeysSurviveJSON holds that a saved plan has the keys that addresses are made of.
func TestInstanceKeysSurviveJSON(t *testing.T) {
	in := []Invocation{{Address: "invocation.a"}, {Address: `invocation.b["x"]`, Key: "x"}, {Address: "invocation.c[3]", Key: 3}}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out []Invocation
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{`{"Key": 1.5}`, `{"Key": []}`, `{"Key": true}`} {
		if err := json.Unmarshal([]byte(bad), new(Invocation)); err == nil {
			t.Errorf("%s is taken for an instance", bad)
		}
	}
}

// TestEditedPlanFiles holds that what somebody has written into a plan file is an error at worst.
func TestEditedPlanFiles(t *testing.T) {
	edits := []struct {
		reason string
		edit   func(*Spec)
	}{
		{"a value of another type", func(s *Spec) { setScope(s, `"string"`, `[1]`) }},
		{"no value", func(s *Spec) { setScope(s, `"string"`, ``) }},
		{"no JSON", func(s *Spec) { setScope(s, `"string`, `x`) }},
		{"null", func(s *Spec) { setScope(s, `null`, `null`) }},
		{"a deep type", func(s *Spec) {
			setScope(s, strings.Repeat(`["list",`, 9000)+`"string"`+strings.Repeat("]", 9000), strings.Repeat("[", 9000)+strings.Repeat("]", 9000))
		}},
		{"steps that lead nowhere", func(s *Spec) { setScope(s, `"string"`, `"x"`, ".a", "[b", "#1") }},
		{"a step that is none", func(s *Spec) { setScope(s, `"string"`, `"x"`, "#x") }},
		{"an empty step", func(s *Spec) { setScope(s, `["list","string"]`, `["x"]`, "") }},
		{"many instances", func(s *Spec) { s.Scope.Invocations["counted"] = Repetition{Kind: "count", Count: 1 << 60} }},
		{"fewer than none", func(s *Spec) { s.Scope.Invocations["counted"] = Repetition{Kind: "count", Count: -1} }},
		{"another kind", func(s *Spec) { s.Scope.Invocations["one"] = Repetition{Kind: "for_each"} }},
		{"an unknown kind", func(s *Spec) { s.Scope.Invocations["one"] = Repetition{Kind: "x", Count: 3} }},
		{"no instances known", func(s *Spec) { s.Scope.Invocations = nil }},
		{"no names", func(s *Spec) { s.Scope.Values = nil }},
		{"odd names", func(s *Spec) { s.Scope.Values = map[string]ScopeValue{"": {}, ".": {}, "var": {}, "x.y.z": {}} }},
		{"no sources", func(s *Spec) { s.Sources = nil }},
		{"deep sources", func(s *Spec) { s.Sources[s.Scope.Configs[0]] = []byte(strings.Repeat("[", 1<<20)) }},
		{"blocks that loading would refuse", func(s *Spec) {
			s.Sources[s.Scope.Configs[0]] = []byte("output \"a b\" {}\noutput \"x\" {\n value = file(\"/etc/passwd\")\n}\ncheck \"\" {}\n")
		}},
	}
	for _, e := range edits {
		t.Run(e.reason, func(t *testing.T) {
			spec, diags := loadFiles(t, map[string]string{"sandplan.hcl": head + liveBody, "note.txt": "noted"}, Vars{})
			if len(diags) > 0 {
				t.Fatal(details(diags))
			}
			e.edit(spec)
			_, diags = spec.EvalOutputs(nil)
			checkForm(t, diags)
			checkForm(t, spec.EvalChecks(nil))
		})
	}
}

func setScope(s *Spec, ty, value string, steps ...string) {
	v := ScopeValue{Type: json.RawMessage(ty), Value: json.RawMessage(value)}
	if len(steps) > 0 {
		v.Sensitive = [][]string{steps}
	}
	s.Scope.Values["local.secret"] = v
}
