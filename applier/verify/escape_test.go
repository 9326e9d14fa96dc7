package verify_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/applier/verify"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
	"github.com/sandplan/sandplan/providers/docker/probe"
	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

const image = "sandplan-verify-test/agent:1"

const configuration = `
sandplan {
  project = "verify-escape"
}
provider "docker" {
  subnet_pool = "10.229.32.0/20"
}
vendor "local" {
  kind    = "custom"
  image   = "` + image + `"
  command = ["/agent"]
  host "vendor.test" {
    addresses = ["10.229.32.1"]
  }
}
phase "review" {
  runner "test" {
    argv  = ["/agent"]
    image = "` + image + `"
  }
}
phase "fix" {
  runner "test" {
    argv  = ["/agent"]
    image = "` + image + `"
  }
}
invocation "flawed" {
  vendor   = vendor.local
  phase    = phase.review
  worktree = %[1]q
  user     = "65532:65532"
  limits {
    memory = "64MiB"
  }
}
invocation "open" {
  vendor   = vendor.local
  phase    = phase.planning
  worktree = %[2]q
  limits {
    memory = "64MiB"
  }
}
`

// TestWhatEscapesIsSeen takes the boundary away and looks whether verify notices: a worktree that is declared
// read-only and mounted writable, for an agent and for a runner, and an agent that runs in a container without any boundary.
func TestWhatEscapesIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	report := verify.Run(t.Context(), w.params())
	if report.Decision != nil || report.Unsettled != nil || len(report.Subjects) != 3 {
		t.Fatalf("it did not come to its end: %v; left: %v", report.Decision, report.Unsettled)
	}
	if report.Code() != 121 {
		t.Errorf("the exit code is %d, and something escaped", report.Code())
	}
	for _, s := range report.Subjects {
		if s.Decision != nil {
			t.Errorf("the probe of %s did not come to its end: %v", s.Addr, s.Decision)
		}
		switch s.Addr {
		case "invocation.flawed", `invocation.flawed.runner["test"]`:
			w.onlyTheWorktree(s)
		default:
			w.everything(s)
		}
	}
}

