package races

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// TestStalledCallEndsTheRunInTime: one call of the gate never comes back. All steps before the start share
// one deadline, so the run ends when that is over, however many steps were left, and says what it waited
// for. The clock of the deadline is real; the test ends it early by the caller's own deadline.
func TestStalledCallEndsTheRunInTime(t *testing.T) {
	for _, c := range []struct{ name, call, waiting string }{
		{"lists", "^GET /networks$", "looking at the engine"},
		{"events", "^GET /events$", "listening to the engine's events"},
		{"proxy", "^POST /containers/" + proxy + "/start$", "starting the proxy"},
		{"attach", "^POST /containers/" + agent + "/attach$", "attaching to the agent"},
		{"last look", "^GET /networks/" + net + "$", "comparing once more before the start"},
		{"start", "^POST /containers/" + agent + "/start$", "starting the agent's container"},
	} {
		many(t, c.name, func(t *testing.T) {
			w := armed(t, options{})
			w.fake.AddFault(dockertest.Fault{Call: c.call, Delay: time.Hour, Times: 1})
			began := time.Now()
			p := w.params()
			p.StartWithin = 6 * time.Second
			res := launch.Run(t.Context(), p)
			if time.Since(began) > tooLong {
				t.Errorf("it took %s", time.Since(began))
			}
			var late *launch.LateError
			reached := w.fake.Count(c.call) > 0 // on a machine that is too slow it is not, and another step is named
			if res.Code != int(launch.CodeRefused) || !errors.As(res.Decision, &late) || reached && late.Doing != c.waiting {
				t.Errorf("code %d (%v), unsettled %v; it should say that it was still %s", res.Code, res.Decision, res.Unsettled, c.waiting)
			}
			if w.fed.Load() {
				t.Error("the agent got its prompt")
			}
			w.mustBeSettled(t, res)
		})
	}
}

// TestSilentAgentEndsInTime: the first process starts and never reports.
func TestSilentAgentEndsInTime(t *testing.T) {
	t.Parallel()
	w := armed(t, options{})
	w.noReport = true
	p := w.params()
	p.StartWithin = 6 * time.Second
	res := launch.Run(t.Context(), p)
	var late *launch.LateError
	if w.started.Load() && res.Code != int(launch.CodeProof) || !errors.As(res.Decision, &late) || w.started.Load() && late.Doing != "waiting for the proof from the inside" {
		t.Errorf("code %d (%v)", res.Code, res.Decision)
	}
	w.mustBeSettled(t, res)
}

// TestWorktreeReplacedBeforeTheStart: another directory takes the worktree's path after the last time that
// the host looked at it. Only the inside can see that.
func TestWorktreeReplacedBeforeTheStart(t *testing.T) {
	t.Parallel()
	for attempt := 1; ; attempt++ {
		w := armed(t, options{})
		began := time.Now()
		res := w.run(t.Context(), func(call string, n int) {
			if call == "GET /networks/"+net && n == 1 { // in the last look
				if err := errors.Join(os.Rename(w.tree, w.tree+".away"), os.Mkdir(w.tree, 0o755)); err != nil {
					t.Error(err)
				}
			}
		})
		told := res.Decision != nil && len(res.Decision.Checks) > 0 && strings.Contains(res.Decision.Checks[0].Detail, w.tree)
		w.mustBeSettled(t, res)
		switch {
		case res.Code == int(launch.CodeProof) && told && !w.fed.Load():
			return
		case w.fed.Load() || !tooSlow(attempt, began):
			t.Fatalf("code %d (%v), fed %v", res.Code, res.Decision, w.fed.Load())
		}
	}
}

// TestScopeLockRemoved: the lock of the scope goes before the last look, as by docker container prune.
func TestScopeLockRemoved(t *testing.T) {
	t.Parallel()
	w := armed(t, options{})
	res := w.run(t.Context(), func(call string, n int) {
		if call == "GET /events" {
			w.fake.Do("DELETE", "/containers/"+w.fake.ID("lock"), nil)
		}
	})
	if res.Code != int(launch.CodeRefused) || !errors.Is(res.Decision, planner.ErrLockLost) || w.started.Load() {
		t.Errorf("code %d (%v), started %v", res.Code, res.Decision, w.started.Load())
	}
	w.mustBeSettled(t, res)
}

// TestEventTwice: an engine that says everything twice says of each thing that somebody else did it, too.
// That stops a run, rather than to let a second attach pass for an echo.
func TestEventTwice(t *testing.T) {
	t.Parallel()
	for attempt := 1; ; attempt++ {
		w := armed(t, options{faults: []dockertest.Fault{{Call: "^GET /events$", Twice: true}}})
		began := time.Now()
		res := w.run(t.Context(), nil)
		w.mustBeSettled(t, res)
		switch fed := w.fed.Load(); {
		case res.Code == int(launch.CodeRefused) && !fed, res.Code == int(launch.CodeDrift):
			return
		case res.Code == int(launch.CodeRefused) || res.Code == 0 || !tooSlow(attempt, began):
			t.Fatalf("code %d (%v), fed %v", res.Code, res.Decision, fed)
		}
	}
}

