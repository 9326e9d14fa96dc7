package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/inside"
)

// fakeEngine is a small world: objects with one field each, and containers whose programs are functions.
type fakeEngine struct {
	mu       sync.Mutex
	objects  []*planner.Object
	running  map[string]*fakeProcess
	programs map[planner.Address]program
	nextID   int
	calls    []string
	hook     chan struct{} // holds a value while after runs
	history  []planner.Signal
	signals  chan planner.Signal
	forged   map[planner.Address]bool // containers that execute something else than sandplan
	blind    bool                     // nobody can see what they execute
	late     time.Duration            // how long the next watch says nothing
	hushed   bool                     // while it does
	detaches map[planner.Address]int  // how many attachments it tells to be ended before it tells of a container's end
	// before may fail a call, or block it until its context ends. after may change the world.
	before func(ctx context.Context, call string, n int) error
	after  func(call string, n int)
}

func testResources() []planner.Resource {
	inv := planner.Address("invocation.login")
	var out []planner.Resource
	for _, r := range []struct {
		addr planner.Address
		kind planner.Kind
		deps []planner.Address
	}{
		{planner.AddrShim, planner.KindShim, nil},
		{planner.AddrUplink, planner.KindUplink, nil},
		{inv.With(planner.PartNetwork), planner.KindNetwork, nil},
		{inv.With(planner.PartProxy), planner.KindProxy, []planner.Address{planner.AddrUplink, inv.With(planner.PartNetwork)}},
		{inv.With(planner.PartAgent), planner.KindAgent, []planner.Address{inv.With(planner.PartNetwork), planner.AddrShim}},
		{inv.Runner("test"), planner.KindRunner, []planner.Address{planner.AddrShim}},
	} {
		fields := []planner.Field{{Path: "HostConfig.Memory", Attr: "limits.memory", Value: planner.JSON(1)}}
		out = append(out, planner.Resource{Addr: r.addr, Kind: r.kind, DependsOn: r.deps, Fields: fields, Digest: planner.Digest(fields)})
	}
	return out
}

func newFakeEngine() *fakeEngine {
	f := &fakeEngine{hook: make(chan struct{}, 1), running: map[string]*fakeProcess{}, programs: map[planner.Address]program{}}
	for _, r := range testResources() {
		f.objects = append(f.objects, f.make(r))
	}
	inv := planner.Address("invocation.login")
	f.programs[inv.With(planner.PartProxy)] = proxyProgram
	f.programs[inv.With(planner.PartAgent)] = shimProgram(goodReport, sayHello)
	f.programs[inv.Runner("test")] = shimProgram(goodReport, sayHello)
	return f
}

func (f *fakeEngine) make(r planner.Resource) *planner.Object {
	f.nextID++
	o := &planner.Object{Addr: r.Addr, Kind: r.Kind, ID: fmt.Sprintf("id%d", f.nextID), Schema: planner.Schema, Digest: r.Digest,
		Declared: slices.Clone(r.Fields), Observed: slices.Clone(r.Fields), DependsOn: r.DependsOn}
	if r.Kind == planner.KindProxy || r.Kind == planner.KindAgent || r.Kind == planner.KindRunner {
		o.Status = planner.StatusCreated
	}
	return o
}

func (f *fakeEngine) object(a planner.Address) *planner.Object {
	for _, o := range f.objects {
		if o.Addr == a {
			return o
		}
	}
	return nil
}

// tamper changes the one field of an object.
func (f *fakeEngine) tamper(a planner.Address) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.object(a); o != nil {
		o.Observed = []planner.Field{{Path: "HostConfig.Memory", Attr: "limits.memory", Value: planner.JSON(2)}}
	}
}

// call is the frame of every call: it may fail before and change the world after.
func (f *fakeEngine) call(ctx context.Context, name string, do func() error) error {
	f.mu.Lock()
	f.calls = append(f.calls, name)
	n := len(f.calls)
	before, after := f.before, f.after
	f.mu.Unlock()
	if before != nil {
		if err := before(ctx, name, n); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := do()
	if after != nil {
		f.hook <- struct{}{}
		after(name, n)
		<-f.hook
	}
	return err
}

func (f *fakeEngine) nameOf(id string) planner.Address {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.addr(id)
}

func (f *fakeEngine) addr(id string) planner.Address {
	for _, o := range f.objects {
		if o.ID == id {
			return o.Addr
		}
	}
	return "gone"
}

func (f *fakeEngine) snapshot(scope planner.Scope, keep func(planner.Address) bool) planner.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := planner.Snapshot{EngineID: "engine", Scope: scope}
	for _, o := range f.objects {
		if keep(o.Addr) {
			c := *o
			c.Observed = slices.Clone(o.Observed)
			s.Objects = append(s.Objects, c)
		}
	}
	return s
}

