package docker

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

// Tests with the real engine: a configuration is compiled, made, looked at, tampered with, removed.

// world is a configuration with all that it refers to, on the real engine.
type world struct {
	t      *testing.T
	engine *Engine
	dir    string // of the configuration
	repo   string // a repository that belongs to user 1000
	agent  string // the agent's image: its reference
}

// awkward is an image that sets everything that a container could inherit.
func awkward() v1.Config {
	return v1.Config{
		User:         "1234:1234",
		WorkingDir:   "/data",
		Env:          []string{"PATH=/opt/bin:/bin", "FOO=bar", "GODEBUG=http2debug=1", "LD_PRELOAD=/evil.so"},
		Volumes:      map[string]struct{}{"/data": {}, "/var/cache": {}},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Healthcheck:  &v1.HealthConfig{Test: []string{"CMD", "/check"}, Interval: time.Second, Timeout: time.Second, StartPeriod: time.Second, Retries: 3},
		Labels:       map[string]string{"maintainer": "somebody", "dev.sandplan.project": "somebody-else"},
		StopSignal:   "SIGINT",
		Entrypoint:   []string{"/entry"},
		Cmd:          []string{"argument"},
		OnBuild:      []string{"RUN something"},
		Shell:        []string{"/bin/zsh"},
		Tty:          true,
		OpenStdin:    true,
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	socket := dockertest.Socket(t)
	// Another program each time, and so another image: several of these tests may run at once.
	program := buildProgram(t, fmt.Sprintf("package main\n\nimport (\"os\"; \"time\")\n\nfunc main() { if len(os.Args) > 99 { println(%q) }; time.Sleep(time.Hour) }\n",
		fmt.Sprint(t.Name(), os.Getpid(), time.Now().UnixNano())))
	e, err := Open(t.Context(), Options{Host: "unix://" + socket, Getenv: noEnv, Home: "/nonexistent", Origin: "test:/here", Version: "0.0.0-test",
		Self: program, Who: "tester@test", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	w := &world{t: t, engine: e, agent: "sandplan-test/" + plainWords(t.Name()) + ":1"}
	w.repo = newRepository(t, "repo")
	w.dir = filepath.Join(filepath.Dir(w.repo), "config")
	mkdir(t, w.dir)
	for _, p := range []string{w.repo, filepath.Join(w.repo, ".git")} {
		if err := os.Chown(p, 1000, 1000); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	img, err := scratch.Image(scratch.Spec{Arch: e.Info().Arch, Config: awkward(), Entries: []scratch.Entry{
		{Path: "/agent", Mode: 0o755, Content: content}, {Path: "/data/file", Mode: 0o644, Content: []byte("x")}, {Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777}}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := scratch.Load(t.Context(), socket, w.agent, img)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, image := range []string{w.agent, id} {
			_ = removeOwnImage(context.Background(), e.cli, image)
		}
		if own, err := e.own(); err == nil {
			_ = removeOwnImage(context.Background(), e.cli, own.ID)
		}
	})
	return w
}

// config is a configuration of a project of this test's own. pool must be the test's own too: tests of
// other packages run beside it.
func (w *world) config(pool, blocks string) string {
	return fmt.Sprintf(`
sandplan {
  project = %q
}

provider "docker" {
  subnet_pool = %q
  dns         = ["192.0.2.53"]
}

vendor "local" {
  kind    = "custom"
  image   = %q
  command = ["/agent", "--json"]

  host "llm.example" {
    addresses = ["10.9.9.9"]
  }
  host "other.example" {
    port = 8443
  }
}
`, w.project(), pool, w.agent) + blocks
}

func (w *world) project() string {
	name := "do-" + plainWords(w.t.Name())
	return strings.TrimRight(name[:min(31, len(name))], "-")
}

func (w *world) scope() planner.Scope {
	return planner.Scope{Project: w.project(), Workspace: "default"}
}

// load reads a configuration, pins its image, and removes at the end whatever was made of it.
func (w *world) load(text string) *hclspec.Spec {
	w.t.Helper()
	write(w.t, filepath.Join(w.dir, "sandplan.hcl"), text)
	s, diags := hclspec.Load(hclspec.Source{Path: w.dir, Cwd: w.dir}, hclspec.Vars{}, policy.Catalog())
	if diags.HasErrors() {
		w.t.Fatal(diags)
	}
	pin, err := w.engine.Pin(w.t.Context(), w.agent, true)
	if err != nil {
		w.t.Fatal(err)
	}
	s.Lock.Images = []hclspec.LockImage{pin}
	w.t.Cleanup(func() { w.destroy(w.observe(context.Background())) })
	return s
}

func (w *world) observe(ctx context.Context) planner.Snapshot {
	w.t.Helper()
	s, err := w.engine.Observe(ctx, w.scope())
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) compile(s *hclspec.Spec) *Compiled {
	w.t.Helper()
	c, diags := w.engine.Compile(w.t.Context(), s, w.observe(w.t.Context()))
	if diags.HasErrors() {
		w.t.Fatal(diags)
	}
	return c
}

// apply makes everything, in the order of the resources: what others need comes first.
func (w *world) apply(c *Compiled) planner.IDs {
	w.t.Helper()
	ids := planner.IDs{}
	for _, r := range c.Resources() {
		needed := planner.IDs{}
		for _, a := range r.DependsOn {
			if needed[a] = ids[a]; ids[a] == "" {
				w.t.Fatalf("%s needs %s, which comes later", r.Addr, a)
			}
		}
		o, err := c.Create(w.t.Context(), r, needed)
		if err != nil {
			w.t.Fatalf("create %s: %v", r.Addr, err)
		}
		if o.Addr != r.Addr || o.ID == "" {
			w.t.Fatalf("create %s: got the object %s with ID %q", r.Addr, o.Addr, o.ID)
		}
		ids[r.Addr] = o.ID
	}
	return ids
}

// destroy removes what a look has found, in the opposite order.
func (w *world) destroy(s planner.Snapshot) {
	w.t.Helper()
	objects := append(slices.Clone(s.Objects), s.Duplicates...)
	slices.Reverse(objects)
	for _, o := range objects {
		if o.Kind == planner.KindPinned {
			continue
		}
		if err := w.engine.Delete(context.Background(), o); err != nil {
			w.t.Errorf("delete %s: %v", o.Addr, err)
		}
	}
}

// one is a block for an invocation of that name on the world's repository.
func (w *world) one(phase string) string {
	return fmt.Sprintf("\ninvocation \"one\" {\n  vendor   = vendor.local\n  phase    = phase.%s\n  worktree = %q\n}\n", phase, w.repo)
}

// makeOne compiles and makes a configuration of one invocation.
func (w *world) makeOne(pool string) (*Compiled, planner.IDs) {
	w.t.Helper()
	c := w.compile(w.load(w.config(pool, w.one("review"))))
	return c, w.apply(c)
}

// resource is the wanted object at an address.
func (c *Compiled) resource(a planner.Address) planner.Resource {
	for _, r := range c.resources {
		if r.Addr == a {
			return r
		}
	}
	panic("nothing is wanted at " + a)
}

// differences are all fields in which the engine differs from what is wanted, as "address path".
func differences(c *Compiled, s planner.Snapshot) []string {
	var out []string
	for _, r := range c.Resources() {
		o, ok := s.Object(r.Addr)
		if !ok {
			out = append(out, string(r.Addr)+" is missing")
			continue
		}
		for _, m := range planner.Compare(r.Fields, o.Observed) {
			out = append(out, fmt.Sprintf("%s %s: want %s, got %s", r.Addr, m.Field.Path, show(m.Want), show(m.Got)))
		}
		for _, m := range planner.Compare(r.Fields, o.Declared) {
			out = append(out, fmt.Sprintf("%s label: %s: want %s, got %s", r.Addr, m.Field.Path, show(m.Want), show(m.Got)))
		}
		for _, x := range o.Extra {
			out = append(out, fmt.Sprintf("%s extra %s: %s", r.Addr, x.Path, x.Detail))
		}
	}
	return out
}

func TestCompileAndMakeOne(t *testing.T) {
	w := newWorld(t)
	s := w.load(w.config("10.231.0.0/20", fmt.Sprintf(`
phase "review" {
  runner "test" {
    argv  = ["/agent", "test"]
    image = %q
  }
}

invocation "one" {
  vendor   = vendor.local
  phase    = phase.review
  worktree = %q
  prompt   = "Look around."
  env      = { FOO = "mine" }
}
`, w.agent, w.repo)))
	c := w.compile(s)
	ids := w.apply(c)
	snap := c.Complete(w.observe(t.Context()))
	for _, d := range differences(c, snap) {
		t.Error(d)
	}
	if n := len(snap.Objects); n != len(c.Resources()) || len(snap.Duplicates) != 0 || len(snap.Unchecked) != 0 {
		t.Errorf("%d objects of %d resources, duplicates %v, unchecked %q", n, len(c.Resources()), snap.Duplicates, snap.Unchecked)
	}

	// A second compilation keeps addresses and digests: a plan after an apply is empty.
	again := w.compile(s)
	for i, r := range again.Resources() {
		if was := c.Resources()[i]; was.Digest != r.Digest {
			t.Errorf("%s has another digest when it is compiled again: %v", r.Addr, planner.Compare(was.Fields, r.Fields))
		}
	}

	// The deepest look finds no difference either.
	deep, err := w.engine.Recheck(t.Context(), w.scope(), []planner.Address{"invocation.one", planner.AddrShim, planner.AddrUplink})
	if err != nil {
		t.Fatal(err)
	}
	deep = c.Complete(deep)
	for _, d := range differences(c, deep) {
		if !strings.HasPrefix(d, string(planner.AddrImage)) { // was not asked for
			t.Error(d)
		}
	}

	live := c.Live(ids)["invocation.one"]
	if live.AgentID != ids["invocation.one.agent"] || live.Subnet == "" || live.ProxyName != snapName(snap, "invocation.one.proxy") {
		t.Errorf("live attributes %+v", live)
	}

	sources, err := c.Sources("invocation.one.agent")
	if err != nil || len(sources) != 2 || sources[0].Path != "/work" || sources[0].Host != w.repo || sources[0].Inode == 0 {
		t.Errorf("sources %+v, %v", sources, err)
	}

	w.destroy(snap)
	if left := w.observe(t.Context()); len(left.Objects)+len(left.Duplicates) != 0 {
		t.Errorf("left after destroy: %+v", left.Objects)
	}
}

func snapName(s planner.Snapshot, a planner.Address) string {
	o, _ := s.Object(a)
	return o.Name
}
