package applier_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-multierror"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/planner"
)

const a, b = planner.Address("invocation.a"), planner.Address("invocation.b")

func TestApplyConverges(t *testing.T) {
	f := newFake()
	want := slices.Concat(shared(), invocation(a, "one", "n1", "test"))
	r, err := apply(t, f, want, planner.Options{}, applier.Options{})
	if err != nil || r.Added != 6 || r.Changed != 0 || r.Destroyed != 0 || len(r.Skipped) != 0 {
		t.Fatalf("first apply: %+v, %v", r, err)
	}
	if p := planner.Diff(want, f.snapshot(), planner.Options{}); !p.Empty() || len(p.Findings) != 0 {
		t.Fatalf("after apply there is more to do: %+v", p.Findings)
	}
	f.log = nil
	setRow(f.at(a.With("network")), "Text", "evil")
	r, err = apply(t, f, want, planner.Options{}, applier.Options{})
	if err != nil || r.Added != 3 || r.Destroyed != 3 {
		t.Fatalf("a replace counts as one add and one destroy: %+v, %v", r, err)
	}
	wantLog := []string{
		"delete invocation.a.agent", "delete invocation.a.proxy", "delete invocation.a.network",
		"create invocation.a.network", "create invocation.a.proxy", "create invocation.a.agent",
	}
	if d := cmp.Diff(wantLog, f.log); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
	if got := r.IDs[a.With("agent")]; got == "" || f.objects[got] == nil {
		t.Errorf("the result knows the ID of what was made: %q", got)
	}
	r, err = apply(t, f, nil, planner.Options{Destroy: true}, applier.Options{})
	if err != nil || r.Destroyed != 6 || len(f.objects) != 0 || len(r.IDs) != 0 {
		t.Errorf("destroy left %d objects: %+v, %v", len(f.objects), r, err)
	}
}

func TestApplyRestoresInPlace(t *testing.T) {
	f := newFake()
	want := slices.Concat(shared(), invocation(a, "one", "n1"))
	if _, err := apply(t, f, want, planner.Options{}, applier.Options{}); err != nil {
		t.Fatal(err)
	}
	network := f.at(a.With("network"))
	setRow(network, "Set", "off")
	f.log = nil
	r, err := apply(t, f, want, planner.Options{}, applier.Options{})
	if err != nil || r.Changed != 1 || !slices.Equal(f.log, []string{"restore invocation.a.network"}) {
		t.Errorf("a setting is put back and nothing else happens: %+v, %v, %v", r, err, f.log)
	}
	if f.at(a.With("network")) != network {
		t.Error("the network was made anew")
	}
}

// A subnet that one network gives up may go to another in the same plan, although neither depends on the other.
func TestApplyFreesBeforeItTakes(t *testing.T) {
	f := newFake()
	if _, err := apply(t, f, slices.Concat(shared(), invocation(a, "x", "n1"), invocation(b, "x", "n2")), planner.Options{}, applier.Options{}); err != nil {
		t.Fatal(err)
	}
	swapped := slices.Concat(shared(), invocation(a, "x", "n2"), invocation(b, "x", "n1"))
	if r, err := apply(t, f, swapped, planner.Options{}, applier.Options{Parallelism: 8}); err != nil || r.Added != 6 {
		t.Errorf("swapping two subnets: %+v, %v", r, err)
	}
}

func TestApplyStopsDependentsOnly(t *testing.T) {
	f := newFake()
	want := slices.Concat(shared(), invocation(a, "x", "n1"), invocation(b, "x", "n2"))
	for f.failAt = 1; ; f.failAt++ { // the creation of invocation.a.network, wherever it stands
		f.objects, f.calls, f.log = map[string]*planner.Object{}, 0, nil
		r, err := apply(t, f, want, planner.Options{}, applier.Options{})
		if f.log[f.failAt-1] != "create invocation.a.network" {
			continue
		}
		var object *planner.ObjectError
		if !errors.As(err, &object) || object.Addr != a.With("network") || object.Op != "create" || !errors.Is(err, errFake) {
			t.Fatalf("the failure names its object: %v", err)
		}
		if n := len(err.(*multierror.Error).Errors); n != 1 {
			t.Errorf("only the root cause is told, not %d errors: %v", n, err)
		}
		if d := cmp.Diff([]planner.Address{a.With("proxy"), a.With("agent")}, r.Skipped); d != "" {
			t.Errorf("skipped (-want +got):\n%s", d)
		}
		if f.at(b.With("agent")) == nil || f.at(a.With("proxy")) != nil {
			t.Error("independent work goes on, dependent work does not")
		}
		return
	}
}

