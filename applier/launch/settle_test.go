package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

func (b *bench) applied() []string {
	var out []string
	for _, c := range b.calls {
		if s, ok := strings.CutPrefix(c, "apply "); ok {
			out = append(out, s)
		}
	}
	return out
}

var rearmed = []string{"replace invocation.login.proxy", "replace invocation.login.agent"}

func TestRefusals(t *testing.T) {
	proxy, agent := login.With(planner.PartProxy), login.With(planner.PartAgent)
	for name, c := range map[string]struct {
		change func(b *bench)
		want   string // in the decision
		finds  planner.Address
		reason string
	}{
		"agent drifted":   {func(b *bench) { b.tamper(agent) }, "differs", agent, "docker update"},
		"network drifted": {func(b *bench) { b.tamper(login.With(planner.PartNetwork)) }, "differs", login.With(planner.PartNetwork), "network connect"},
		"shim drifted":    {func(b *bench) { b.tamper(planner.AddrShim) }, "differs", planner.AddrShim, "the volume was written"},
		"agent missing": {func(b *bench) {
			b.objects = slices.DeleteFunc(b.objects, func(o *planner.Object) bool { return o.Addr == agent })
		}, "differs", agent, "not applied"},
		"agent running": {func(b *bench) { b.object(agent).Status = planner.StatusRunning }, "differs", agent, "docker start by hand"},
		"spent and drifted": {func(b *bench) { b.object(agent).Status = planner.StatusExited; b.tamper(proxy) }, "differs", proxy,
			"arming again would destroy the evidence"},
		"scope locked": {func(b *bench) {
			b.LockScope = func(context.Context) (Lock, error) {
				return nil, &planner.LockedError{What: "the scope p/default", Info: planner.LockInfo{Who: "joe@host"}}
			}
		}, "joe@host", "", "an apply is at work"},
		"lease taken": {func(b *bench) {
			b.LockLease = func(context.Context) (Lock, error) {
				b.calls = append(b.calls, "release lease") // there is none to release
				return nil, &planner.LockedError{What: string(login), Info: planner.LockInfo{Who: "ann@host"}}
			}
		}, "ann@host", "", "another run is at work"},
		"lock lost":     {func(b *bench) { b.lease.lost.Store(true) }, "is gone", "", "docker container prune took it"},
		"no credential": {func(b *bench) { b.Credentials = func() (map[string][]byte, error) { return nil, nil } }, "token is empty", "", "nothing may start in vain"},
		"bad credential": {func(b *bench) {
			b.Credentials = func() (map[string][]byte, error) { return nil, errors.New("T is not set") }
		}, "T is not set", "", "nothing may start in vain"},
		"other command": {func(b *bench) { b.Command = policy.Command{} }, "nothing has sealed", "", "only policy makes commands"},
		"proxy garbage": {func(b *bench) {
			b.programs[proxy] = func(p *fakeProcess) int { fmt.Fprintln(p.stdout, "{}"); <-p.killed; return 1 }
		}, "ready line", "", "something else than our proxy"},
		"proxy ends": {func(b *bench) {
			b.programs[proxy] = func(p *fakeProcess) int { fmt.Fprintln(p.stderr, "bind: address in use"); return 1 }
		}, "address in use", "", "the proxy cannot listen"},
		"proxy unfit": {func(b *bench) {
			b.programs[proxy] = func(p *fakeProcess) int {
				l := wire.Hold(p.stdin, wire.Silence)
				ch, _ := l.Challenge(context.Background())
				_ = wire.WriteReady(p.stdout, wire.Ready{Nonce: ch.Nonce, Checks: []wire.Check{{Name: "resolv_conf"}}})
				<-l.Done()
				return 0
			}
		}, "the proxy is not as declared", "", "its resolver is not the declared one"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newBench(t)
				c.change(b)
				res := b.run(t.Context())
				if res.Code != int(CodeRefused) || !strings.Contains(res.Decision.Error(), c.want) {
					t.Fatalf("code %d, %v; want 125 with %q (%s)", res.Code, res.Decision, c.want, c.reason)
				}
				if c.finds != "" && (len(res.Decision.Findings) == 0 || res.Decision.Findings[0].Addr != c.finds) {
					t.Errorf("findings = %+v, want one about %s (%s)", res.Decision.Findings, c.finds, c.reason)
				}
				if slices.Contains(b.calls, "start "+string(agent)) {
					t.Errorf("the agent was started (%s)", c.reason)
				}
				if strings.Contains(name, "drifted") && len(b.applied()) > 0 {
					t.Errorf("refused, and yet changed: %v (%s)", b.applied(), c.reason)
				}
			})
		})
	}
}

func TestSpentIsArmedFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		b.object(login.With(planner.PartAgent)).Status = planner.StatusExited
		b.object(login.With(planner.PartProxy)).Status = planner.StatusExited
		res := b.run(t.Context())
		if res.Code != 0 || res.By != ByAgent {
			t.Fatalf("code %d, %v", res.Code, res.Decision)
		}
		if want := append(slices.Clone(rearmed), rearmed...); !slices.Equal(b.applied(), want) {
			t.Errorf("applied %v, want %v: armed before and after", b.applied(), want)
		}
	})
}

func TestAfterRun(t *testing.T) {
	for after, c := range map[string]struct {
		applied []string
		event   EventKind
	}{
		"rearm":   {rearmed, EventArmed},
		"keep":    {nil, EventKept},
		"dispose": {nil, EventDisposed},
	} {
		inBubble(t, func(t *testing.T) {
			b := newBench(t)
			b.Invocation.AfterRun.V = after
			res := b.run(t.Context())
			if res.Code != 0 || res.Unsettled != nil {
				t.Errorf("%s: %+v", after, res)
			}
			if after != "dispose" && !slices.Equal(b.applied(), c.applied) {
				t.Errorf("%s: applied %v, want %v", after, b.applied(), c.applied)
			}
			left := 0
			for _, o := range b.objects {
				if o.Addr.Invocation() == login {
					left++
				}
			}
			if after == "dispose" && (left != 0 || b.object(planner.AddrUplink) == nil) {
				t.Errorf("dispose left %d objects of the invocation; the uplink stays", left)
			}
			if !slices.ContainsFunc(b.events, func(e Event) bool { return e.Kind == c.event }) {
				t.Errorf("%s: no event %s in %v", after, c.event, b.events)
			}
		})
	}
}

func TestDriftWhileRunningIsLeftToBeLookedAt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		b.agentProgram(shimProgram(goodReport, func(ctx context.Context, p *fakeProcess, bu wire.Bundle) int {
			b.tamper(login.With(planner.PartAgent))
			return runFor(time.Minute, 0)(ctx, p, bu)
		}))
		began := time.Now()
		res := b.run(t.Context())
		if res.Code != int(CodeDrift) || time.Since(began) > 2*RecheckEvery {
			t.Errorf("code %d after %s", res.Code, time.Since(began))
		}
		if len(b.applied()) > 0 || res.Unsettled == nil {
			t.Errorf("applied %v, unsettled %v: the changed container is evidence", b.applied(), res.Unsettled)
		}
	})
}

func TestCancelling(t *testing.T) {
	stubborn := func(p *fakeProcess) int { // it ignores a stop
		endSilently(p)
		<-p.killed
		return 137
	}
	for name, c := range map[string]struct {
		agent         program
		first, second time.Duration
		most          time.Duration
		rearms        bool
		reason        string
	}{
		"graceful":     {shimProgram(goodReport, runFor(time.Hour, 0)), 2 * time.Second, 0, 3 * time.Second, true, "the shim ends in order when asked"},
		"stubborn":     {stubborn, 2 * time.Second, 0, 2*time.Second + Grace + time.Second, true, "killed when the grace is over"},
		"second":       {stubborn, 2 * time.Second, 3 * time.Second, 4 * time.Second, false, "the second one does not wait"},
		"before start": {shimProgram(goodReport, runFor(time.Hour, 0)), time.Nanosecond, 0, time.Minute, true, "while it is being prepared"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newBench(t)
				b.agentProgram(c.agent)
				if name == "before start" {
					b.before = func(_ context.Context, call string, _ int) error {
						if call == "attach invocation.login.agent" {
							time.Sleep(time.Second)
						}
						return nil
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				began := time.Now()
				time.AfterFunc(c.first, cancel)
				if c.second > 0 {
					time.AfterFunc(c.second, func() { close(b.killChannel) })
				}
				res := b.run(ctx)
				if res.Code != int(CodeCancelled) || res.By != BySandplan || time.Since(began) > c.most {
					t.Errorf("code %d by %s after %s (%s)", res.Code, res.By, time.Since(began), c.reason)
				}
				if got := len(b.applied()) > 0; got != c.rearms {
					t.Errorf("armed again: %v, want %v (%s)", got, c.rearms, c.reason)
				}
			})
		})
	}
}

