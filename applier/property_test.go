package applier_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/planner"
)

// randomWant is a random configuration of up to five invocations; subnets are dealt out anew each time.
func randomWant(r *rand.Rand) []planner.Resource {
	want := shared()
	nets := r.Perm(8)
	for i := range 5 {
		if r.IntN(3) == 0 {
			continue
		}
		var runners []string
		if r.IntN(2) == 0 {
			runners = []string{"test"}
		}
		want = append(want, invocation(planner.InvocationAddress("i", i), fmt.Sprint("text", r.IntN(2)), fmt.Sprint("n", nets[i]), runners...)...)
	}
	if r.IntN(4) == 0 {
		want[1] = resource(planner.AddrUplink, planner.KindUplink, fmt.Sprint("uplink", r.IntN(2)))
	}
	return want
}

// tamper does to the engine what people do by hand.
func tamper(r *rand.Rand, f *fakeEngine) {
	for _, id := range slices.Sorted(maps.Keys(f.objects)) {
		o := f.objects[id]
		switch r.IntN(12) {
		case 0:
			o.Observed = slices.Clone(o.Observed)
			o.Observed[r.IntN(len(o.Observed))].Value = planner.JSON("tampered")
		case 1:
			delete(f.objects, id)
		case 2:
			if o.Status != planner.StatusNone {
				o.Status = planner.StatusExited
			}
		case 3:
			o.Declared = nil
		case 4:
			f.next++
			twin := *o
			twin.ID = fmt.Sprintf("%04d", f.next)
			if subnet(twin.Observed) == "" {
				f.objects[twin.ID] = &twin
			}
		case 5:
			o.Schema = "0"
		}
	}
}

// Whatever was there, whatever was done to it, and wherever an apply broke off: the next one converges, and then
// nothing is left to do or to say.
func TestApplyAlwaysConverges(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := newFake()
		for round := range 3 {
			want := randomWant(r)
			if round > 0 {
				tamper(r, f)
			}
			f.calls, f.halfDone = 0, r.IntN(2) == 0
			f.failAt = 1 + r.IntN(20)
			plan := planner.Diff(want, f.snapshot(), planner.Options{})
			result, err := applier.Apply(t.Context(), plan, f, &heldLock{}, applier.Options{Now: ticking(), Parallelism: 1 + r.IntN(8)})
			if (f.calls >= f.failAt) != errors.Is(err, errFake) {
				t.Fatalf("seed %d: call %d of %d failed, and Apply said %v", seed, f.failAt, f.calls, err)
			}
			if add, change, destroy := plan.Counts(); err == nil && (result.Added != add || result.Changed != change || result.Destroyed != destroy) {
				t.Fatalf("seed %d: planned %d/%d/%d, done %+v", seed, add, change, destroy, result)
			}
			f.failAt = 0
			if _, err := apply(t, f, want, planner.Options{}, applier.Options{Parallelism: 4}); err != nil {
				t.Fatalf("seed %d, round %d: the apply after a failure: %v", seed, round, err)
			}
			if p := planner.Diff(want, f.snapshot(), planner.Options{}); !p.Empty() || len(p.Findings) != 0 {
				t.Fatalf("seed %d, round %d: something is left: %+v", seed, round, p.Findings)
			}
		}
		f.calls, f.failAt = 0, 1+r.IntN(10)
		_, _ = apply(t, f, nil, planner.Options{Destroy: true}, applier.Options{Parallelism: 4})
		f.failAt = 0
		if _, err := apply(t, f, nil, planner.Options{Destroy: true}, applier.Options{}); err != nil || len(f.objects) != 0 {
			t.Fatalf("seed %d: destroy left %d objects: %v", seed, len(f.objects), err)
		}
	}
}

// A failure at every single call of one large change, done half or not at all.
func TestApplyConvergesFromEveryFailure(t *testing.T) {
	before := slices.Concat(shared(), invocation("invocation.a", "x", "n1", "test"), invocation("invocation.b", "x", "n2"))
	after := slices.Concat(shared(), invocation("invocation.a", "y", "n2"), invocation("invocation.c", "x", "n1", "lint"))
	for _, halfDone := range []bool{false, true} {
		for n := 1; ; n++ {
			f := newFake()
			if _, err := apply(t, f, before, planner.Options{}, applier.Options{}); err != nil {
				t.Fatal(err)
			}
			f.calls, f.failAt, f.halfDone = 0, n, halfDone
			_, err := apply(t, f, after, planner.Options{}, applier.Options{})
			if err == nil {
				if n < 10 {
					t.Errorf("only %d calls were tried", n-1)
				}
				break
			}
			f.failAt = 0
			if _, err := apply(t, f, after, planner.Options{}, applier.Options{}); err != nil {
				t.Fatalf("after a failure of call %d: %v", n, err)
			}
			if p := planner.Diff(after, f.snapshot(), planner.Options{}); !p.Empty() || len(p.Findings) != 0 {
				t.Fatalf("after a failure of call %d something is left: %+v", n, p.Findings)
			}
		}
	}
}
