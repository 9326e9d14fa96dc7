package races

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

// The addresses of the one invocation, as calls of the fake name them too.
const (
	job    = planner.Address("invocation.job")
	agent  = "invocation.job.agent"
	proxy  = "invocation.job.proxy"
	net    = "invocation.job.network"
	uplink = "sandplan.uplink"
	lease  = "lease invocation.job"
)

// world is one configuration on an engine of its own.
type world struct {
	t      testing.TB
	fake   *dockertest.Fake
	engine *docker.Engine
	spec   *hclspec.Spec
	scope  planner.Scope
	dir    string
	tree   string // the worktree

	fed      atomic.Bool   // the agent got its prompt
	end      chan struct{} // closed, the agent ends by itself
	endOnce  sync.Once
	started  atomic.Bool // the agent's first process ran
	stopped  atomic.Bool // and was told to stop, or killed
	noReport bool        // the agent's first process says nothing

	mu     sync.Mutex
	counts map[string]int
	events []launch.Event
}

// projectName is that of every world: each has an engine and a machine of its own.
const projectName = "races"

type options struct {
	release string // of the engine, 20.10 unless it matters
	after   string // after_run
	faults  []dockertest.Fault
}

func newWorld(t testing.TB, o options) *world {
	t.Helper()
	if o.release == "" {
		o.release = "20.10"
	}
	w := &world{t: t, dir: t.TempDir(), tree: t.TempDir(), end: make(chan struct{}), counts: map[string]int{},
		scope: planner.Scope{Project: projectName, Workspace: "default"}}
	if err := os.Chmod(w.tree, 0o755); err != nil {
		t.Fatal(err)
	}
	w.fake = dockertest.NewFake(t, dockertest.FakeOptions{Release: o.release, Binds: true, Program: w.program})
	img, err := scratch.Image(scratch.Spec{Arch: runtime.GOARCH, Entries: []scratch.Entry{{Path: "/agent", Mode: 0o755, Content: []byte("never run")}}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := scratch.Load(t.Context(), w.fake.Socket, "races/agent:1", img)
	if err != nil {
		t.Fatal(err)
	}
	w.engine = w.open()
	w.spec = w.load(id, o.after)
	for _, f := range o.faults {
		w.fake.AddFault(f)
	}
	return w
}

var program struct {
	once sync.Once
	dir  string
	path string
}

// theProgram is one small binary for all worlds: it is hashed once for each engine that is opened.
func theProgram(t testing.TB) string {
	program.once.Do(func() {
		raw, err := os.ReadFile(dockertest.Program(t))
		if err == nil {
			program.path = filepath.Join(os.TempDir(), fmt.Sprintf("sandplan-races-%d", os.Getpid()))
			err = os.WriteFile(program.path, raw, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	return program.path
}

// open is a client of its own, as another process has.
func (w *world) open() *docker.Engine {
	w.t.Helper()
	e, err := docker.Open(w.t.Context(), docker.Options{Host: "unix://" + w.fake.Socket, Getenv: func(string) string { return "" }, Home: "/nonexistent",
		Origin: "races:/here", Version: "0.0.0-test", Self: theProgram(w.t), Who: "tester@test", Now: time.Now, Kernel: w.fake.Host})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(e.Close)
	return e
}

func (w *world) load(image, after string) *hclspec.Spec {
	w.t.Helper()
	if after != "" {
		after = fmt.Sprintf("after_run = %q", after)
	}
	text := fmt.Sprintf(`
sandplan {
  project = %[1]q
}
provider "docker" {
  subnet_pool = "10.77.0.0/20"
  dns         = ["192.0.2.53"]
}
vendor "local" {
  kind    = "custom"
  image   = "races/agent:1"
  command = ["/agent"]
  host "llm.test" {
    addresses = ["10.255.255.1"]
  }
}
invocation "job" {
  vendor   = vendor.local
  phase    = phase.review
  worktree = %[2]q
  prompt   = "do it"
  %[3]s
}
`, projectName, w.tree, after)
	if err := os.WriteFile(filepath.Join(w.dir, "sandplan.hcl"), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	spec, diags := hclspec.Load(hclspec.Source{Path: w.dir, Cwd: w.dir}, hclspec.Vars{}, policy.Catalog())
	if diags.HasErrors() {
		w.t.Fatal(diags)
	}
	spec.Lock.DNS = []netip.Addr{netip.MustParseAddr("192.0.2.53")}
	spec.Lock.Images = []hclspec.LockImage{{Ref: "races/agent:1", IDs: []string{image}, Inspected: true}}
	return spec
}

// provider carries plans out.
type provider struct {
	*docker.Compiled
	engine *docker.Engine
}

func (p provider) Delete(ctx context.Context, o planner.Object) error { return p.engine.Delete(ctx, o) }

// plan is what a command would show now: of this configuration, or of its end.
func (w *world) plan(ctx context.Context, e *docker.Engine, o planner.Options) (*planner.Plan, provider, error) {
	snap, err := e.Observe(ctx, w.scope)
	if err != nil {
		return nil, provider{}, err
	}
	compiled, diags := e.Compile(ctx, w.spec, snap)
	if diags.HasErrors() {
		return nil, provider{}, diags
	}
	o.Origin = "races:/here"
	return planner.Diff(compiled.Resources(), compiled.Complete(snap), o), provider{compiled, e}, nil
}

// carryOut is `apply -auto-approve`, or `destroy`.
func (w *world) carryOut(ctx context.Context, e *docker.Engine, destroy bool) error {
	op := "apply"
	if destroy {
		op = "destroy"
	}
	lock, err := e.LockScope(ctx, w.scope, op)
	if err != nil {
		return err
	}
	plan, p, err := w.plan(ctx, e, planner.Options{Destroy: destroy})
	if err == nil {
		_, err = applier.Apply(ctx, plan, p, lock, applier.Options{Now: time.Now})
	}
	return errors.Join(err, lock.Release(context.WithoutCancel(ctx)))
}

// armed is a world in which everything was applied.
func armed(t testing.TB, o options) *world {
	t.Helper()
	faults := o.faults
	o.faults = nil
	w := newWorld(t, o)
	if err := w.carryOut(t.Context(), w.engine, false); err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		w.fake.AddFault(f)
	}
	return w
}

// changes are what a plan would do, one a line. It is made by another client, which no fault reaches any
// more once they are all used up.
func (w *world) changes() []string {
	w.t.Helper()
	plan, _, err := w.plan(context.Background(), w.engine, planner.Options{})
	if err != nil {
		w.t.Fatalf("plan afterwards: %v", err)
	}
	var out []string
	for _, c := range plan.Changes {
		if c.Action != planner.ActionNoOp {
			out = append(out, fmt.Sprintf("%s %s", c.Action, c.Addr))
		}
	}
	for _, f := range plan.Findings {
		out = append(out, string(f.Addr)+" "+f.Text)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// params are those of `sandplan run invocation.job`.
func (w *world) params() launch.Params {
	w.t.Helper()
	inv := w.spec.Invocations[slices.IndexFunc(w.spec.Invocations, func(i hclspec.Invocation) bool { return i.Address == string(job) })]
	command, err := policy.Seal(w.spec, inv.Address)
	if err != nil {
		w.t.Fatal(err)
	}
	plain := func(l *docker.Lock, err error) (launch.Lock, error) {
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	return launch.Params{
		Scope: w.scope, Origin: "races:/here", Version: "0.0.0-test", Invocation: inv, Timeout: 10 * time.Minute, Output: 1 << 20, Command: command,
		Engine: w.engine, Now: time.Now, Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer), Prompt: []byte(inv.Prompt.V),
		Credentials: func() (map[string][]byte, error) { return nil, nil },
		Events: func(e launch.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		},
		Compile: func(ctx context.Context, s planner.Snapshot) (launch.Compiled, error) {
			c, diags := w.engine.Compile(ctx, w.spec, s)
			if diags.HasErrors() {
				return nil, diags
			}
			return c, nil
		},
		LockScope: func(ctx context.Context) (launch.Lock, error) { return plain(w.engine.LockScope(ctx, w.scope, "run")) },
		LockLease: func(ctx context.Context) (launch.Lock, error) {
			return plain(w.engine.LockInvocation(ctx, w.scope, job, "run"))
		},
		Apply: func(ctx context.Context, c launch.Compiled, p *planner.Plan, l launch.Lock) error {
			_, err := applier.Apply(ctx, p, provider{c.(*docker.Compiled), w.engine}, l, applier.Options{Now: time.Now})
			return err
		},
	}
}

// run runs the invocation, and calls after when a call was answered; n counts those of this run alone.
func (w *world) run(ctx context.Context, after func(call string, n int)) launch.Result {
	w.fake.SetAfter(func(call string, _ int) {
		w.mu.Lock()
		w.counts[call]++
		n := w.counts[call]
		w.mu.Unlock()
		if after != nil {
			after(call, n)
		}
	})
	defer w.fake.SetAfter(nil)
	return launch.Run(ctx, w.params())
}

// letEnd lets the agent end by itself.
func (w *world) letEnd() { w.endOnce.Do(func() { close(w.end) }) }

// told reports whether an event of a kind was told.
func (w *world) told(kind launch.EventKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.events, func(e launch.Event) bool { return e.Kind == kind })
}

// left are the objects of the engine that are no part of what was applied.
func (w *world) left() []string {
	var out []string
	for _, o := range w.fake.Objects() {
		if strings.Contains(o, "lock") || strings.Contains(o, "lease") {
			out = append(out, o)
		}
	}
	return out
}