func (f *fakeEngine) Observe(ctx context.Context, scope planner.Scope) (s planner.Snapshot, err error) {
	err = f.call(ctx, "observe", func() error {
		s = f.snapshot(scope, func(planner.Address) bool { return true })
		return nil
	})
	return s, err
}

func (f *fakeEngine) Recheck(ctx context.Context, scope planner.Scope, as []planner.Address) (s planner.Snapshot, err error) {
	err = f.call(ctx, fmt.Sprintf("recheck %d", len(as)), func() error {
		s = f.snapshot(scope, func(a planner.Address) bool { return slices.Contains(as, a) })
		return nil
	})
	return s, err
}

func (f *fakeEngine) Attach(ctx context.Context, id string, stdout, stderr io.Writer) (stdin io.WriteCloser, done <-chan error, err error) {
	err = f.call(ctx, "attach "+string(f.nameOf(id)), func() error {
		p := &fakeProcess{out: make(chan error, 1), outEnds: make(chan error, 1), chunks: make(chan chunk, 64),
			mute: make(chan struct{}), killed: make(chan struct{}), over: make(chan struct{})}
		go p.pump()
		p.stdout, p.stderr = output{p, stdout}, output{p, stderr}
		p.stdin, p.clientEnd = io.Pipe()
		f.mu.Lock()
		f.running[id] = p
		f.signal("container", "attach", id, "")
		f.mu.Unlock()
		stdin, done = p.clientEnd, p.out
		return nil
	})
	return stdin, done, err
}

func (f *fakeEngine) Start(ctx context.Context, id string) error {
	addr := f.nameOf(id)
	return f.call(ctx, "start "+string(addr), func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		o, p := f.object(addr), f.running[id]
		if o == nil || o.ID != id || p == nil {
			return errors.New("no such container")
		}
		o.Status = planner.StatusRunning
		f.connect(o)
		f.signal("container", "start", id, "")
		p.process = planner.Process{Status: planner.StatusRunning, PID: 100 + len(f.calls), Started: time.Now()}
		go func() {
			ended := make(chan int, 1)
			go func() { ended <- f.programs[addr](p) }()
			code := 137
			select {
			case code = <-ended:
			case <-p.killed:
			}
			p.endOutput(nil)
			_ = p.stdin.CloseWithError(errors.New("broken pipe"))
			f.mu.Lock()
			o.Status = planner.StatusExited
			for range f.detaches[addr] {
				f.signal("container", "detach", id, "")
			}
			f.signal("container", "die", id, "")
			p.process.Status, p.process.ExitCode, p.process.PID = planner.StatusExited, code, 0
			f.mu.Unlock()
			close(p.over)
		}()
		return nil
	})
}

// connect tells that a container gets its networks as it starts.
func (f *fakeEngine) connect(o *planner.Object) {
	inv := planner.Address("invocation.login")
	switch o.Kind {
	case planner.KindProxy:
		f.signal("network", "connect", f.object(planner.AddrUplink).ID, o.ID)
		f.signal("network", "connect", f.object(inv.With(planner.PartNetwork)).ID, o.ID)
	case planner.KindAgent:
		f.signal("network", "connect", f.object(inv.With(planner.PartNetwork)).ID, o.ID)
	case planner.KindRunner:
		f.signal("network", "connect", "none", o.ID)
	}
}

// signal is called with mu held.
func (f *fakeEngine) signal(kind, action, id, container string) {
	s := planner.Signal{At: time.Now(), Type: kind, Action: action, ID: id, Container: container}
	f.history = append(f.history, s)
	if f.signals != nil && !f.hushed {
		f.signals <- s
	}
}

// Watch repeats what the engine remembers, as engines do, and goes on with what happens.
func (f *fakeEngine) Watch(ctx context.Context, since time.Time) (out <-chan planner.Signal, err error) {
	err = f.call(ctx, "watch", func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		signals := make(chan planner.Signal, 1000)
		late := f.late // an engine may listen, and not have come to what it remembers
		if f.late = 0; late == 0 {
			for _, s := range f.history {
				if !s.At.Before(since) {
					signals <- s
				}
			}
		}
		f.signals, f.hushed, out = signals, false, signals
		if late > 0 {
			f.repeatLate(signals, since, late)
		}
		context.AfterFunc(ctx, func() { f.silence(signals) })
		return nil
	})
	return out, err
}

// repeatLate repeats what the engine remembers after a while, and what happens meanwhile with it.
func (f *fakeEngine) repeatLate(signals chan planner.Signal, since time.Time, late time.Duration) {
	f.hushed = true
	time.AfterFunc(late, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.signals != signals {
			return // nobody listens any more
		}
		f.hushed = false
		for _, s := range f.history {
			if !s.At.Before(since) {
				signals <- s
			}
		}
	})
}

