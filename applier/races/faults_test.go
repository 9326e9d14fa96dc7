package races

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// kindOfFault is one way in which a call fails.
type kindOfFault struct {
	name  string
	fault dockertest.Fault
	// harmless: the engine did what it was asked to, and the answer is right, if late.
	harmless bool
	// reason: what a user can read of it, one of these; "" for anything.
	reason []string
}

func kindsOfFault() []kindOfFault {
	return []kindOfFault{
		{name: "slow", fault: dockertest.Fault{Delay: 300 * time.Millisecond}, harmless: true},
		{name: "failing", fault: dockertest.Fault{Status: 500, Message: "the fake says no"}, reason: []string{"the fake says no"}},
		{name: "cut off before", fault: dockertest.Fault{Cut: true}, reason: []string{"EOF", "reset", "closed"}},
		{name: "cut off after", fault: dockertest.Fault{Cut: true, Obeyed: true}, reason: []string{"EOF", "reset", "closed"}},
		{name: "cut off within", fault: dockertest.Fault{Half: true}, reason: []string{"EOF", "reset", "closed", "JSON"}},
		{name: "twice", fault: dockertest.Fault{Twice: true}},
		{name: "stale", fault: dockertest.Fault{Stale: true}},
	}
}

// TestCallsFail lets each call of a run fail in each way: the run ends, it says why, nothing is taken for
// held, and what is left is told by the next plan.
func TestCallsFail(t *testing.T) {
	kinds, cases, all := kindsOfFault(), 0, moments(t)
	for _, m := range all {
		for _, i := range some("fault "+m.String(), 1, len(kinds)) {
			cases++
			many(t, kinds[i].name+": "+m.String(), func(t *testing.T) { callFails(t, m, kinds[i]) })
		}
	}
	t.Logf("%d calls, %d kinds of fault, %d cases; -full makes every kind at every call", len(all), len(kinds), cases)
}

func callFails(t *testing.T, m moment, k kindOfFault) {
	w := armed(t, options{})
	f := k.fault
	f.Call, f.After, f.Times = "^"+quoted(m.call)+"$", m.n-1, 1
	w.fake.AddFault(f)
	looks := 0
	began := time.Now()
	res := w.run(t.Context(), func(call string, _ int) {
		if w.fed.Load() && call == "GET /containers/"+agent+"/json" {
			if looks++; looks == 2 {
				w.letEnd()
			}
		}
	})
	took := time.Since(began)
	w.letEnd()
	t.Logf("%s: code %d by %s (%v), unsettled %v", took.Round(10*time.Millisecond), res.Code, res.By, res.Decision, res.Unsettled)
	if took > tooLong {
		t.Errorf("it took %s", took)
	}
	switch {
	case res.By == launch.ByAgent && res.Code == 0 && w.fed.Load():
	case res.Decision == nil || res.By != launch.BySandplan:
		t.Errorf("code %d by %s, without a reason", res.Code, res.By)
	case k.harmless && took < slow:
		t.Errorf("code %d (%v), only because a call took its time", res.Code, res.Decision)
	case res.Code == int(launch.CodeRefused) && (w.started.Load() || w.fed.Load()):
		t.Errorf("refused (%v), and yet the agent ran", res.Decision)
	case len(k.reason) > 0 && m.phase < armed1 && took < slow && !strings.HasSuffix(m.call, "/archive") && !saysOneOf(why(res.Decision), k.reason):
		t.Errorf("the reason is %q, which says none of %q", why(res.Decision), k.reason)
	}
	if locked := (*planner.LockedError)(nil); res.Decision != nil && errors.As(res.Decision, &locked) {
		// Asked twice for one lock, the engine refuses the second time: the first one is named, as it must be.
		w.mustConverge(t)
		return
	}
	w.mustBeSettled(t, res)
	if w.told(launch.EventArmed) && res.Unsettled == nil {
		if c := w.changes(); len(c) > 0 {
			t.Errorf("it was armed again, it said, and then: %q", c)
		}
	}
	w.mustConverge(t)
}

// why is all that a decision tells.
func why(d *launch.Decision) string {
	text := d.Error()
	for _, f := range d.Findings {
		text += "; " + string(f.Addr) + " " + f.Text
		if f.Extra != nil {
			text += " " + f.Extra.Detail
		}
	}
	return text
}

func saysOneOf(text string, words []string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// quoted is a regular expression for a plain name of a call, see plainName.
func quoted(call string) string {
	method, name, named := strings.Cut(call, "/create ")
	if !named {
		return regexp.QuoteMeta(call)
	}
	return regexp.QuoteMeta(method+"/create ") + fmt.Sprintf("sandplan-races-default-%s-[0-9a-f]{8}", regexp.QuoteMeta(name))
}

// mustConverge: whatever happened, an apply makes things right, and then a run goes well.
func (w *world) mustConverge(t *testing.T) {
	t.Helper()
	// A lock that could not be given back is this process's own, and this process lives.
	for _, name := range []string{"lock", lease} {
		if id := w.fake.ID(name); id != "" {
			w.fake.Do("DELETE", "/containers/"+id, nil)
		}
	}
	if err := w.carryOut(t.Context(), w.engine, false); err != nil {
		t.Errorf("apply afterwards: %v", err)
		return
	}
	if c := w.changes(); len(c) > 0 {
		t.Errorf("after an apply a plan is not empty: %q", c)
	}
}
