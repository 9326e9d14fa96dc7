package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
)

const baseConfig = `sandplan {
  project = "p"
}
variable "memory" {
  type    = string
  default = "1GiB"
}
vendor "local" {
  kind    = "custom"
  image   = "agent:1"
  command = ["/agent"]
  env     = { LANG = "C" }
  credential "token" {
    source_env = "TOKEN"
  }
  host "a.example" {}
  host "b.example" {
    addresses = ["10.1.2.3"]
  }
}
vendor "claude" {
  image = "claude:1"
  credential "ANTHROPIC_API_KEY" {
    source_env = "KEY"
  }
}
phase "narrow" {
  base  = "review"
  tools = ["read", "list"]
}
phase "tested" {
  base = "fix"
  runner "test" {
    argv    = ["make", "test"]
    image   = "ci:1"
    timeout = "1m"
  }
}
invocation "a" {
  vendor   = vendor.local
  phase    = phase.review
  worktree = "${path.root}/src"
  user     = "1000:1000"
  git      = "none"
  prompt   = "do it"
  timeout  = "10m"
  limits {
    memory = var.memory
    cpus   = 1
    pids   = 64
    output = "1MiB"
    upload = "1MiB"

    download           = "1GiB"
    tunnels            = 64
    tunnels_per_second = 16
  }
}
invocation "b" {
  vendor   = vendor.claude
  phase    = phase.narrow
  worktree = "${path.root}/src"
  user     = "1000:1000"
  prompt   = "do it"
}
invocation "c" {
  vendor   = vendor.local
  phase    = phase.tested
  worktree = "${path.root}/other"
  user     = "1000:1000"
  prompt   = "do it"
}
`

const baseLock = `dns = ["9.9.9.9"]
image "agent:1" {
  ids   = ["sha256:1111111111111111111111111111111111111111111111111111111111111111"]
  shell = false
}
image "agent:2" {
  ids   = ["sha256:2222222222222222222222222222222222222222222222222222222222222222"]
  shell = false
}
image "ci:1" {
  ids = ["sha256:3333333333333333333333333333333333333333333333333333333333333333"]
}
image "ci:2" {
  ids = ["sha256:4444444444444444444444444444444444444444444444444444444444444444"]
}
image "claude:1" {
  ids   = ["sha256:5555555555555555555555555555555555555555555555555555555555555555"]
  cli   = "PROVEN"
  shell = false
}
`

