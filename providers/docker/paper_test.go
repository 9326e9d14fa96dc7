package docker

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
)

const paperConfig = `
sandplan {
  project = "paper"
}
vendor "local" {
  kind    = "custom"
  image   = "registry.example/agent:1"
  command = ["/agent"]
  host "llm.example" {}
}
phase "review" {
  runner "test" {
    argv  = ["make", "test"]
    image = "registry.example/ci:1"
  }
}
invocation "a" {
  vendor   = vendor.local
  phase    = phase.review
  worktree = "WORKTREE"
}
invocation "b" {
  vendor   = vendor.local
  phase    = phase.fix
  worktree = "WORKTREE"
  user     = "1000:1000"
  git      = "none"
}
`

const paperLock = `
image "registry.example/agent:1" {
  ids   = ["sha256:1111111111111111111111111111111111111111111111111111111111111111"]
  cli   = ""
  shell = false
}
image "registry.example/ci:1" {
  digest = "sha256:3333333333333333333333333333333333333333333333333333333333333333"
  ids    = ["sha256:2222222222222222222222222222222222222222222222222222222222222222", "sha256:4444444444444444444444444444444444444444444444444444444444444444"]
}
`

// onPaperIn compiles a configuration in a directory of its own, without an engine.
func onPaperIn(t *testing.T, dir, config, lock string) ([]planner.Resource, hcl.Diagnostics) {
	t.Helper()
	for name, text := range map[string]string{"sandplan.hcl": strings.ReplaceAll(config, "WORKTREE", filepath.Join(dir, "src")), ".sandplan.lock.hcl": lock} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec, diags := hclspec.Load(hclspec.Source{Path: dir, Cwd: dir, Version: "0.1.0"}, hclspec.Vars{}, policy.Catalog())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	c, diags := NoEngine(dir).Compile(context.Background(), spec, planner.Snapshot{})
	return c.Resources(), diags
}

func valueAt(t *testing.T, rs []planner.Resource, a planner.Address, path string) planner.Value {
	t.Helper()
	for _, r := range rs {
		for _, f := range r.Fields {
			if r.Addr == a && f.Path == path {
				return f.Value
			}
		}
	}
	t.Fatalf("%s has no %s", a, path)
	return planner.Value{}
}

// TestPaper: what only an engine or the host decides is unknown, everything else is what it is, and nothing of
// the stand-ins is left.
func TestPaper(t *testing.T) {
	rs, diags := onPaperIn(t, t.TempDir(), paperConfig, paperLock)
	if len(diags) != 0 {
		t.Fatal(diags)
	}
	for _, tt := range []struct {
		addr   planner.Address
		path   string
		want   planner.Value
		reason string
	}{
		{"sandplan.image", "Id", planner.Unknown(unknownTool), "the binary that applies it is another one, perhaps of another architecture"},
		{"sandplan.uplink", "IPAM.Config[0].Subnet", planner.Unknown("subnet_pool 10.213.0.0/16"), "which subnets are free only the engine knows"},
		{"invocation.a.network", "IPAM.Config[0].Subnet", planner.Unknown("subnet_pool 10.213.0.0/16"), "the same"},
		{"invocation.a.agent", "Config.Cmd[1].network.proxy", planner.Unknown("subnet_pool 10.213.0.0/16"), "an address with a port"},
		{"invocation.a.agent", "Config.User", planner.Unknown(unknownOwner), "who owns the worktree only the host knows"},
		{"invocation.b.agent", "Config.User", planner.JSON("1000:1000"), "declared"},
		{"invocation.a.agent", "Image", planner.JSON("sha256:" + strings.Repeat("1", 64)), "the lock file says it"},
		{"invocation.a.agent", `HostConfig.Mounts["/work"].Source`, planner.JSON("./src"), "relative to the repository"},
		{"invocation.a.agent", `HostConfig.Mounts["/work/.git"].Source`, planner.JSON("./src/.git"), "the same"},
		{"invocation.a.agent", "HostConfig.NetworkMode", planner.Ref("invocation.a.network"), "references stay"},
		{"invocation.a.agent", "HostConfig.Memory", planner.JSON(2 << 30), "a limit"},
	} {
		if got := valueAt(t, rs, tt.addr, tt.path); got != tt.want {
			t.Errorf("%s %s (%s): %+v, want %+v", tt.addr, tt.path, tt.reason, got, tt.want)
		}
	}
	if _, unknown := valueAt(t, rs, `invocation.a.runner["test"]`, "Image").Unknown(); !unknown {
		t.Error("an image with two IDs, one for each platform, is known")
	}
	for _, r := range rs {
		if r.Digest != planner.Digest(r.Fields) {
			t.Errorf("%s has the digest of other rows", r.Addr)
		}
		for _, f := range r.Fields {
			for _, left := range []string{standInMark, rootMark, "240.0.", "4294900000", r.Addr.Part() + "\x00"} {
				if strings.Contains(f.Value.Text(), left) {
					t.Errorf("%s %s still holds a stand-in: %s", r.Addr, f.Path, f.Value.Text())
				}
			}
		}
	}
}

