package applier_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/planner"
)

// fakeEngine is an engine in memory that is as strict as a real one: an object binds the IDs of others, which then
// cannot go; names and subnets are taken once.
type fakeEngine struct {
	mu      sync.Mutex
	objects map[string]*planner.Object // by ID; Observed holds IDs, not references
	next    int
	calls   int
	// failAt is the number of the call that fails; 0 means none. halfDone lets it do its work first, as when
	// the answer gets lost.
	failAt   int
	halfDone bool
	// before is called at the start of each call, without the lock.
	before       func(call int)
	active, most int
	log          []string
}

var errFake = errors.New("the engine said no")

func newFake() *fakeEngine { return &fakeEngine{objects: map[string]*planner.Object{}} }

// enter counts a call. fail is asked twice: before the work and after it.
func (f *fakeEngine) enter(what string, a planner.Address) (fail func(after bool) error, leave func()) {
	f.mu.Lock()
	f.calls++
	call := f.calls
	f.active++
	f.most = max(f.most, f.active)
	f.log = append(f.log, what+" "+string(a))
	f.mu.Unlock()
	if f.before != nil {
		f.before(call)
	}
	f.mu.Lock()
	return func(after bool) error {
			if call == f.failAt && after == f.halfDone {
				return errFake
			}
			return nil
		}, func() {
			f.active--
			f.mu.Unlock()
		}
}

func (f *fakeEngine) Create(ctx context.Context, r planner.Resource, ids planner.IDs) (planner.Object, error) {
	fail, leave := f.enter("create", r.Addr)
	defer leave()
	if err := errors.Join(ctx.Err(), fail(false)); err != nil {
		return planner.Object{}, err
	}
	for id, o := range f.objects {
		if o.Addr == r.Addr {
			return planner.Object{}, fmt.Errorf("the name is taken by %s", id)
		}
		if s := subnet(r.Fields); s != "" && s == subnet(o.Observed) {
			return planner.Object{}, fmt.Errorf("the subnet %s is taken by %s", s, o.Addr)
		}
	}
	f.next++
	o := planner.Object{Addr: r.Addr, Kind: r.Kind, ID: fmt.Sprintf("%04d", f.next), Schema: planner.Schema, Digest: r.Digest,
		Declared: r.Fields, DependsOn: r.DependsOn}
	for _, field := range r.Fields {
		if a, ok := field.Value.Ref(); ok {
			id := ids[a]
			if f.objects[id] == nil {
				return planner.Object{}, fmt.Errorf("%s: no object has the ID %q", a, id)
			}
			field.Value = planner.JSON(id)
		}
		o.Observed = append(o.Observed, field)
	}
	switch r.Kind {
	case planner.KindProxy, planner.KindAgent, planner.KindRunner:
		o.Status = planner.StatusCreated
	}
	f.objects[o.ID] = &o
	return o, fail(true)
}

func (f *fakeEngine) Restore(ctx context.Context, c planner.Change, _ planner.IDs) error {
	fail, leave := f.enter("restore", c.Addr)
	defer leave()
	if err := errors.Join(ctx.Err(), fail(false)); err != nil {
		return err
	}
	o := f.objects[c.Object.ID]
	for i := range o.Observed {
		if o.Observed[i].Class == planner.ClassSet {
			o.Observed[i].Value = c.After[i].Value
		}
	}
	return fail(true)
}

func (f *fakeEngine) Delete(ctx context.Context, o planner.Object) error {
	fail, leave := f.enter("delete", o.Addr)
	defer leave()
	if err := errors.Join(ctx.Err(), fail(false)); err != nil {
		return err
	}
	for _, other := range f.objects {
		for _, field := range other.Observed {
			if field.Value == planner.JSON(o.ID) {
				return fmt.Errorf("%s is in use by %s", o.Addr, other.Addr)
			}
		}
	}
	delete(f.objects, o.ID)
	return fail(true)
}

func subnet(fields []planner.Field) string {
	for _, f := range fields {
		if f.Path == "Subnet" {
			return f.Value.Text()
		}
	}
	return ""
}