func TestProxyDies(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		b.agentProgram(shimProgram(goodReport, runFor(time.Hour, 0)))
		time.AfterFunc(3*time.Second, func() { _ = b.fakeEngine.Kill(context.Background(), b.object(login.With(planner.PartProxy)).ID) })
		began := time.Now()
		if res := b.run(t.Context()); res.Code != int(CodeProxy) || time.Since(began) > 6*time.Second {
			t.Errorf("code %d (%v) after %s", res.Code, res.Decision, time.Since(began))
		}
	})
}

func TestEgressLimits(t *testing.T) {
	for name, c := range map[string]struct {
		lines, incomplete string
		code              int
	}{
		"limit": {`{"seq":1,"event":"limit","reason":"upload_limit"}` + "\n" + `{"seq":2,"event":"end"}` + "\n", "", int(CodeBound)},
		"gap":   {`{"seq":2,"event":"end"}` + "\n", "line 2 came where 1 was due", 0},
		"cut":   {`{"seq":1,"event":"deci`, "did not write its last line", 0},
		"text":  {"oops\n", "no JSON", 0},
	} {
		inBubble(t, func(t *testing.T) {
			b := newBench(t)
			b.agentProgram(shimProgram(goodReport, runFor(5*time.Second, 0)))
			b.programs[login.With(planner.PartProxy)] = func(p *fakeProcess) int {
				l := wire.Hold(p.stdin, wire.Silence)
				ch, _ := l.Challenge(context.Background())
				_ = wire.WriteReady(p.stdout, wire.Ready{Nonce: ch.Nonce})
				fmt.Fprint(p.stdout, c.lines)
				<-l.Done()
				return 0
			}
			res := b.run(t.Context())
			if res.Code != c.code || !strings.Contains(res.Egress.Incomplete, c.incomplete) || (c.incomplete == "") != (res.Egress.Incomplete == "") {
				t.Errorf("%s: code %d (%v), egress %+v", name, res.Code, res.Decision, res.Egress)
			}
		})
	}
}

// TestEngineIsSlow: engines hold back every answer about a container that they are just ending. What the
// agent's own first process says then tells more than the engine's silence.
func TestEngineIsSlow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		b.agentProgram(func(p *fakeProcess) int {
			ch := endSilently(p)
			time.Sleep(3 * time.Second)
			_ = wire.WriteExit(p.stderr, wire.Exit{Token: ch.Token, By: wire.ByShim, Cause: wire.CauseProxy})
			return 1
		})
		var slow atomic.Bool
		b.before = func(ctx context.Context, call string, _ int) error {
			if !slow.Load() || strings.HasPrefix(call, "observe") {
				return nil
			}
			select {
			case <-time.After(20 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		time.AfterFunc(2500*time.Millisecond, func() { slow.Store(true) })
		if res := b.run(t.Context()); res.Code != int(CodeProxy) {
			t.Errorf("code %d (%v), want 123", res.Code, res.Decision)
		}
	})
}

func TestEngineIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		b.agentProgram(func(p *fakeProcess) int { // frozen: it hears no stop, and nobody can kill it
			endSilently(p)
			time.Sleep(time.Hour)
			return 1
		})
		var lost atomic.Bool
		b.before = func(context.Context, string, int) error {
			if lost.Load() {
				return errors.New("connection refused")
			}
			return nil
		}
		time.AfterFunc(3*time.Second, func() { lost.Store(true) })
		began := time.Now()
		res := Run(t.Context(), b.Params)
		if res.Code != int(CodeEngine) || time.Since(began) > engineLimit+15*time.Second {
			t.Errorf("code %d (%v) after %s", res.Code, res.Decision, time.Since(began))
		}
		if res.Unsettled == nil || !strings.Contains(res.Unsettled.Error(), "may still run") {
			t.Errorf("unsettled = %v: nobody can know whether the agent has ended", res.Unsettled)
		}
	})
}

func TestLeaseIsRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		b.agentProgram(shimProgram(goodReport, runFor(time.Hour, 0)))
		time.AfterFunc(3*time.Second, func() { b.lease.lost.Store(true) })
		began := time.Now()
		if res := b.run(t.Context()); res.Code != int(CodeDrift) || time.Since(began) > 5*time.Second {
			t.Errorf("code %d (%v) after %s", res.Code, res.Decision, time.Since(began))
		}
	})
}

// slowReader takes its time for each write.
type slowReader struct {
	each time.Duration
	got  bytes.Buffer
}

func (s *slowReader) Write(p []byte) (int, error) {
	time.Sleep(s.each)
	return s.got.Write(p)
}