// TestLockedImageOnPaper: whatever an entry of the lock file lets an engine take is a part of which image it is.
func TestLockedImageOnPaper(t *testing.T) {
	image := func(lock string) planner.Value {
		rs, _ := onPaperIn(t, t.TempDir(), paperConfig, lock)
		return valueAt(t, rs, "invocation.a.agent", "Image")
	}
	id, other, digest := strings.Repeat("1", 64), strings.Repeat("5", 64), strings.Repeat("6", 64)
	entry := func(more string) string {
		return strings.Replace(paperLock, "  cli   = \"\"\n", "  cli   = \"\"\n"+more, 1)
	}
	two := strings.Replace(paperLock, id+`"`, id+`", "sha256:`+other+`"`, 1)
	seen := map[planner.Value]string{}
	for _, tt := range []struct{ lock, says, reason string }{
		{paperLock, id, "one ID"},
		{strings.ReplaceAll(paperLock, id, other), other, "another one"},
		{two, other, "one ID more: the engine has whichever it has"},
		{entry("  digest = \"sha256:" + digest + "\"\n"), digest, "an engine without the ID takes what the digest names"},
		{entry("  digest = \"sha256:" + other + "\"\n"), other, "another digest"},
	} {
		got := image(tt.lock)
		text, unknown := got.Unknown()
		if !unknown {
			text = got.Text()
		}
		if before, twice := seen[got]; twice || !strings.Contains(text, tt.says) {
			t.Errorf("%s: %q has to name %s, and be another one than that of: %s", tt.reason, text, tt.says, before)
		}
		seen[got] = tt.reason
	}
}

// TestPaperOfTwoCheckouts: the same declaration in two directories is the same, row by row.
func TestPaperOfTwoCheckouts(t *testing.T) {
	a, _ := onPaperIn(t, t.TempDir(), paperConfig, paperLock)
	b, _ := onPaperIn(t, t.TempDir(), paperConfig, paperLock)
	for i := range a {
		if d := planner.Compare(a[i].Fields, b[i].Fields); len(d) > 0 {
			t.Errorf("%s: %+v", a[i].Addr, d)
		}
	}
	// Without a lock file nobody can say that it is the same image.
	c, diags := onPaperIn(t, t.TempDir(), paperConfig, "")
	d, _ := onPaperIn(t, t.TempDir(), paperConfig, "")
	if len(diags) != 2 || diags.HasErrors() {
		t.Errorf("two images are not pinned, and that is a warning each: %v", diags)
	}
	if valueAt(t, c, "invocation.a.agent", "Image") == valueAt(t, d, "invocation.a.agent", "Image") {
		t.Error("two images that nobody pinned count as one")
	}
	other, _ := onPaperIn(t, t.TempDir(), strings.Replace(paperConfig, "vendor \"local\"", "provider \"docker\" {\n  subnet_pool = \"10.9.0.0/16\"\n}\nvendor \"local\"", 1), paperLock)
	if valueAt(t, a, "invocation.a.network", "IPAM.Config[0].Subnet") == valueAt(t, other, "invocation.a.network", "IPAM.Config[0].Subnet") {
		t.Error("another pool gives the same subnets")
	}
}

// TestNoEngineAsksNobody: on paper there is nothing to write to, and nothing to read from.
func TestNoEngineAsksNobody(t *testing.T) {
	e := NoEngine("")
	if _, err := e.get(context.Background(), "/info", nil); err == nil || !strings.Contains(err.Error(), "there is no engine") {
		t.Errorf("a call was answered: %v", err)
	}
	if s, err := e.Observe(context.Background(), planner.Scope{Project: "p", Workspace: "w"}); err != nil || len(s.Objects) != 0 {
		t.Errorf("it has %v (%v)", s, err)
	}
	e.Close()
}