// Past is what the engine remembers.
func (f *fakeEngine) Past(ctx context.Context, since time.Time) (out []planner.Signal, err error) {
	err = f.call(ctx, "past", func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, s := range f.history {
			if !s.At.Before(since) {
				out = append(out, s)
			}
		}
		return nil
	})
	return out, err
}

// silence ends one stream of signals.
func (f *fakeEngine) silence(signals chan planner.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.signals == signals && signals != nil {
		close(f.signals)
		f.signals = nil
	}
}

// IsProxy knows one more proxy than the invocation's own, called neighbour, and nothing of one called passed.
func (f *fakeEngine) IsProxy(ctx context.Context, _ planner.Scope, id string) (ours bool, err error) {
	err = f.call(ctx, "guest "+id, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if id == "passed" {
			return planner.ErrGone
		}
		o := f.object(f.addr(id))
		ours = id == "neighbour" || o != nil && o.Kind == planner.KindProxy
		return nil
	})
	return ours, err
}

// deafen ends the stream of signals.
func (f *fakeEngine) deafen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.signals != nil {
		close(f.signals)
		f.signals = nil
	}
}

func (f *fakeEngine) process(id string) (*fakeProcess, planner.Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.running[id]
	if p == nil || p.process.Status == "" {
		return p, planner.Process{Status: planner.StatusCreated}
	}
	return p, p.process
}

func (f *fakeEngine) Wait(ctx context.Context, id string) (q planner.Process, err error) {
	err = f.call(ctx, "wait "+string(f.nameOf(id)), func() error {
		p, now := f.process(id)
		if now.Status == planner.StatusRunning {
			select {
			case <-p.over:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		_, q = f.process(id)
		return nil
	})
	return q, err
}

func (f *fakeEngine) Process(ctx context.Context, id string) (q planner.Process, err error) {
	err = f.call(ctx, "process "+string(f.nameOf(id)), func() error {
		_, q = f.process(id)
		return nil
	})
	return q, err
}

func (f *fakeEngine) Executes(ctx context.Context, id string, _ int) (same, known bool, err error) {
	err = f.call(ctx, "executes "+string(f.nameOf(id)), func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		same, known = !f.forged[f.addr(id)], !f.blind
		return nil
	})
	return same, known, err
}

func (f *fakeEngine) Kill(ctx context.Context, id string) error {
	return f.call(ctx, "kill "+string(f.nameOf(id)), func() error {
		if p, now := f.process(id); now.Status == planner.StatusRunning {
			p.killOnce.Do(func() { close(p.killed) })
		}
		return nil
	})
}

// fakeCompiled is the declaration of testResources.
type fakeCompiled struct{ resources []planner.Resource }

func (c fakeCompiled) Resources() []planner.Resource                { return c.resources }
func (c fakeCompiled) Complete(s planner.Snapshot) planner.Snapshot { return s }
func (c fakeCompiled) Sources(planner.Address) ([]planner.Source, error) {
	return []planner.Source{{Path: "/work", Host: "/home/dev/x", Dev: 1, Inode: 2}}, nil
}

func (c fakeCompiled) Inside(planner.Address) (inside.Proxy, error) { return proxyInside(), nil }

// apply carries a plan out.
func (f *fakeEngine) apply(_ context.Context, c Compiled, plan *planner.Plan, lock Lock) error {
	if err := lock.Check(context.Background()); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, ch := range plan.Changes {
		if ch.Action == planner.ActionNoOp {
			continue
		}
		f.calls = append(f.calls, "apply "+string(ch.Action)+" "+string(ch.Addr))
		f.objects = slices.DeleteFunc(f.objects, func(o *planner.Object) bool { return o.Addr == ch.Addr })
		if ch.Action == planner.ActionDelete {
			continue
		}
		for _, r := range c.Resources() {
			if r.Addr == ch.Addr {
				f.objects = append(f.objects, f.make(r))
			}
		}
	}
	return nil
}

type fakeLock struct {
	f    *fakeEngine
	name string
	lost atomic.Bool
}

func (l *fakeLock) Info() planner.LockInfo { return planner.LockInfo{ID: "lock-" + l.name} }

func (l *fakeLock) Check(context.Context) error {
	if l.lost.Load() {
		return fmt.Errorf("%w: the lock %s is gone", planner.ErrLockLost, l.name)
	}
	return nil
}

func (l *fakeLock) Release(context.Context) error {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	l.f.calls = append(l.f.calls, "release "+l.name)
	return nil
}