// side writes one checkout and returns its directory.
func side(t *testing.T, config, lock string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"sandplan.hcl": config, ".sandplan.lock.hcl": lock} {
		if text != "" {
			text = strings.Replace(text, "PROVEN", policy.Catalog().Vendors["claude"].Version, 1)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// against compares two configurations as a pull request would.
func against(t *testing.T, base, now, flags string) result {
	t.Helper()
	ta := newTestApp(t)
	ta.dir = side(t, now, baseLock)
	return ta.do("plan -base=" + side(t, base, baseLock) + " " + flags)
}

// TestDenyWidening has each thing that a declaration can let an agent do, in both directions: what is more is denied
// by its rule, and what is less is not, where there is such a thing.
func TestDenyWidening(t *testing.T) {
	for _, tt := range []struct {
		from, to string // in the base, and in the pull request
		rule     string
		back     string // the rule in the other direction; "" where that is less
		reason   string
	}{
		{"host \"a.example\" {}", "host \"a.example\" {}\n  host \"c.example\" {}", "reach", "", "a host"},
		{"host \"a.example\" {}", "host \"a.example\" {\n    port = 8443\n  }", "reach", "reach", "another port"},
		{"addresses = [\"10.1.2.3\"]", "addresses = [\"10.1.2.3\", \"10.1.2.4\"]", "reach", "", "one more fixed address"},
		{"addresses = [\"10.1.2.3\"]", "addresses = [\"10.1.2.4\"]", "reach", "reach", "another fixed address"},
		{"addresses = [\"10.1.2.3\"]", "addresses = []", "reach", "reach", "whatever the name stands for, in place of a fixed address"},
		{"host \"a.example\" {}", "host \"a.example\" {\n    tls = false\n  }", "reach", "", "the same host without TLS"},
		{"vendor \"claude\" {", "provider \"docker\" {\n  host = \"unix:///run/other.sock\"\n}\nvendor \"claude\" {", "engine", "engine", "another engine"},
		{"tools = [\"read\", \"list\"]", "tools = [\"read\", \"list\", \"search\"]", "tools", "", "a tool"},
		{"argv    = [\"make\", \"test\"]", "argv    = [\"make\", \"install\"]", "run", "run", "another argv of a runner"},
		{"image   = \"ci:1\"", "image   = \"ci:2\"", "run", "run", "another image of a runner"},
		{"timeout = \"1m\"", "timeout = \"2m\"", "run", "", "the time of a runner"},
		{"phase    = phase.review", "phase    = phase.fix", "write", "", "a writable worktree"},
		{"phase    = phase.review", "phase    = phase.fix", "phase", "", "a phase with a higher ceiling"},
		{"worktree = \"${path.root}/src\"\n  user     = \"1000:1000\"\n  git", "worktree = \"${path.root}\"\n  user     = \"1000:1000\"\n  git", "read", "read", "another worktree"},
		{"user     = \"1000:1000\"\n  git", "user     = \"1001:1000\"\n  git", "user", "user", "another user"},
		{"git      = \"none\"", "git      = \"read-only\"", "git", "", "the history"},
		{"env     = { LANG = \"C\" }", "env     = { LANG = \"C\", DEBUG = \"1\" }", "environment", "", "a variable"},
		{"env     = { LANG = \"C\" }", "env     = { LANG = \"de\" }", "environment", "environment", "another value of a variable"},
		{"source_env = \"TOKEN\"\n  }", "source_env = \"TOKEN\"\n  }\n  credential \"more\" {\n    source_env = \"X\"\n  }", "credentials", "", "a credential"},
		{"source_env = \"TOKEN\"", "source_env = \"AWS_SECRET_ACCESS_KEY\"", "credentials", "credentials", "the same credential from another variable"},
		{"source_env = \"TOKEN\"", "source_file = \"/root/.ssh/id_rsa\"", "credentials", "credentials", "the same credential from a file"},
		{"prompt   = \"do it\"\n  timeout", "timeout", "prompt", "", "whoever starts it chooses the prompt"},
		{"timeout  = \"10m\"", "timeout  = \"11m\"", "timeout", "", "the time"},
		{"default = \"1GiB\"", "default = \"2GiB\"", "limits.memory", "", "memory"},
		{"cpus   = 1", "cpus   = 2", "limits.cpus", "", "cpus"},
		{"pids   = 64", "pids   = 65", "limits.pids", "", "pids"},
		{"output = \"1MiB\"", "output = \"2MiB\"", "limits.output", "", "output"},
		{"upload = \"1MiB\"", "upload = \"2MiB\"", "limits.upload", "", "upload"},
		{"download           = \"1GiB\"", "download           = \"2GiB\"", "limits.download", "", "download"},
		{"download           = \"1GiB\"", "", "limits.download", "", "no bound on download"},
		{"tunnels            = 64", "tunnels            = 65", "limits.tunnels", "", "connections at once"},
		{"tunnels_per_second = 16", "tunnels_per_second = 17", "limits.tunnels_per_second", "", "connections per second"},
		{"image   = \"agent:1\"", "image   = \"agent:2\"", "image", "image", "another image"},
		{"command = [\"/agent\"]", "command = [\"/agent\", \"--all\"]", "command", "command", "another command"},
		{"vendor   = vendor.local\n  phase    = phase.review", "vendor   = vendor.claude\n  phase    = phase.review", "vendor", "vendor", "another vendor"},
		{"invocation \"a\"", "invocation \"z\"", "There is nothing to compare invocation.z with", "There is nothing to compare invocation.a with", "a renamed invocation"},
	} {
		changed := strings.Replace(baseConfig, tt.from, tt.to, 1)
		if changed == baseConfig {
			t.Fatalf("%s: the base has no %q", tt.reason, tt.from)
		}
		for _, d := range []struct{ base, now, rule, way string }{{baseConfig, changed, tt.rule, "more"}, {changed, baseConfig, tt.back, "less"}} {
			got := against(t, d.base, d.now, "-deny-widening -no-color")
			want := map[bool]int{true: exitOK, false: exitError}[d.rule == ""]
			named := d.rule == "" || strings.Contains(got.stderr, "- "+d.rule+": ") || strings.Contains(got.stderr, d.rule)
			if got.code != want || !named {
				t.Errorf("%s, %s: code %d, want %d and the rule %q\n%s", tt.reason, d.way, got.code, want, d.rule, got.stderr)
			}
			if d.way == "less" {
				continue
			}
			if open := against(t, d.base, d.now, "-detailed-exitcode"); open.code != exitChanges {
				t.Errorf("%s, %s, without -deny-widening: code %d, want %d\n%s%s", tt.reason, d.way, open.code, exitChanges, open.stdout, open.stderr)
			}
		}
	}
}

// TestSameDeclaration: two checkouts of one commit declare the same, wherever they lie.
func TestSameDeclaration(t *testing.T) {
	for _, flags := range []string{"-deny-widening -detailed-exitcode", "-format=markdown -deny-widening", "-format=json", "-json"} {
		got := against(t, baseConfig, baseConfig, flags)
		if got.code != exitOK || got.stderr != "" {
			t.Errorf("%s: code %d\n%s%s", flags, got.code, got.stdout, got.stderr)
		}
	}
	if got := against(t, baseConfig, baseConfig, ""); !strings.Contains(got.stdout, "No changes. Both declare the same.") {
		t.Errorf("%s", got.stdout)
	}
}

// TestBaseIsReproducible: the same two sides give the same bytes.
func TestBaseIsReproducible(t *testing.T) {
	base, now := side(t, baseConfig, baseLock), side(t, strings.Replace(baseConfig, "pids   = 64", "pids   = 99", 1), baseLock)
	for _, format := range []string{"text", "markdown", "json"} {
		var first string
		for range 3 {
			ta := newTestApp(t)
			ta.dir = now
			got := ta.do("plan -format=" + format + " -base=" + base).stdout
			if first == "" {
				first = got
			}
			if got != first || got == "" {
				t.Fatalf("%s: two plans differ:\n%s\n%s", format, first, got)
			}
		}
	}
}

// TestBasePaths are the things that -base can be.
func TestBasePaths(t *testing.T) {
	ta := newTestApp(t)
	ta.dir = side(t, baseConfig, baseLock)
	spec, diags := hclspec.Load(hclspec.Source{Path: ta.dir, Cwd: ta.dir, Version: "0.1.0-test"}, hclspec.Vars{}, policy.Catalog())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "plan")
	if err := planner.WritePlan(saved, &planner.SavedPlan{Version: "0.1.0-test", Spec: raw, Sources: spec.Sources}); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "old")
	if err := planner.WritePlan(other, &planner.SavedPlan{Version: "0.0.1", Spec: raw}); err != nil {
		t.Fatal(err)
	}
	broken := side(t, "sandplan {", "")
	for _, tt := range []struct {
		base, flags, says, reason string
		code                      int
	}{
		{ta.dir, "", "Both declare the same", "a directory", 0},
		{ta.dir + "/sandplan.hcl", "-deny-widening", "not pinned", "a file has a lock file of its own, and without one no image is known", 1},
		{saved, "-deny-widening", "Both declare the same", "a saved plan", 0},
		{other, "", "another version", "a saved plan of another version", 1},
		{t.TempDir(), "-deny-widening", "nothing to compare", "a directory before the first configuration", 1},
		{t.TempDir(), "", "holds no configuration", "the same without -deny-widening", 0},
		{"/nonexistent", "", "Look for -base=", "a mistake in the path is never an empty base", 1},
		{broken, "", "This is in -base=", "a base that does not evaluate", 1},
		{ta.dir, "-out=x", "cannot go with it", "nothing to apply", 1},
		{ta.dir, "-destroy", "cannot go with it", "nothing to destroy", 1},
		{ta.dir, "-target=invocation.a", "cannot go with it", "all of it is compared", 1},
		{ta.dir, "-engine=x", "exclude each other", "two engines", 1},
		{ta.dir, "-format=sarif", "none of", "a format of drift", 1},
		{ta.dir, "-format=markdown -json", "exclude each other", "two formats", 1},
	} {
		one := newTestApp(t)
		one.dir = ta.dir
		got := one.do("plan -base=" + tt.base + " " + tt.flags)
		if got.code != tt.code || !strings.Contains(strings.Join(strings.Fields(got.stdout+got.stderr), " "), tt.says) {
			t.Errorf("%s: code %d, want %d and %q\n%s%s", tt.reason, got.code, tt.code, tt.says, got.stdout, got.stderr)
		}
	}
}