func TestSlowReader(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		slow := &slowReader{each: time.Minute}
		b.Stdout = slow
		res := b.run(t.Context())
		if res.Code != 0 || res.By != ByAgent || res.Unsettled != nil || slow.got.Len() == 0 {
			t.Errorf("%+v (%v), got %q: the agent ended well, and whoever reads may take long", res, res.Decision, &slow.got)
		}
	})
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		b.Stdout = &slowReader{each: time.Hour}
		time.AfterFunc(10*time.Minute, func() { close(b.killChannel) })
		began := time.Now()
		if res := b.run(t.Context()); time.Since(began) > 11*time.Minute || res.Unsettled == nil {
			t.Errorf("%+v after %s: the second Ctrl-C waits for nobody", res, time.Since(began))
		}
	})
}

func TestTooManyAddresses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		for i := range 10000 {
			b.HostAddresses = append(b.HostAddresses, fmt.Sprintf("10.0.%d.%d", i/256, i%256))
		}
		if res := b.run(t.Context()); res.Code != int(CodeProof) || !strings.Contains(res.Decision.Error(), "too large") {
			t.Errorf("code %d (%v): it must say why at once", res.Code, res.Decision)
		}
	})
}

func TestLinkIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		b.agentProgram(shimProgram(goodReport, func(ctx context.Context, p *fakeProcess, _ wire.Bundle) int {
			time.Sleep(2 * time.Second)
			p.cut()
			<-ctx.Done()
			return -1
		}))
		if res := b.run(t.Context()); res.Code != int(CodeEngine) && res.Code != int(CodeKilled) {
			t.Errorf("code %d by %s (%v)", res.Code, res.By, res.Decision)
		}
	})
}

func TestApproval(t *testing.T) {
	for name, c := range map[string]struct {
		approve error
		code    int
	}{"approved": {nil, 0}, "refused": {errors.New("it widens the sandbox"), 125}} {
		inBubble(t, func(t *testing.T) {
			b := newBench(t)
			b.tamper(login.With(planner.PartAgent))
			asked := 0
			b.Approve = func(_ context.Context, p *planner.Plan) error {
				asked++
				if !changes(p) {
					t.Errorf("%s: asked to approve an empty plan", name)
				}
				return c.approve
			}
			res := b.run(t.Context())
			if res.Code != c.code || asked != 1 {
				t.Errorf("%s: code %d (%v), asked %d times", name, res.Code, res.Decision, asked)
			}
		})
	}
}

func TestRunner(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		cmd, err := policy.SealRunner(testSpec(), string(login), "test")
		if err != nil {
			t.Fatal(err)
		}
		b.Runner, b.Command, b.Params.Prompt = "test", cmd, nil
		// An agent that was kept after its run, to be looked at, is left as it is.
		b.object(login.With(planner.PartAgent)).Status = planner.StatusExited
		b.object(login.With(planner.PartProxy)).Status = planner.StatusExited
		res := b.run(t.Context())
		if res.Code != 0 || res.By != ByAgent || res.Unsettled != nil {
			t.Fatalf("%+v, %v", res, res.Unsettled)
		}
		if slices.ContainsFunc(b.calls, func(c string) bool { return strings.HasPrefix(c, "start ") && !strings.Contains(c, "runner") }) {
			t.Errorf("a runner starts nothing but itself: %v", b.calls)
		}
		if want := []string{`replace invocation.login.runner["test"]`}; !slices.Equal(b.applied(), want) {
			t.Errorf("applied %v, want %v", b.applied(), want)
		}
	})
}

func TestBundle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		secret := []byte("s3cret\n")
		b.Credentials = func() (map[string][]byte, error) { return map[string][]byte{"token": secret}, nil }
		var got string
		b.agentProgram(shimProgram(goodReport, func(_ context.Context, _ *fakeProcess, bu wire.Bundle) int {
			got = fmt.Sprintf("%s|%s", bu.Prompt, bu.Credentials["token"])
			return 0
		}))
		if res := b.run(t.Context()); res.Code != 0 {
			t.Fatal(res.Decision)
		}
		if got != "do it|s3cret\n" {
			t.Errorf("bundle = %q", got)
		}
		if strings.Contains(string(secret), "s3cret") {
			t.Error("the credential is still in memory")
		}
	})
}

func TestRecordCannotBeWritten(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		b.DataDir += "/file"
		if err := os.WriteFile(b.DataDir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		res := b.run(t.Context())
		if res.Code != 0 || res.Unsettled == nil || !strings.Contains(res.Unsettled.Error(), "record") {
			t.Errorf("code %d, unsettled %v: the run stands, and somebody is told", res.Code, res.Unsettled)
		}
	})
}
