package races

import (
	"flag"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

var full = flag.Bool("full", false, "every mutation and every fault at every call, instead of some at each")

// moment is one call of a run, by its name and how often it was made.
type moment struct {
	call  string
	n     int
	phase phase
}

func (m moment) String() string { return fmt.Sprintf("%s #%d (%s)", m.call, m.n, m.phase) }

var ownName = regexp.MustCompile(`sandplan-races-default-(.*)-[0-9a-f]{8}`)

// plainName leaves away what differs from world to world.
func plainName(call string) string { return ownName.ReplaceAllString(call, "$1") }

// phases follows a run by its calls.
type phases struct {
	now   phase
	looks int
}

func (p *phases) see(w *world, call string) phase {
	switch {
	case call == "GET /events":
		p.now = armed1
	case call == "POST /containers/"+agent+"/start":
		p.now = proving
	case call == "GET /containers/"+lease+"/json" && p.now == proving:
		if p.looks++; p.looks == 2 {
			p.now = handing
		}
	}
	if w.fed.Load() && p.now < working {
		p.now = working
	}
	return p.now
}

// moments runs undisturbed, and says which calls that makes. On a machine that is so slow that leases run
// out it takes more than one attempt.
func moments(t *testing.T) []moment {
	t.Helper()
	for attempt := 1; ; attempt++ {
		began := time.Now()
		out, res := undisturbed(t)
		if res.Code == 0 && res.Unsettled == nil && len(out) >= 100 {
			return out
		}
		if !tooSlow(attempt, began) {
			t.Fatalf("undisturbed: code %d (%v), unsettled %v, %d calls", res.Code, res.Decision, res.Unsettled, len(out))
		}
	}
}

// tooSlow reports whether a run that ended otherwise than it should is worth another attempt: one that took so long
// that a lease may have run out shows nothing.
func tooSlow(attempt int, began time.Time) bool {
	const attempts = 5
	return attempt < attempts && time.Since(began) >= slow
}

func undisturbed(t *testing.T) ([]moment, launch.Result) {
	t.Helper()
	w := armed(t, options{})
	var out []moment
	var mu sync.Mutex
	p, looks := phases{}, 0
	res := w.run(t.Context(), func(call string, n int) {
		mu.Lock()
		defer mu.Unlock()
		at := p.see(w, call)
		out = append(out, moment{plainName(call), n, at})
		if at == working && call == "GET /containers/"+agent+"/json" {
			if looks++; looks == 2 { // the last call of a look
				p.now = settling
				w.letEnd()
			}
		}
	})
	return out, res
}

// some chooses n of count by a name, spread evenly; all of them with -full.
func some(name string, n, count int) []int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	if *full || n >= count {
		n = count
	}
	var out []int
	for i := range n {
		out = append(out, (int(h.Sum32()%uint32(count))+i*count/n)%count)
	}
	slices.Sort(out)
	return out
}

// TestWorldChanges changes the world right after each call that a run makes: the run is refused, or the
// agent is stopped, and what is left is told by the next plan. Never is a sandbox taken for held that is not.
func TestWorldChanges(t *testing.T) {
	cases, all := 0, moments(t)
	for _, m := range all {
		var fitting []mutation
		for _, x := range mutations() {
			if m.phase >= x.from && m.phase <= x.to {
				fitting = append(fitting, x)
			}
		}
		for _, i := range some(m.String(), 1, len(fitting)) {
			name := m.String() + ": " + fitting[i].name
			cases++
			many(t, name, func(t *testing.T) { worldChanges(t, m, fitting[i]) })
		}
	}
	t.Logf("%d calls, %d mutations, %d cases; -full makes every mutation after every call", len(all), len(mutations()), cases)
}