type world struct {
	t      *testing.T
	engine *docker.Engine
	spec   *hclspec.Spec
	tree   string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	socket := dockertest.Socket(t)
	w := &world{t: t, tree: t.TempDir()}
	other := t.TempDir()
	for _, dir := range []string{w.tree, other} {
		if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
			t.Fatalf("git init: %v\n%s", err, out)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	bin := build(t)
	img, err := scratch.Image(scratch.Spec{Arch: runtime.GOARCH, Entries: []scratch.Entry{{Path: "/agent", Mode: 0o755, Source: bin + "/agent"}}})
	if err == nil {
		_, err = scratch.Load(t.Context(), socket, image, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("docker", "image", "rm", image).Run() })
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sandplan.hcl"), fmt.Appendf(nil, configuration, w.tree, other), 0o644); err != nil {
		t.Fatal(err)
	}
	w.engine, err = docker.Open(t.Context(), docker.Options{
		Host: "unix://" + socket, Getenv: os.Getenv, Origin: "test:" + dir, Version: "0.1.0-test", Self: bin + "/sandplan", Who: "test@host", Now: time.Now,
		DataDir: filepath.Join(dir, "data"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.engine.Close)
	pin, err := w.engine.Pin(t.Context(), image, true)
	if err != nil {
		t.Fatal(err)
	}
	spec, diags := hclspec.Load(hclspec.Source{Path: dir, Cwd: dir, Workspace: "default", Version: "0.1.0-test"}, hclspec.Vars{}, policy.Catalog())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	w.spec = spec
	w.spec.Lock = hclspec.Lock{Exists: true, Images: []hclspec.LockImage{pin}}
	return w
}

func build(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	cmd := exec.Command("go", "build", "-trimpath", "-o", bin+"/", "github.com/sandplan/sandplan/cmd/sandplan", "github.com/sandplan/sandplan/testfixtures/agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// mounted is the mistake of the first subject: whoever compiles its container takes a phase that may write.
func mounted(s *hclspec.Spec) *hclspec.Spec {
	out := *s
	out.Invocations = slices.Clone(s.Invocations)
	for i := range out.Invocations {
		if out.Invocations[i].Name == "flawed" {
			out.Invocations[i].Phase.V = "fix"
		}
	}
	return &out
}

func (w *world) params() verify.Params {
	var session [6]byte
	_, _ = rand.Read(session[:])
	return verify.Params{
		Spec: w.spec, Subjects: w.spec.Invocations, Session: hex.EncodeToString(session[:]), Origin: "test", Version: "0.1.0-test",
		EngineVersion: w.engine.Info().Version, EngineSocket: w.engine.Info().Socket, Engine: w.engine, Launch: w.launch,
		HostAddresses: hostAddresses, PID: os.Getpid(), TempDir: w.t.TempDir(), Now: time.Now, Tell: func(s string) { w.t.Log(s) },
		Compile: func(ctx context.Context, s *hclspec.Spec, snap planner.Snapshot, seal func(*hclspec.Spec, string, string) (policy.Command, error)) (verify.Compiled, error) {
			c, diags := w.engine.CompileSealed(ctx, mounted(s), snap, seal)
			if diags.HasErrors() {
				return nil, diags
			}
			return c, nil
		},
		Canary: func(ctx context.Context, scope planner.Scope, stdout, stderr io.Writer) (verify.Probe, error) {
			return w.engine.StartProbe(ctx, scope, docker.ProbePlace{Name: "canary", Canary: true}, stdout, stderr)
		},
		Control: func(ctx context.Context, scope planner.Scope, o verify.Open, stdout, stderr io.Writer) (verify.Probe, error) {
			return w.engine.StartProbe(ctx, scope, place("open", o), stdout, stderr)
		},
		LockScope: w.lock,
		LockLease: func(ctx context.Context, scope planner.Scope, inv planner.Address) (launch.Lock, error) {
			return w.engine.LockInvocation(context.WithoutCancel(ctx), scope, inv, "verify")
		},
		Apply: w.apply,
	}
}

// lock waits: who starts an agent holds the lock of the scope until it runs.
func (w *world) lock(ctx context.Context, scope planner.Scope, op string) (launch.Lock, error) {
	for {
		l, err := w.engine.LockScope(context.WithoutCancel(ctx), scope, op)
		var locked *planner.LockedError
		if err == nil || !errors.As(err, &locked) || ctx.Err() != nil {
			return l, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func place(name string, o verify.Open) docker.ProbePlace {
	return docker.ProbePlace{Name: name, Network: o.Network, DNS: o.DNS, Tree: o.Tree, ReadOnly: o.ReadOnly, Shown: o.Shown}
}

func (w *world) apply(ctx context.Context, c verify.Compiled, pl *planner.Plan, l launch.Lock) error {
	_, err := applier.Apply(ctx, pl, provider{c, w.engine}, l, applier.Options{Now: time.Now})
	return err
}

type provider struct {
	compiled verify.Compiled
	engine   *docker.Engine
}

func (p provider) Create(ctx context.Context, r planner.Resource, ids planner.IDs) (planner.Object, error) {
	return p.compiled.(*docker.Compiled).Create(ctx, r, ids)
}

func (p provider) Restore(ctx context.Context, c planner.Change, ids planner.IDs) error {
	return p.compiled.(*docker.Compiled).Restore(ctx, c, ids)
}

func (p provider) Delete(ctx context.Context, o planner.Object) error { return p.engine.Delete(ctx, o) }

func hostAddresses() ([]string, error) {
	addrs, err := net.InterfaceAddrs()
	var out []string
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() {
			out = append(out, n.IP.String())
		}
	}
	return out, err
}

// launch runs everything as it is, but for the second subject: its probe runs on the uplink, with every right.
func (w *world) launch(ctx context.Context, p launch.Params) launch.Result {
	if p.Invocation.Name != "open" {
		return launch.Run(ctx, p)
	}
	fail := func(err error) launch.Result {
		return launch.Result{Code: 125, By: launch.BySandplan, Decision: &launch.Decision{Code: launch.CodeRefused, Err: err}}
	}
	var job probe.Job
	if err := json.Unmarshal(p.Prompt, &job); err != nil {
		return fail(err)
	}
	// As the first process of its container it would attack itself.
	for _, a := range probe.Attempts() {
		if !slices.Contains(itself, a.ID) {
			job.Only = append(job.Only, a.ID)
		}
	}
	snap, err := w.engine.Observe(ctx, p.Scope)
	if err != nil {
		return fail(err)
	}
	uplink, _ := snap.Object(planner.AddrUplink)
	shown := filepath.Dir(job.HostFile)
	ended := &lines{to: p.Stdout, done: make(chan struct{})}
	scope := planner.Scope{Project: p.Scope.Project, Workspace: p.Scope.Workspace + "-canary"}
	dns := job.Token.For("dns-engine").Outside()
	open, err := w.engine.StartProbe(ctx, scope, place("subject", verify.Open{Network: uplink.ID, DNS: dns, Tree: p.Invocation.Worktree.V, ReadOnly: shown, Shown: shown}), ended, os.Stderr)
	if err != nil {
		return fail(err)
	}
	defer open.Remove(ctx)
	b, err := json.Marshal(job)
	if err == nil {
		err = open.Tell(append(b, '\n'))
	}
	if err != nil {
		return fail(err)
	}
	select {
	case <-ended.done:
	case <-open.Done():
	case <-time.After(2 * time.Minute):
	}
	return launch.Result{By: launch.ByAgent}
}

// lines passes what a probe says on, and tells when it has said everything.
type lines struct {
	to   io.Writer
	text strings.Builder
	done chan struct{}
	over bool
}

func (l *lines) Write(p []byte) (int, error) {
	n, err := l.to.Write(p)
	l.text.Write(p)
	if !l.over && strings.Contains(l.text.String(), `"done":true`) {
		l.over = true
		close(l.done)
	}
	return n, err
}

// itself are attempts on the process that guards a sandbox, on what only a sandbox has, and the one that
// takes the place of others away.
var itself = []string{"trace", "kill-guard", "memory", "tmpfs-size", "setns", "second-secret", "unmount"}

// onlyTheWorktree: a sandbox with one flaw has that one, seen on the host.
func (w *world) onlyTheWorktree(s verify.Subject) {
	for _, f := range s.Findings {
		switch {
		case f.ID == "worktree-write":
			if f.Status != verify.Escaped || !strings.Contains(f.Detail, w.tree) {
				w.t.Errorf("a worktree that is mounted writable: %s is %s (%s)", f.ID, f.Status, f.Detail)
			}
		case f.Status == verify.Escaped:
			w.t.Errorf("%s: only the worktree is writable, and %s is %s: %s", s.Addr, f.ID, f.Status, f.Detail)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(w.tree, "sandplan-verify-*")); len(left) > 0 {
		w.t.Errorf("what was left in the worktree is still there: %q", left)
	}
}

// everything: without the boundary each attempt that works in such a container escapes, and what goes over
// the network is seen by the canary, not told by the probe.
func (w *world) everything(s verify.Subject) {
	for _, f := range s.Findings {
		if f.Control != probe.ControlOpen || slices.Contains(itself, f.ID) || f.Status == verify.Moot {
			continue
		}
		if f.Status != verify.Escaped {
			w.t.Errorf("without the boundary %s is %s: %s", f.ID, f.Status, f.Detail)
		}
		if f.Where == probe.AtHost && f.Status == verify.Escaped && !strings.Contains(f.Detail, "packet") && !strings.Contains(f.Detail, "connection") && !strings.Contains(f.Detail, "datagram") {
			w.t.Errorf("%s was not seen by the canary: %s", f.ID, f.Detail)
		}
	}
}