// snapshot looks at the engine as a provider does: IDs of objects become references to their addresses.
func (f *fakeEngine) snapshot() planner.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := planner.Snapshot{EngineID: "FAKE"}
	refs := map[string]planner.Address{}
	taken := map[planner.Address]bool{}
	for _, id := range slices.Sorted(maps.Keys(f.objects)) {
		if a := f.objects[id].Addr; !taken[a] {
			taken[a], refs[id] = true, a
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.objects)) {
		o := *f.objects[id]
		o.Observed = slices.Clone(o.Observed)
		for i, field := range o.Observed {
			var text string
			if field.Value.Decode(&text) == nil && refs[text] != "" {
				o.Observed[i].Value = planner.Ref(refs[text])
			}
		}
		if refs[id] == "" {
			s.Duplicates = append(s.Duplicates, o)
		} else {
			s.Objects = append(s.Objects, o)
		}
	}
	return s
}

func (f *fakeEngine) at(a planner.Address) *planner.Object {
	for _, id := range slices.Sorted(maps.Keys(f.objects)) {
		if f.objects[id].Addr == a {
			return f.objects[id]
		}
	}
	return nil
}

func setRow(o *planner.Object, path, v string) {
	for i := range o.Observed {
		if o.Observed[i].Path == path {
			o.Observed[i].Value = planner.JSON(v)
			return
		}
	}
	panic("no row " + path)
}

// resource is a wanted object; what it depends on it binds by ID, images excepted.
func resource(a planner.Address, kind planner.Kind, text string, deps ...planner.Address) planner.Resource {
	r := planner.Resource{Addr: a, Kind: kind, DependsOn: deps, Fields: []planner.Field{{Path: "Text", Value: planner.JSON(text)}}}
	for _, d := range deps {
		r.Fields = append(r.Fields, planner.Field{Path: "Refs." + string(d), Value: planner.Ref(d)})
	}
	if kind == planner.KindNetwork {
		r.Fields = append(r.Fields, planner.Field{Path: "Set", Class: planner.ClassSet, Value: planner.JSON("on")})
	}
	slices.SortFunc(r.Fields, func(a, b planner.Field) int { return strings.Compare(a.Path, b.Path) })
	r.Digest = planner.Digest(r.Fields)
	return r
}

func shared() []planner.Resource {
	return []planner.Resource{
		resource(planner.AddrShim, planner.KindShim, "shim"),
		resource(planner.AddrUplink, planner.KindUplink, "uplink"),
	}
}

func invocation(a planner.Address, text, net string, runners ...string) []planner.Resource {
	network := resource(a.With("network"), planner.KindNetwork, text)
	network.Fields = slices.Insert(network.Fields, 1, planner.Field{Path: "Subnet", Value: planner.JSON(net)})
	network.Digest = planner.Digest(network.Fields)
	out := []planner.Resource{
		network,
		resource(a.With("proxy"), planner.KindProxy, text, planner.AddrUplink, a.With("network")),
		resource(a.With("agent"), planner.KindAgent, text, planner.AddrShim, a.With("network"), a.With("proxy")),
	}
	for _, r := range runners {
		out = append(out, resource(a.Runner(r), planner.KindRunner, text, planner.AddrShim))
	}
	return out
}

// heldLock is a lock that is held until lostAfter checks.
type heldLock struct {
	mu        sync.Mutex
	checks    int
	lostAfter int // 0: never
}

var errLost = errors.New("no such lock")

func (l *heldLock) Check(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.checks++; l.lostAfter > 0 && l.checks > l.lostAfter {
		return errLost
	}
	return nil
}

// ticking is a clock that a test can read: each look at it is one second later.
func ticking() func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time {
		now = now.Add(time.Second)
		return now
	}
}

// apply plans and applies, one operation at a time unless o says otherwise.
func apply(t *testing.T, f *fakeEngine, want []planner.Resource, po planner.Options, o applier.Options) (applier.Result, error) {
	t.Helper()
	if o.Now == nil {
		o.Now = ticking()
	}
	if o.Parallelism == 0 {
		o.Parallelism = 1
	}
	return applier.Apply(t.Context(), planner.Diff(want, f.snapshot(), po), f, &heldLock{}, o)
}