// TestEachMutation makes each mutation at one moment of each phase, so that none depends on the choice of
// the test above.
func TestEachMutation(t *testing.T) {
	first := map[phase]moment{}
	for _, m := range []moment{
		{"GET /containers/" + agent + "/json", 1, gate},
		{"POST /containers/" + agent + "/attach", 1, armed1},
		{"POST /containers/" + agent + "/start", 1, proving},
		{"DELETE /containers/lock", 1, working},
	} {
		first[m.phase] = m
	}
	for _, x := range mutations() {
		for _, at := range []phase{gate, armed1, proving, working} {
			if at >= x.from && at <= x.to && (*full || at == x.from || at == working) {
				many(t, x.name+" ("+at.String()+")", func(t *testing.T) { worldChanges(t, first[at], x) })
			}
		}
	}
}

// tooLong is when a run that should have ended hangs: no machine is that slow.
const tooLong = 3 * time.Minute

// slow is from when on a machine's slowness may show in a result: a container whose lease is not kept for
// so long ends by itself.
const slow = wire.Silence

func worldChanges(t *testing.T, m moment, x mutation) {
	w := armed(t, options{})
	var changed atomic.Bool
	id := ""
	began := time.Now()
	looks := 0
	res := w.run(t.Context(), func(call string, n int) {
		if plainName(call) == m.call && n == m.n && !changed.Swap(true) {
			id = x.do(w)
		}
		if m.phase == settling && w.fed.Load() && call == "GET /containers/"+agent+"/json" {
			if looks++; looks == 2 {
				w.letEnd()
			}
		}
	})
	t.Logf("%s: code %d (%v), unsettled %v", time.Since(began).Round(10*time.Millisecond), res.Code, res.Decision, res.Unsettled)
	switch {
	case time.Since(began) > tooLong:
		t.Errorf("it took %s", time.Since(began))
	case !changed.Load():
		if m.phase != settling || res.Code != 0 {
			t.Errorf("the call was not made; code %d (%v)", res.Code, res.Decision)
		}
		return
	}
	if m.phase < settling {
		w.mustHaveRefused(t, m, res, time.Since(began))
	}
	w.mustBeSettled(t, res)
	if id != "" && w.fake.Has(id) {
		if c := w.changes(); len(c) == 0 {
			t.Errorf("%s is still there, and a plan says nothing; the run ended with %d (%v), unsettled %v", id, res.Code, res.Decision, res.Unsettled)
		}
	}
}

// mustHaveRefused: a run in a world that was changed before its agent's end.
func (w *world) mustHaveRefused(t *testing.T, m moment, res launch.Result, took time.Duration) {
	t.Helper()
	if res.By != launch.BySandplan || res.Decision == nil {
		t.Errorf("code %d by %s (%v): nobody noticed", res.Code, res.By, res.Decision)
		return
	}
	why := why(res.Decision)
	switch launch.Code(res.Code) {
	case launch.CodeRefused:
		if w.started.Load() || w.fed.Load() {
			t.Errorf("refused, and yet the agent ran (started %v, fed %v): %s", w.started.Load(), w.fed.Load(), why)
		}
	case launch.CodeEngine:
		if took < slow {
			t.Errorf("code %d: %s", res.Code, why)
		}
	case launch.CodeDrift, launch.CodeProof, launch.CodeProxy, launch.CodeKilled:
		if !w.started.Load() {
			t.Errorf("code %d before anything was started: %s", res.Code, why)
		}
	default:
		t.Errorf("code %d: %s", res.Code, why)
	}
	if m.phase < handing && w.fed.Load() {
		t.Errorf("code %d, and the agent got its prompt all the same: %s", res.Code, why)
	}
	if strings.TrimSpace(why) == "" {
		t.Error("it does not say why")
	}
}

// mustBeSettled: nothing runs, and nothing is left that the run did not say.
func (w *world) mustBeSettled(t *testing.T, res launch.Result) {
	t.Helper()
	for _, name := range []string{agent, proxy} {
		if now, _ := w.fake.Runs(w.fake.ID(name)); now {
			t.Errorf("%s still runs (code %d, %v; unsettled %v)", name, res.Code, res.Decision, res.Unsettled)
		}
	}
	if left := w.left(); len(left) > 0 && res.Unsettled == nil {
		t.Errorf("left behind without a word: %q", left)
	}
}
