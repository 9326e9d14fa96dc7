package hclspec

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
)

// memory is a file system with the files below /conf, or anywhere when their names are absolute.
func memory(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		if !strings.HasPrefix(name, "/") {
			name = "/conf/" + name
		}
		m[name[1:]] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return m
}

// loadFiles loads the configuration in /conf.
func loadFiles(t testing.TB, files map[string]string, vars Vars) (*Spec, hcl.Diagnostics) {
	t.Helper()
	return Load(Source{Path: "/conf", Cwd: "/home/me", FS: memory(files)}, vars, testCatalog)
}

const head = "sandplan {\n  project = \"p\"\n}\nvendor \"claude\" {\n  image = \"agent:1\"\n}\n"

// mustLoad loads what head begins and body goes on with.
func mustLoad(t testing.TB, body string, vars Vars) *Spec {
	t.Helper()
	spec, diags := loadFiles(t, map[string]string{"sandplan.hcl": head + body}, vars)
	if len(diags) > 0 {
		t.Fatal(details(diags))
	}
	return spec
}

func args(assign ...string) Vars {
	v := Vars{}
	for _, a := range assign {
		v.Args = append(v.Args, VarArg{Assign: a})
	}
	return v
}

func TestDefaultsAreThoseOfTheManual(t *testing.T) {
	spec := mustLoad(t, `
invocation "a" {
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "../src"
}
`, Vars{})
	i := spec.Invocations[0]
	got := []any{spec.Workspace, spec.Provider.SubnetPool.V.String(), i.Address, i.Vendor.V, i.Phase.V, i.Worktree.V, i.Timeout.V,
		i.Git.V, i.AfterRun.V, i.User.V, i.Limits.Memory.V, i.Limits.CPUs.V, i.Limits.PIDs.V, i.Limits.Output.V, i.Limits.Upload.V,
		i.Limits.Download.V, i.Limits.Download.Set, i.Limits.Tunnels.V, i.Limits.TunnelsPerSecond.V,
		i.Timeout.Set, i.Vendor.Set, spec.Vendors[0].Kind.V, spec.Vendors[0].Version.V, spec.Vendors[0].Hosts[0].Name, spec.Vendors[0].Hosts[0].Port.V}
	want := []any{"default", "10.213.0.0/16", "invocation.a", "claude", "review", "/src", 30 * time.Minute,
		"read-only", "rearm", "", int64(2 << 30), 2.0, int64(256), int64(10 << 20), int64(64 << 20),
		int64(NoBound), false, int64(256), int64(100),
		false, true, "claude", "2.1.332", "api.anthropic.com", 443}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r := i.Timeout.Range; r.Start.Line != 8 {
		t.Errorf("the range of a default is at %s, want the block in line 8", r)
	}
	if r := i.Worktree.Range; r.Start.Line != 11 {
		t.Errorf("the range of worktree is at %s, want line 11", r)
	}
	var phases []string
	for _, p := range spec.Phases {
		phases = append(phases, p.Name)
	}
	if diff := cmp.Diff([]string{"execute", "fix", "planning", "questions", "review"}, phases); diff != "" {
		t.Errorf("built-in phases need no block: %s", diff)
	}
}