// TestTwoAppliesAtOnce: two processes make the same scope. One works, the other is told who does, and what
// is there then is one of each.
func TestTwoAppliesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	other := w.open()
	held := make(chan struct{})
	var once sync.Once
	release := make(chan struct{})
	w.fake.SetAfter(func(call string, _ int) {
		if strings.HasPrefix(call, "POST /networks/create ") || call == "POST /networks/create" {
			once.Do(func() { close(held); <-release })
		}
	})
	first := make(chan error, 1)
	go func() { first <- w.carryOut(context.Background(), w.engine, false) }()
	<-held
	second := w.carryOut(t.Context(), other, false)
	close(release)
	var locked *planner.LockedError
	if err := <-first; err != nil || !errors.As(second, &locked) {
		t.Errorf("the first one: %v; the second one, which came in between: %v", err, second)
	}
	if c := w.changes(); len(c) > 0 {
		t.Errorf("a plan afterwards is not empty: %q", c)
	}
	if n := len(slices.DeleteFunc(w.fake.Objects(), func(o string) bool { return !strings.HasPrefix(o, "network ") })); n != 2 {
		t.Errorf("there are %d networks: %q", n, w.fake.Objects())
	}
}

// TestForeignNetworkMeanwhile: somebody takes the addresses of a planned network, or its name, between the
// plan and the moment at which it is made. Neither is adopted; the next plan goes around the addresses.
func TestForeignNetworkMeanwhile(t *testing.T) {
	for name, body := range map[string]map[string]any{
		"addresses": {"Name": "foreign", "Driver": "bridge", "IPAM": map[string]any{"Config": []any{map[string]any{"Subnet": "10.77.4.0/29", "Gateway": "10.77.4.1"}}}},
		"name":      {"Name": "sandplan-races-default-job-network", "Driver": "bridge"},
	} {
		many(t, name, func(t *testing.T) {
			w := newWorld(t, options{})
			var done, listed atomic.Bool
			w.fake.SetAfter(func(call string, _ int) {
				if call == "GET /networks" {
					listed.Store(true)
				}
				if strings.HasPrefix(call, "GET /images/") && listed.Load() && !done.Swap(true) {
					if name == "name" {
						body["Name"] = w.networkName(t)
					}
					if status, answer := w.fake.Do("POST", "/networks/create", body); status != 201 {
						t.Errorf("%d %s", status, answer)
					}
				}
			})
			err := w.carryOut(t.Context(), w.engine, false)
			w.fake.SetAfter(nil)
			if !done.Load() || err == nil || w.fake.ID(agent) != "" {
				t.Errorf("apply: %v; the agent is there: %v", err, w.fake.ID(agent) != "")
			}
			if name == "addresses" {
				w.mustConverge(t)
			}
		})
	}
}

// networkName is the name that the invocation's network will have.
func (w *world) networkName(t *testing.T) string {
	plan, _, err := w.plan(t.Context(), w.open(), planner.Options{})
	if err != nil {
		t.Error(err)
		return ""
	}
	for _, c := range plan.Changes {
		if c.Addr != net {
			continue
		}
		for _, f := range c.Resource().Fields {
			if f.Path == "Name" {
				var name string
				_ = f.Value.Decode(&name)
				return name
			}
		}
	}
	t.Error("no network is planned")
	return ""
}

// TestNothingIsLeft: after_run and destroy leave no endpoint, no container, no network and no lock behind.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	var w *world
	network := ""
	for attempt := 1; ; attempt++ {
		w = armed(t, options{after: "dispose"})
		network = w.fake.ID(net)
		w.letEnd()
		began := time.Now()
		res := w.run(t.Context(), nil)
		if res.Code == 0 && res.Unsettled == nil {
			break
		}
		if !tooSlow(attempt, began) {
			t.Fatalf("code %d (%v), unsettled %v", res.Code, res.Decision, res.Unsettled)
		}
	}
	for _, name := range []string{agent, proxy, net, lease, "lock"} {
		if w.fake.ID(name) != "" {
			t.Errorf("%s is left", name)
		}
	}
	for _, id := range []string{network, w.fake.ID(uplink)} {
		if on := w.fake.Endpoints(id); len(on) > 0 {
			t.Errorf("endpoints are left: %q", on)
		}
	}
	if err := w.carryOut(t.Context(), w.engine, true); err != nil {
		t.Fatal(err)
	}
	w.mustBeGone(t, nil)
}
