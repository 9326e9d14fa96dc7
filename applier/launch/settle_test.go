package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
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

// TestSettleWaitsForItsTurn: when many runs end at once, the last waits for all others before it can arm
// its invocation again. That is no part of the time that this may take; and nobody who wants an end at
// once is kept by it.
func TestSettleWaitsForItsTurn(t *testing.T) {
	for name, c := range map[string]struct {
		wait, kill time.Duration // after the run began
		most       time.Duration
		applied    []string
		unsettled  string
	}{
		"its turn comes":  {4 * time.Minute, 0, 5 * time.Minute, rearmed, ""},
		"an end at once":  {4 * time.Minute, time.Minute, time.Minute, nil, "not waited for"},
		"nobody in front": {0, 0, time.Second, rearmed, ""},
	} {
		inBubble(t, func(t *testing.T) {
			b := newBench(t)
			take := b.LockScope
			b.LockScope = func(ctx context.Context) (Lock, error) {
				if len(b.scopes) == 1 { // the second time: after the end
					select {
					case <-time.After(c.wait):
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				return take(ctx)
			}
			if c.kill > 0 {
				time.AfterFunc(c.kill, func() { close(b.killChannel) })
			}
			began := time.Now()
			res := b.run(t.Context())
			if res.Code != 0 || time.Since(began) > c.most || !slices.Equal(b.applied(), c.applied) {
				t.Errorf("%s: code %d after %s, applied %q, want %q", name, res.Code, time.Since(began), b.applied(), c.applied)
			}
			if (res.Unsettled == nil) != (c.unsettled == "") || res.Unsettled != nil && !strings.Contains(res.Unsettled.Error(), c.unsettled) {
				t.Errorf("%s: unsettled %v, want %q", name, res.Unsettled, c.unsettled)
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
			t.Fatalf("applied %v, unsettled %v: the changed container is evidence", b.applied(), res.Unsettled)
		}
		if want := "more than a run has changed invocation.login: invocation.login.agent (replace)"; !strings.Contains(res.Unsettled.Error(), want) ||
			!strings.Contains(res.Unsettled.Error(), "HostConfig.Memory differs") {
			t.Errorf("unsettled %v, want %q and which setting", res.Unsettled, want)
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