func TestApplyRefuses(t *testing.T) {
	want := slices.Concat(shared(), invocation(a, "x", "n1"))
	network := a.With("network")
	for _, c := range []struct {
		name, reason string
		look         func(*planner.Snapshot)
		opts         planner.Options
		says         string // "" means that nothing is refused
	}{
		{name: "conflict", reason: "something foreign stands in the way, so nothing is begun", says: "invocation.a.network: is taken",
			look: func(s *planner.Snapshot) { s.Conflicts = []planner.Conflict{{Addr: network, Detail: "is taken"}} }},
		{name: "destroy beside a conflict", reason: "removing what is ours needs no room", opts: planner.Options{Destroy: true},
			look: func(s *planner.Snapshot) { s.Conflicts = []planner.Conflict{{Addr: network, Detail: "is taken"}} }},
		{name: "live lease", reason: "somebody runs it", says: "invocation.a is locked by me@here",
			look: func(s *planner.Snapshot) {
				s.Leases = []planner.Lease{{Invocation: a, Live: true, Info: planner.LockInfo{ID: "l1", Who: "me@here"}}}
			}},
		{name: "own lease", reason: "the caller runs it", opts: planner.Options{Lease: "l1"},
			look: func(s *planner.Snapshot) {
				s.Leases = []planner.Lease{{Invocation: a, Live: true, Info: planner.LockInfo{ID: "l1", Who: "me@here"}}}
			}},
		{name: "dead lease", reason: "nobody runs it any more",
			look: func(s *planner.Snapshot) {
				s.Leases = []planner.Lease{{Invocation: a, Info: planner.LockInfo{ID: "l1", Who: "me@here"}}}
			}},
		{name: "lease elsewhere", reason: "a running invocation that the plan does not change",
			look: func(s *planner.Snapshot) {
				s.Leases = []planner.Lease{{Invocation: b, Live: true, Info: planner.LockInfo{ID: "l1", Who: "me@here"}}}
			}},
	} {
		f := newFake()
		s := f.snapshot()
		c.look(&s)
		_, err := applier.Apply(t.Context(), planner.Diff(want, s, c.opts), f, &heldLock{}, applier.Options{Now: ticking()})
		if c.says == "" {
			if err != nil {
				t.Errorf("%s (%s): refused: %v", c.name, c.reason, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.says) || f.calls != 0 {
			t.Errorf("%s (%s): want %q before any call, got %v after %d calls", c.name, c.reason, c.says, err, f.calls)
		}
	}
}

func TestApplyChecksItsLockBeforeEachOperation(t *testing.T) {
	want := slices.Concat(shared(), invocation(a, "x", "n1"))
	for held := 1; held <= 4; held++ {
		f, lock := newFake(), &heldLock{lostAfter: held}
		r, err := applier.Apply(t.Context(), planner.Diff(want, f.snapshot(), planner.Options{}), f, lock, applier.Options{Now: ticking(), Parallelism: 1})
		if !errors.Is(err, applier.ErrLockLost) || !errors.Is(err, errLost) {
			t.Errorf("a lost lock is told, with its cause: %v", err)
		}
		if f.calls != held || r.Added != held || len(r.Skipped) != 5-held {
			t.Errorf("with the lock lost after %d checks: %d calls, %+v", held, f.calls, r)
		}
	}
}

func TestApplyStops(t *testing.T) {
	want := slices.Concat(shared(), invocation(a, "x", "n1"))
	f, stop := newFake(), make(chan struct{})
	f.before = func(call int) {
		if call == 2 {
			close(stop) // while the second is under way
		}
	}
	r, err := apply(t, f, want, planner.Options{}, applier.Options{Stop: stop})
	if !errors.Is(err, applier.ErrInterrupted) {
		t.Errorf("an interrupted apply is no success: %v", err)
	}
	if f.calls != 2 || r.Added != 2 {
		t.Errorf("what is under way finishes and nothing more starts: %d calls, %+v", f.calls, r)
	}
	closed := make(chan struct{})
	close(closed)
	f = newFake()
	if r, err := apply(t, f, want, planner.Options{}, applier.Options{Stop: closed}); f.calls != 0 || len(r.Skipped) != 5 || !errors.Is(err, applier.ErrInterrupted) {
		t.Errorf("stopped before it began: %d calls, %+v, %v", f.calls, r, err)
	}
}

func TestApplyBreaksOff(t *testing.T) {
	f := newFake()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("second interrupt")
	f.before = func(call int) {
		if call == 2 {
			cancel(why)
		}
	}
	want := slices.Concat(shared(), invocation(a, "x", "n1"))
	r, err := applier.Apply(ctx, planner.Diff(want, f.snapshot(), planner.Options{}), f, &heldLock{}, applier.Options{Now: ticking(), Parallelism: 1})
	if !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
		t.Errorf("the cause and the call that was broken off are told: %v", err)
	}
	if f.calls != 2 || r.Added != 1 {
		t.Errorf("nothing starts after the context is done: %d calls, %+v", f.calls, r)
	}
}

func TestApplyTellsEvents(t *testing.T) {
	f := newFake()
	f.failAt = 3
	var got []string
	want := slices.Concat(shared(), invocation(a, "x", "n1")[:1])
	_, err := apply(t, f, want, planner.Options{}, applier.Options{Events: func(e applier.Event) {
		got = append(got, fmt.Sprintf("%s %s %s id=%s %v err=%v", e.Type, e.Op, e.Addr, e.ID, e.Elapsed, e.Err))
	}})
	if err == nil {
		t.Fatal("the failure got lost")
	}
	wantEvents := []string{
		"start create sandplan.shim id= 0s err=<nil>",
		"complete create sandplan.shim id=0001 1s err=<nil>",
		"start create sandplan.uplink id= 0s err=<nil>",
		"complete create sandplan.uplink id=0002 1s err=<nil>",
		"start create invocation.a.network id= 0s err=<nil>",
		"errored create invocation.a.network id= 1s err=the engine said no",
	}
	if d := cmp.Diff(wantEvents, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestApplyBoundsItsHands(t *testing.T) {
	var want []planner.Resource
	want = append(want, shared()...)
	for i := range 20 {
		want = append(want, invocation(planner.InvocationAddress("many", i), "x", fmt.Sprint("n", i))...)
	}
	f := newFake()
	f.before = func(int) { time.Sleep(time.Millisecond) }
	if r, err := apply(t, f, want, planner.Options{}, applier.Options{Parallelism: 4}); err != nil || r.Added != 62 {
		t.Fatalf("%+v, %v", r, err)
	}
	if f.most > 4 || f.most < 2 {
		t.Errorf("4 operations at a time were allowed, %d were under way at once", f.most)
	}
}
