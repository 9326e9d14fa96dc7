package docker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

// Every mistake that engine and host show is told of in one run, at the line that it is on. The lines
// carry the expected summary as a comment.
func TestCompileReportsEverything(t *testing.T) {
	w := newWorld(t)
	root := filepath.Dir(w.repo)
	plain := filepath.Join(root, "plain") // no repository
	mkdir(t, plain)
	rootOwned := filepath.Join(root, "root-owned")
	mkdir(t, rootOwned)
	git(t, rootOwned, "init", "-q")
	if err := os.Chown(plain, 1000, 1000); err != nil {
		t.Fatal(err)
	}
	symlink(t, w.repo, filepath.Join(root, "link"))
	nested := filepath.Join(w.repo, "third_party/lib")
	mkdir(t, nested)
	git(t, nested, "init", "-q")

	text := w.config("10.231.112.0/20", fmt.Sprintf(`
vendor "gone" {
  kind    = "custom"
  image   = "sandplan-test/gone:1" # Image not usable: not pinned
  command = ["/agent"]
  host "other.example" {}
}
vendor "locked" {
  kind    = "custom"
  image   = "sandplan-test/locked:1" # Image not usable: docker load -i FILE
  command = ["/agent"]
  host "other.example" {}
}
phase "review" {
  runner "test" {
    argv  = ["/agent"]
    image = "sha256:%064d" # Image not usable: names exactly one image
  }
}
invocation "missing" {
  vendor   = vendor.local
  phase    = phase.planning
  worktree = %q # Worktree not found: /nowhere/at/all
}
invocation "link" {
  vendor   = vendor.local
  phase    = phase.planning
  worktree = %q # Worktree refused: is a symlink
}
invocation "system" {
  vendor   = vendor.local
  phase    = phase.planning
  worktree = "/usr" # Worktree refused: a directory of the system
}
invocation "engine" {
  vendor   = vendor.local
  phase    = phase.planning
  worktree = %q # Worktree refused: the engine's
}
invocation "plain" {
  vendor   = vendor.local
  phase    = phase.fix
  worktree = %q # Repository refused: git init
}
invocation "root" {
  vendor   = vendor.local
  phase    = phase.fix
  worktree = %q # User refused: belongs to root
}
invocation "nested" {
  vendor   = vendor.local
  phase    = phase.fix
  worktree = %q # Repository inside a writable worktree: third_party/lib
}
invocation "gone" {
  vendor   = vendor.gone
  phase    = phase.planning
  worktree = %q
}
invocation "locked" {
  vendor   = vendor.locked
  phase    = phase.review
  worktree = %q
}
`, 7, "/nowhere/at/all", root+"/link", w.engine.Info().DataDir, plain, rootOwned, w.repo, w.repo, w.repo))
	s := w.load(text)
	s.Lock.Images = append(s.Lock.Images, hclspec.LockImage{Ref: "sandplan-test/locked:1", Inspected: true, IDs: []string{"sha256:" + strings.Repeat("7", 64)}})
	snap := w.observe(t.Context())
	c, diags := w.engine.Compile(t.Context(), s, snap)
	diags = append(diags, c.Obstacles(t.Context(), snap)...)

	var got []string
	for _, d := range diags {
		if d.Subject == nil {
			t.Errorf("no place for %q", d.Summary)
			continue
		}
		got = append(got, fmt.Sprintf("%d: %s: %s", d.Subject.Start.Line, d.Summary, d.Detail))
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		_, want, ok := strings.Cut(line, " # ")
		if !ok {
			continue
		}
		summary, part, _ := strings.Cut(want, ": ")
		at := slices.IndexFunc(got, func(g string) bool {
			return strings.HasPrefix(g, fmt.Sprintf("%d: %s: ", i+1, summary)) && strings.Contains(g, part)
		})
		if at < 0 {
			t.Errorf("line %d: nothing says %q", i+1, want)
			continue
		}
		got = slices.Delete(got, at, at+1)
	}
	for _, g := range got {
		t.Errorf("not expected: %s", g)
	}
	// What has no mistake is compiled all the same, for the message of a plan that fails half-way.
	if !slices.ContainsFunc(c.Resources(), func(r planner.Resource) bool { return r.Addr == "invocation.nested.agent" }) {
		t.Error("the invocation that has only a warning is not compiled")
	}
}

