package launch

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// TestMeddling tells a run about things that happen, most of which leave nothing to be seen by a later
// look.
func TestMeddling(t *testing.T) {
	agent, proxy, net := login.With(planner.PartAgent), login.With(planner.PartProxy), login.With(planner.PartNetwork)
	for name, c := range map[string]struct {
		kind, action  string
		of, container planner.Address // "" is somebody else's
		code          int
		reason        string
	}{
		"exec":               {"container", "exec_create: /bin/sh -c id", agent, "", 120, "a short exec leaves no trace in inspect"},
		"exec in proxy":      {"container", "exec_start: /x", proxy, "", 120, "the proxy has the way out"},
		"attach":             {"container", "attach", agent, "", 120, "a second attacher can write into the lease"},
		"pause":              {"container", "pause", agent, "", 120, "paused and unpaused between two looks"},
		"update":             {"container", "update", agent, "", 120, "updated, and back"},
		"rename":             {"container", "rename", agent, "", 120, "a name leads others astray"},
		"copy out":           {"container", "archive-path", agent, "", 120, "somebody reads files"},
		"copy in":            {"container", "extract-to-dir", agent, "", 120, "somebody writes files"},
		"commit":             {"container", "commit", agent, "", 120, "somebody takes an image of it"},
		"unheard of":         {"container", "transmogrify", agent, "", 120, "what newer engines can do is not known to be harmless"},
		"agent to bridge":    {"network", "connect", "bridge", agent, 120, "a second network, perhaps for a moment"},
		"proxy to bridge":    {"network", "connect", "bridge", proxy, 120, "a second network, perhaps for a moment"},
		"intruder":           {"network", "connect", net, "intruder", 120, "somebody else on the agent's network"},
		"network made":       {"network", "create", net, "", 0, "its ID was made before the run; a clock that was set back tells of it once more"},
		"agent made":         {"container", "create", agent, "", 0, "the same"},
		"network removed":    {"network", "destroy", net, "", 120, "its network goes"},
		"reconnected":        {"network", "connect", net, agent, 120, "disconnected and connected again, with another address perhaps"},
		"agent disconnected": {"network", "disconnect", net, agent, 0, "a look is taken; here nothing is missing"},
		"uplink used":        {"network", "connect", planner.AddrUplink, "neighbour", 0, "other proxies come and go; the look judges"},
		"uplink left":        {"network", "disconnect", planner.AddrUplink, "intruder", 0, "other proxies come and go; the look judges"},
		"uplink passed":      {"network", "connect", planner.AddrUplink, "passed", 0, "it is gone again; the look judges"},
		"uplink intruder":    {"network", "connect", planner.AddrUplink, "intruder", 120, "somebody else beside the proxies"},
		"agent on uplink":    {"network", "connect", planner.AddrUplink, agent, 120, "a way past the proxy"},
		"top":                {"container", "top", agent, "", 0, "only looks"},
		"kill":               {"container", "kill", agent, "", 0, "its effect shows at the process"},
		"somebody else":      {"container", "exec_create: sh", "other", "", 0, "not ours"},
		"other network":      {"network", "connect", "bridge", "other", 0, "not ours"},
		"volume":             {"volume", "mount", "other", agent, 0, "mounts are judged at creation"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newBench(t)
				b.agentProgram(shimProgram(goodReport, runFor(5500*time.Millisecond, 0)))
				id := func(a planner.Address) string {
					if o := b.object(a); o != nil {
						return o.ID
					}
					return string(a)
				}
				began := time.Now()
				time.AfterFunc(2500*time.Millisecond, func() {
					b.mu.Lock()
					defer b.mu.Unlock()
					b.signal(c.kind, c.action, id(c.of), id(c.container))
				})
				res := b.run(t.Context())
				if res.Code != c.code {
					t.Fatalf("code %d (%v), want %d (%s)", res.Code, res.Decision, c.code, c.reason)
				}
				if c.code != 0 && (time.Since(began) > 3*time.Second || !strings.Contains(res.Decision.Error(), "meddled")) {
					t.Errorf("ended after %s with %v (%s)", time.Since(began), res.Decision, c.reason)
				}
			})
		})
	}
}

// TestGuestIsMetAtOnce: where a look takes long, whoever comes to the uplink is not left alone until it is over.
func TestGuestIsMetAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		b.agentProgram(shimProgram(goodReport, runFor(time.Minute, 0)))
		var running atomic.Bool
		b.Events = func(e Event) {
			if e.Kind == EventRunning {
				running.Store(true)
			}
		}
		b.before = func(ctx context.Context, call string, _ int) error {
			if running.Load() && strings.HasPrefix(call, "recheck") {
				select {
				case <-ctx.Done():
				case <-time.After(10 * time.Second):
				}
			}
			return nil
		}
		began := time.Now()
		const after = 3 * time.Second
		time.AfterFunc(after, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.signal("network", "connect", b.object(planner.AddrUplink).ID, "intruder")
		})
		res := b.run(t.Context())
		if res.Code != int(CodeDrift) || time.Since(began) > after+time.Second || !strings.Contains(res.Decision.Error(), "is no proxy") {
			t.Errorf("code %d after %s (%v)", res.Code, time.Since(began), res.Decision)
		}
	})
}

// TestForeignStart: a container of somebody else may have mounted the agent's program.
func TestForeignStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		b.agentProgram(shimProgram(goodReport, runFor(6*time.Second, 0)))
		b.after = func(call string, _ int) {
			if call == "start "+string(login.With(planner.PartAgent)) {
				b.tamper(planner.AddrShim)
			}
		}
		time.AfterFunc(2500*time.Millisecond, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.signal("container", "start", "other", "")
		})
		began := time.Now()
		res := b.run(t.Context())
		if res.Code != int(CodeDrift) || time.Since(began) > 4*time.Second || len(res.Decision.Findings) == 0 || res.Decision.Findings[0].Addr != planner.AddrShim {
			t.Errorf("code %d after %s (%v): it was not looked at with the shim", res.Code, time.Since(began), res.Decision)
		}
	})
}

func TestMeddlingBeforeTheStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		b.after = func(call string, _ int) {
			if call == "attach "+string(login.With(planner.PartAgent)) {
				b.mu.Lock()
				b.signal("container", "attach", b.object(login.With(planner.PartAgent)).ID, "")
				b.mu.Unlock()
				time.Sleep(time.Millisecond)
			}
		}
		res := b.run(t.Context())
		if res.Code != int(CodeRefused) || slices.Contains(b.calls, "start "+string(login.With(planner.PartAgent))) {
			t.Errorf("code %d (%v): a second attacher to an armed agent shows nowhere else", res.Code, res.Decision)
		}
	})
}

// TestMeddlingAtTheEnd lets somebody meddle in the very last moment: what the engine tells about it
// comes after the end of the process.
func TestMeddlingAtTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		b.agentProgram(func(p *fakeProcess) int {
			code := shimProgram(goodReport, runFor(time.Second, 0))(p)
			b.mu.Lock()
			b.signal("container", "exec_create: /x", b.object(login.With(planner.PartAgent)).ID, "")
			b.mu.Unlock()
			return code
		})
		if res := b.run(t.Context()); res.Code != int(CodeDrift) {
			t.Errorf("code %d (%v)", res.Code, res.Decision)
		}
	})
}
