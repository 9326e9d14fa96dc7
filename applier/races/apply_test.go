package races

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// TestApplyFails lets each call of an apply fail in each way, and then looks: the next plan says what is
// missing, a second apply makes it, and a destroy leaves nothing.
func TestApplyFails(t *testing.T) { carryOutFails(t, false) }

// TestDestroyFails does the same with a destroy: what it could not remove the next one does.
func TestDestroyFails(t *testing.T) { carryOutFails(t, true) }

func carryOutFails(t *testing.T, destroy bool) {
	kinds, cases := kindsOfFault(), 0
	all := callsOf(t, destroy)
	for _, m := range all {
		for _, i := range some(fmt.Sprint("apply ", destroy, m), 1, len(kinds)) {
			cases++
			many(t, fmt.Sprintf("%s: %s #%d", kinds[i].name, m.call, m.n), func(t *testing.T) { oneOfThemFails(t, destroy, m, kinds[i]) })
		}
	}
	t.Logf("%d calls, %d kinds of fault, %d cases; -full makes every kind at every call", len(all), len(kinds), cases)
}

// callsOf are the calls of an undisturbed apply or destroy.
func callsOf(t *testing.T, destroy bool) []moment {
	t.Helper()
	w := newWorld(t, options{})
	if destroy {
		w = armed(t, options{})
	}
	var mu sync.Mutex
	var out []moment
	counts := map[string]int{}
	w.fake.SetAfter(func(call string, _ int) {
		mu.Lock()
		defer mu.Unlock()
		counts[call]++
		out = append(out, moment{call: plainName(call), n: counts[call]})
	})
	err := w.carryOut(t.Context(), w.engine, destroy)
	w.fake.SetAfter(nil)
	if err != nil || len(out) < 20 {
		t.Fatalf("undisturbed: %v, %d calls", err, len(out))
	}
	return out
}

func oneOfThemFails(t *testing.T, destroy bool, m moment, k kindOfFault) {
	w := newWorld(t, options{})
	if destroy {
		w = armed(t, options{})
	}
	f := k.fault
	f.Call, f.After, f.Times = "^"+quoted(m.call)+"$", m.n-1, 1
	w.fake.AddFault(f)
	began := time.Now()
	err := w.carryOut(t.Context(), w.engine, destroy)
	took := time.Since(began)
	t.Logf("%s: %v", took.Round(10*time.Millisecond), err)
	switch {
	case took > tooLong:
		t.Errorf("it took %s", took)
	case err != nil && k.harmless:
		t.Errorf("it failed, only because a call took its time: %v", err)
	case err != nil && strings.TrimSpace(err.Error()) == "":
		t.Error("it failed and does not say why")
	}
	// A lock that could not be given back is this process's own, and this process lives.
	if id := w.fake.ID("lock"); id != "" {
		if err == nil {
			t.Error("it went well, it says, and the lock is still there")
		}
		w.fake.Do("DELETE", "/containers/"+id, nil)
	}
	changes := w.changes()
	if destroy {
		w.mustBeGone(t, err)
		return
	}
	if err == nil && len(changes) > 0 {
		t.Errorf("it went well, it says, and a plan says %q", changes)
	}
	w.mustBeComplete(t, len(changes) == 0)
	w.mustConverge(t)
	if err := w.carryOut(t.Context(), w.engine, true); err != nil {
		t.Errorf("destroy afterwards: %v", err)
	}
	w.mustBeGone(t, nil)
}

// mustBeComplete holds what a plan says against what there is.
func (w *world) mustBeComplete(t *testing.T, complete bool) {
	t.Helper()
	for _, name := range []string{"sandplan.shim", "shim-seed sandplan.shim", uplink, net, proxy, agent} {
		if complete && w.fake.ID(name) == "" {
			t.Errorf("a plan says that nothing is to do, and %s is not there", name)
		}
	}
}

// mustBeGone: once more a destroy, if the first one failed, and nothing of ours is left.
func (w *world) mustBeGone(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		if err := w.carryOut(t.Context(), w.engine, true); err != nil {
			t.Errorf("destroy once more: %v", err)
		}
	}
	plan, _, planErr := w.plan(t.Context(), w.engine, planner.Options{Destroy: true})
	if planErr != nil {
		t.Fatal(planErr)
	}
	for _, c := range plan.Changes {
		if c.Action != planner.ActionNoOp && c.Kind != planner.KindPinned {
			t.Errorf("after a destroy there is still to do: %s %s", c.Action, c.Addr)
		}
	}
	for _, o := range w.fake.Objects() {
		if !strings.HasSuffix(o, "races/agent:1") {
			t.Errorf("after a destroy there is still %s", o)
		}
	}
}
