package dockertest_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

// sample is a configuration with one of each object.
type sample struct {
	t         *testing.T
	engine    *docker.Engine
	compiled  *docker.Compiled
	dir, tree string
	ids       planner.IDs
	scope     planner.Scope
}

// newSample loads the agent's image past the recorder, and opens the engine through it.
func newSample(t *testing.T, socket, recorded string) *sample {
	t.Helper()
	w := &sample{t: t, ids: planner.IDs{}, dir: t.TempDir(), tree: t.TempDir(), scope: planner.Scope{Project: recordedProject, Workspace: "default"}}
	if err := os.Chmod(w.tree, 0o755); err != nil {
		t.Fatal(err)
	}
	program := dockertest.Program(t)
	var err error
	w.engine, err = docker.Open(t.Context(), docker.Options{Host: "unix://" + recorded, Getenv: func(string) string { return "" }, Home: "/nonexistent",
		Origin: "fidelity:/configuration", Version: "0.0.0-test", Self: program, Who: "tester@test", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.engine.Close)
	img, err := scratch.Image(scratch.Spec{Arch: w.engine.Info().Arch, Config: inheritable(), Entries: []scratch.Entry{
		{Path: "/agent", Mode: 0o755, Source: program}, {Path: "/data/file", Mode: 0o644, Content: []byte("x")}, {Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777}}})
	if err != nil {
		t.Fatal(err)
	}
	const ref = "sandplan-fidelity/agent:1"
	id, err := scratch.Load(t.Context(), socket, ref, img)
	if err != nil {
		t.Fatal(err)
	}
	w.compile(ref, id)
	return w
}

// inheritable is an image that sets all that a container can inherit.
func inheritable() v1.Config {
	return v1.Config{
		User: "1234:1234", WorkingDir: "/data", Env: []string{"PATH=/opt/bin:/bin", "FOO=bar"},
		Volumes: map[string]struct{}{"/data": {}, "/var/cache": {}}, ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/check"}, Interval: time.Second, Timeout: time.Second, StartPeriod: time.Second, Retries: 3},
		Labels:      map[string]string{"maintainer": "somebody"}, StopSignal: "SIGINT",
		Entrypoint: []string{"/entry"}, Cmd: []string{"argument"}, Shell: []string{"/bin/zsh"},
	}
}

func (w *sample) compile(ref, id string) {
	w.t.Helper()
	text := fmt.Sprintf(`
sandplan {
  project = %q
}
provider "docker" {
  subnet_pool = "10.229.0.0/20"
  dns         = ["192.0.2.53"]
}
vendor "local" {
  kind    = "custom"
  image   = %q
  command = ["/agent"]
  host "llm.example" {
    addresses = ["10.9.9.9"]
  }
}
phase "review" {
  runner "test" {
    image = %q
    argv  = ["/agent", "test"]
  }
}
invocation "one" {
  vendor   = vendor.local
  phase    = phase.review
  worktree = %q
}
`, recordedProject, ref, id, w.tree)
	if err := os.WriteFile(filepath.Join(w.dir, "sandplan.hcl"), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	spec, diags := hclspec.Load(hclspec.Source{Path: w.dir, Cwd: w.dir}, hclspec.Vars{}, policy.Catalog())
	if diags.HasErrors() {
		w.t.Fatal(diags)
	}
	spec.Lock.DNS = []netip.Addr{netip.MustParseAddr("192.0.2.53")}
	spec.Lock.Images = []hclspec.LockImage{{Ref: ref, IDs: []string{id}, Inspected: true}}
	snap, err := w.engine.Observe(w.t.Context(), w.scope)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.compiled, diags = w.engine.Compile(w.t.Context(), spec, snap); diags.HasErrors() {
		w.t.Fatal(diags)
	}
}

// provider carries plans out.
type provider struct {
	*docker.Compiled
	engine *docker.Engine
}

func (p provider) Delete(ctx context.Context, o planner.Object) error { return p.engine.Delete(ctx, o) }

func (w *sample) plan(o planner.Options) *planner.Plan {
	w.t.Helper()
	snap, err := w.engine.Observe(context.Background(), w.scope)
	if err != nil {
		w.t.Fatal(err)
	}
	return planner.Diff(w.compiled.Resources(), w.compiled.Complete(snap), o)
}

// apply makes everything, one after another.
func (w *sample) apply() {
	w.t.Helper()
	lock, err := w.engine.LockScope(w.t.Context(), w.scope, "apply")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.destroy)
	res, err := applier.Apply(w.t.Context(), w.plan(planner.Options{}), provider{w.compiled, w.engine}, lock, applier.Options{Parallelism: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	w.ids = res.IDs
	if err := lock.Release(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// lockAndUnlock takes and gives back a lease, which is a container that leaves nearly all to the engine.
func (w *sample) lockAndUnlock(look func(id string)) {
	w.t.Helper()
	lease, err := w.engine.LockInvocation(w.t.Context(), w.scope, "invocation.one", "run")
	if err == nil {
		look(lease.Info().ID)
		err = lease.Release(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// destroy removes everything that is there.
func (w *sample) destroy() {
	w.t.Helper()
	ctx := context.Background()
	lock, err := w.engine.LockScope(ctx, w.scope, "destroy")
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := applier.Apply(ctx, w.plan(planner.Options{Destroy: true}), provider{w.compiled, w.engine}, lock, applier.Options{Parallelism: 1}); err != nil {
		w.t.Error(err)
	}
	if err := lock.Release(ctx); err != nil {
		w.t.Error(err)
	}
}

func (w *sample) waitEnded(a planner.Address) {
	w.t.Helper()
	if _, err := w.engine.Wait(w.t.Context(), w.ids[a]); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // until the engine has written everything down
}

func (*sample) network() planner.Address { return "invocation.one.network" }
func (*sample) proxy() planner.Address   { return "invocation.one.proxy" }
func (*sample) agent() planner.Address   { return "invocation.one.agent" }
func (*sample) runner() planner.Address  { return planner.Address("invocation.one").Runner("test") }

func (w *sample) containers() []planner.Address {
	return []planner.Address{w.proxy(), w.agent(), w.runner()}
}
func (w *sample) networks() []planner.Address {
	return []planner.Address{planner.AddrUplink, w.network()}
}

// files are those of the agent's image.
func (w *sample) files(id string) []string {
	if id != w.ids[planner.VendorImage("local")] {
		return nil
	}
	return []string{"/agent", "/data", "/data/file", "/tmp"}
}

// images are those of the sample's containers.
func (w *sample) images() []string {
	seen, out := map[string]bool{}, []string{}
	for _, a := range slices.Sorted(maps.Keys(w.ids)) {
		id := w.ids[a]
		if strings.HasPrefix(id, "sha256:") && !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}