func TestCompileRefusesWritableConfiguration(t *testing.T) {
	w := newWorld(t)
	w.dir = w.repo
	block := w.one("fix")
	s := w.load(w.config("10.231.112.0/20", block))
	_, diags := w.engine.Compile(t.Context(), s, w.observe(t.Context()))
	if len(diags) != 1 || diags[0].Summary != summaryExposed || !strings.Contains(diags[0].Detail, "subdirectory") || !strings.Contains(diags[0].Detail, "git worktree add") {
		t.Errorf("a configuration at the root of a writable worktree: %v; both remedies must be named", diags)
	}

	// A variable file elsewhere in the worktree is a part of the declaration too.
	w.dir = filepath.Join(filepath.Dir(w.repo), "config")
	write(t, filepath.Join(w.repo, "my.spvars.hcl"), "tool = \"x\"\n")
	write(t, filepath.Join(w.dir, "sandplan.hcl"), w.config("10.231.112.0/20", block)+"\nvariable \"tool\" {}\n")
	s, more := hclspec.Load(hclspec.Source{Path: w.dir, Cwd: w.dir}, hclspec.Vars{Args: []hclspec.VarArg{{File: filepath.Join(w.repo, "my.spvars.hcl")}}}, policy.Catalog())
	if more.HasErrors() {
		t.Fatal(more)
	}
	pin, err := w.engine.Pin(t.Context(), w.agent, true)
	if err != nil {
		t.Fatal(err)
	}
	s.Lock.Images = []hclspec.LockImage{pin}
	_, diags = w.engine.Compile(t.Context(), s, w.observe(t.Context()))
	if len(diags) != 1 || diags[0].Summary != summaryExposed || !strings.Contains(diags[0].Detail, "my.spvars.hcl") {
		t.Errorf("a variable file in a writable worktree: %v", diags)
	}
}

func TestCompileNeedsAStaticBinary(t *testing.T) {
	w := newWorld(t)
	s := w.load(w.config("10.231.112.0/20", w.one("planning")))
	o := w.engine.options
	o.Self = "/bin/sh"
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	if _, diags := e.Compile(t.Context(), s, w.observe(t.Context())); !diags.HasErrors() || !strings.Contains(diags.Error(), "CGO_ENABLED=0") {
		t.Errorf("a dynamic binary: %v", diags)
	}
	// Looking and removing work without one.
	if _, err := e.Observe(t.Context(), w.scope()); err != nil {
		t.Errorf("observe with a dynamic binary: %v", err)
	}
}

func TestPinLooksInside(t *testing.T) {
	w := newWorld(t)
	pin, err := w.engine.Pin(t.Context(), w.agent, true)
	if err != nil {
		t.Fatal(err)
	}
	if !pin.Inspected || pin.Shell || pin.CLI != "" || len(pin.IDs) != 1 || pin.Digest != "" {
		t.Errorf("an image without shell and CLI: %+v", pin)
	}
	if pin.Config.Env["LD_PRELOAD"] != "/evil.so" || !slices.Equal(pin.Config.Volumes, []string{"/data", "/var/cache"}) || !slices.Equal(pin.Config.ExposedPorts, []string{"8080/tcp"}) {
		t.Errorf("what containers inherit: %+v", pin.Config)
	}

	img, err := scratch.Image(scratch.Spec{Arch: w.engine.Info().Arch, Config: v1.Config{}, Entries: []scratch.Entry{
		{Path: "/opt/tools/toybox.static", Mode: 0o755, Content: []byte("x")}, {Path: policy.CLIPath(policy.KindClaude), Mode: 0o755, Content: []byte("not the CLI")}}})
	if err != nil {
		t.Fatal(err)
	}
	ref := "sandplan-test/shell:" + fmt.Sprint(time.Now().UnixNano())
	if _, err := scratch.Load(t.Context(), w.engine.Info().Socket, ref, img); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = removeOwnImage(context.Background(), w.engine.cli, ref) })
	pin, err = w.engine.Pin(t.Context(), ref, true)
	if err != nil || !pin.Shell || pin.CLI != "" {
		t.Errorf("an image with a shell and a CLI that nobody knows: %+v, %v", pin, err)
	}
	// Several at once, and one that a dead process has left behind.
	self, err := thisProcess("/proc", w.engine.options)
	if err != nil {
		t.Fatal(err)
	}
	self.StartTime++
	dead, err := w.engine.cli.ContainerCreate(t.Context(), &container.Config{Image: ref, Cmd: []string{"x"}, Labels: lockLabels(planner.Scope{}, "", kindInspection, self)}, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	var g errgroup.Group
	for range 4 {
		g.Go(func() error { _, err := w.engine.Pin(t.Context(), ref, true); return err })
	}
	if err := g.Wait(); err != nil {
		t.Errorf("several at once: %v", err)
	}
	vanishes(t, "what a dead process left", func() bool {
		_, err := w.engine.cli.ContainerInspect(t.Context(), dead.ID)
		return !errdefs.IsNotFound(err)
	})
	if plain, err := w.engine.Pin(t.Context(), ref, false); err != nil || plain.Inspected || plain.Shell {
		t.Errorf("an image of a runner is not looked into: %+v, %v", plain, err)
	}
	if _, err := w.engine.Pin(t.Context(), "sandplan-test/nowhere:1", true); err == nil || !strings.Contains(err.Error(), "scripts/agent-image claude|codex VERSION sandplan-test/nowhere:1") {
		t.Errorf("an agent image that is not there: %v", err)
	}
	if _, err := w.engine.Pin(t.Context(), "sandplan-test/nowhere:1", false); err == nil || !strings.Contains(err.Error(), "docker build -t sandplan-test/nowhere:1") {
		t.Errorf("an image that is not there: %v", err)
	}
}