// TestBaseVariables: values are for both sides, and one that only one of them declares is no mistake.
func TestBaseVariables(t *testing.T) {
	without := strings.Replace(baseConfig, "var.memory", `"1GiB"`, 1)
	without = without[:strings.Index(without, "variable")] + without[strings.Index(without, "vendor \"local\""):]
	for _, tt := range []struct {
		base, now, env string
		reason         string
	}{
		{without, baseConfig, "", "a variable that is new"},
		{strings.Replace(baseConfig, "  default = \"1GiB\"\n", "", 1), strings.Replace(baseConfig, "  default = \"1GiB\"\n", "", 1), "", "a variable that both need"},
	} {
		got := against(t, tt.base, tt.now, "-deny-widening -var memory=1GiB")
		if got.code != exitOK {
			t.Errorf("%s: code %d\n%s%s", tt.reason, got.code, got.stdout, got.stderr)
		}
	}
}

// TestRename says that invocations are compared by address.
func TestRename(t *testing.T) {
	got := against(t, baseConfig, strings.Replace(baseConfig, `invocation "a"`, `invocation "z"`, 1), "")
	if text := strings.Join(strings.Fields(got.stdout), " "); !strings.Contains(text, "compared by address only") || !strings.Contains(text, "invocation.a is gone and invocation.z is new") {
		t.Errorf("%s", got.stdout)
	}
}

// TestBaseRoot: the root of the base is found for each way in which people check one out.
func TestBaseRoot(t *testing.T) {
	tmp := t.TempDir()
	for _, dir := range []string{"now/.git", "now/ci", "now/.base/ci", "now/teams/a", "clone/.git", "clone/ci", "export/ci", "flat"} {
		if err := os.MkdirAll(filepath.Join(tmp, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	in := func(p string) string { return filepath.Join(tmp, p) }
	for _, tt := range []struct{ now, base, want, reason string }{
		{"now/ci", "clone/ci", "clone", "a second clone, or a git worktree"},
		{"now/ci", "export/ci", "export", "an export without .git"},
		{"now/ci", "now/.base/ci", "now/.base", "an export within the repository"},
		{"now/ci", "now/teams/a", "now", "another directory of the one checkout: its own is less than the whole repository"},
		{"now", "clone", "clone", "the configuration at the root"},
		{"now", "flat", "flat", "the same, exported"},
		{"now/ci", "flat", "flat", "a directory of another layout"},
	} {
		if got := baseRoot(in(tt.now), in("now"), in(tt.base)); got != in(tt.want) {
			t.Errorf("%s: %s, want %s", tt.reason, got, in(tt.want))
		}
	}
}