func TestInstancesAreInTheOrderOfAddresses(t *testing.T) {
	spec := mustLoad(t, `
invocation "b" {
  count    = 11
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/w/${count.index}"
}
invocation "a-b" {
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/w"
}
invocation "a" {
  for_each = { z = vendor.claude, "x y" = vendor.claude }
  vendor   = each.value
  phase    = phase.review
  worktree = "/w/${each.key}"
}
`, Vars{})
	var got []string
	for _, i := range spec.Invocations {
		got = append(got, i.Address+" "+i.Worktree.V)
	}
	want := []string{"invocation.a-b /w", `invocation.a["x y"] /w/x y`, `invocation.a["z"] /w/z`}
	for _, n := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"} {
		want = append(want, "invocation.b["+n+"] /w/"+n)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLaterValuesWin(t *testing.T) {
	files := map[string]string{
		"sandplan.hcl":            head + "variable \"v\" {\n default = \"default\"\n}\nlocals {\n out = var.v\n}\noutput \"v\" {\n value = local.out\n}\n",
		"sandplan.spvars.hcl":     `v = "file"`,
		"a.auto.spvars.hcl":       `v = "auto a"`,
		"b.auto.spvars.hcl":       `v = "auto b"`,
		".hidden.auto.spvars.hcl": `v = "hidden"`,
		"/home/me/x.hcl":          `v = "var-file"`,
	}
	env := []string{"PATH=/bin", "SANDPLAN_VAR_v=env", "SANDPLAN_VAR_=x"}
	assign, file := VarArg{Assign: "v=arg=1"}, VarArg{File: "x.hcl"}
	tests := []struct {
		without []string
		vars    Vars
		want    string
		from    string
		reason  string
	}{
		{nil, Vars{Env: env, Args: []VarArg{file, assign}}, "arg=1", "-var", "the last argument wins, and only the first = divides"},
		{nil, Vars{Env: env, Args: []VarArg{assign, file}}, "var-file", "x.hcl", "-var and -var-file count in their common order"},
		{nil, Vars{Env: env}, "auto b", "/conf/b.auto.spvars.hcl", "automatic files are read in the order of their names"},
		{[]string{"b.auto.spvars.hcl", "a.auto.spvars.hcl"}, Vars{Env: env}, "file", "/conf/sandplan.spvars.hcl", "the environment is weakest"},
		{[]string{"b.auto.spvars.hcl", "a.auto.spvars.hcl", "sandplan.spvars.hcl"}, Vars{Env: env}, "env", "SANDPLAN_VAR_v", "the environment beats the default"},
		{[]string{"b.auto.spvars.hcl", "a.auto.spvars.hcl", "sandplan.spvars.hcl"}, Vars{}, "default", "default", "nothing else is given"},
	}
	for _, test := range tests {
		left := map[string]string{}
		for n, text := range files {
			left[n] = text
		}
		for _, n := range test.without {
			delete(left, n)
		}
		spec, diags := loadFiles(t, left, test.vars)
		if len(diags) > 0 {
			t.Fatalf("%s: %s", test.reason, details(diags))
		}
		out, _ := spec.EvalOutputs(nil)
		if got := out["v"].Value.AsString(); got != test.want || spec.Variables[0].From != test.from {
			t.Errorf("%s: got %q from %q, want %q from %q", test.reason, got, spec.Variables[0].From, test.want, test.from)
		}
	}
}

// TestValidateKnowsNoValues holds what `validate` promises: nothing is required, and what is wrong
// whatever the values is found.
func TestValidateKnowsNoValues(t *testing.T) {
	body := `
variable "image" { default = "not an image" }
variable "names" { type = set(string) }
variable "n"     { type = number }
variable "kind"  { default = "claude" }
variable "which" { type = bool }
variable "token" {
  sensitive = true
  validation {
    condition     = length(var.token) > length(var.tokne)
    error_message = "never"
  }
}
vendor "other" {
  kind  = var.kind
  image = var.image
  env   = { A = var.image, HTTP_PROXY = var.image }
}
invocation "a" {
  for_each = var.names
  vendor   = vendor.other
  phase    = var.which ? phase.review : phase.fix
  worktree = "/w/${each.value}"
  timeout  = "soon"
}
invocation "b" {
  count    = var.n
  vendor   = var.which ? vendor.other : vendor.claude
  phase    = phase.review
  worktree = "/w/${count.index}"
  user     = var.token
}
output "o" { value = invocation.a["x"].proxy_addr }
check "c" {
  assert {
    condition     = var.n > 1
    error_message = "never"
  }
}
`
	spec, diags := loadFiles(t, map[string]string{"sandplan.hcl": head + body}, Vars{Unknown: true})
	want := []string{"ERROR: " + UndeclaredReference, "ERROR: " + InvalidEnvName, "ERROR: " + InvalidDuration, "ERROR: " + SensitiveValue, "ERROR: " + InvalidReference}
	var got []string
	for _, d := range describe(diags) {
		_, rest, _ := strings.Cut(d, " ")
		got = append(got, rest)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%s", diff, details(diags))
	}
	if len(spec.Invocations) != 2 {
		t.Fatalf("%d instances, want one for each block", len(spec.Invocations))
	}
	a, b := spec.Invocations[0], spec.Invocations[1]
	if a.Vendor.V != "other" || a.Vendor.Unknown || !a.Phase.Unknown || !a.Worktree.Unknown || !b.Vendor.Unknown || b.Phase.V != "review" {
		t.Errorf("known is what is known: %+v %+v", a, b)
	}
}

func TestRequiredVersion(t *testing.T) {
	tests := []struct {
		constraint, version string
		ok                  bool
		reason              string
	}{
		{">= 0.1.0", "0.1.0", true, "equal is enough"},
		{">= 0.2.0", "0.1.9", false, "older"},
		{"~> 0.2", "0.9.0", true, "the last part may grow"},
		{">= 0.2.0", "0.2.0-rc1", true, "a candidate tries what the release will do"},
		{">= 9", "dev", true, "a development version meets everything"},
		{">= 9", "", true, "so does one without a version"},
	}
	for _, test := range tests {
		files := map[string]string{"sandplan.hcl": "sandplan {\n project = \"p\"\n required_version = \"" + test.constraint + "\"\n}\n"}
		_, diags := Load(Source{Path: "/conf", Cwd: "/", FS: memory(files), Version: test.version}, Vars{}, testCatalog)
		if diags.HasErrors() == test.ok {
			t.Errorf("%s with %q: %v (%s)", test.constraint, test.version, diags, test.reason)
		}
	}
}

func TestReadHeadNeedsLittle(t *testing.T) {
	broken := `
sandplan { project = "kept" }
provider "docker" { host = "unix:///run/x.sock" }
variable "needed" {}
vendor "claude" { image = var.gone }
nonsense "x" {}
`
	head, diags := ReadHead(Source{Path: "/conf", Cwd: "/", FS: memory(map[string]string{"sandplan.hcl": broken})})
	if len(diags) > 0 || head.Project.V != "kept" || head.Host.V != "unix:///run/x.sock" || head.Dir != "/conf" {
		t.Errorf("got %+v %v", head, diags)
	}
	head, diags = ReadHead(Source{Path: "/conf", Cwd: "/", FS: memory(map[string]string{"sandplan.hcl": strings.Replace(broken, `"unix:///run/x.sock"`, "var.needed", 1)})})
	if len(diags) > 0 || !head.Host.Unknown {
		t.Errorf("a computed host is unknown: %+v %v", head, diags)
	}
	_, diags = ReadHead(Source{Path: "/conf", Cwd: "/", FS: memory(map[string]string{"sandplan.hcl": "vendor \"x\" {}\n"})})
	if !diags.HasErrors() {
		t.Error("without a project there is nothing to work with")
	}
}

func TestStarterValidates(t *testing.T) {
	for _, vars := range []Vars{{}, {Unknown: true}} {
		if _, diags := loadFiles(t, map[string]string{StarterName: Starter}, vars); len(diags) > 0 {
			t.Error(details(diags))
		}
	}
	spec, _ := loadFiles(t, map[string]string{StarterName: Starter}, Vars{})
	if asks := !spec.Invocations[0].Prompt.Set; asks != strings.Contains(Starter, "run -prompt=- "+spec.Invocations[0].Address) {
		t.Error("the command in its head is not one that runs its invocation")
	}
}

func TestConfigurationPlaces(t *testing.T) {
	one := "sandplan {\n project = \"p\"\n}\n"
	files := memory(map[string]string{"a.hcl": one, "a.lock.hcl": "", "sandplan.hcl": one + "x = 1\n", "sandplan.spvars.hcl": "v = 1", ".#sandplan.hcl": "x"})
	spec, diags := Load(Source{Path: "conf/a.hcl", Cwd: "/", FS: files}, Vars{}, testCatalog)
	if diags.HasErrors() || spec.File != "/conf/a.hcl" || spec.Dir != "/conf" || spec.Lock.Path != "/conf/a.lock.hcl" || !spec.Lock.Exists {
		t.Errorf("a file stands alone: %+v %v", spec, diags)
	}
	if diff := cmp.Diff([]string{"conf/a.hcl", "conf/a.lock.hcl", "conf/sandplan.spvars.hcl"}, sortedKeys(spec.Sources)); diff != "" {
		t.Errorf("sources: %s", diff)
	}
	if diff := cmp.Diff(map[string]string{"conf/a.hcl": "/conf/a.hcl", "conf/a.lock.hcl": "/conf/a.lock.hcl", "conf/sandplan.spvars.hcl": "/conf/sandplan.spvars.hcl"}, spec.Paths); diff != "" {
		t.Errorf("paths: %s", diff)
	}
	spec, diags = Load(Source{Cwd: "/conf", FS: files}, Vars{}, testCatalog)
	if spec.Lock.Path != "/conf/.sandplan.lock.hcl" || spec.Lock.Exists || spec.File != "" {
		t.Errorf("a directory: %+v", spec)
	}
	if got := diags[0].Subject.Filename; got != "sandplan.hcl" {
		t.Errorf("the file is shown as %q, want its name relative to the working directory", got)
	}
	if _, diags = Load(Source{Path: "/gone", Cwd: "/", FS: files}, Vars{}, testCatalog); only(t, diags) != ConfigNotFound {
		t.Error(diags)
	}
}
