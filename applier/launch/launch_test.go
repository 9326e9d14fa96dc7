package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

const login = planner.Address("invocation.login")

func testSpec() *hclspec.Spec {
	return &hclspec.Spec{
		Vendors: []hclspec.Vendor{{Name: "local", Kind: hclspec.Val[string]{V: policy.KindCustom}, Image: hclspec.Val[string]{V: "agent:1"},
			Command:     hclspec.Val[[]string]{V: []string{"/agent"}},
			Credentials: []hclspec.Credential{{Name: "token", SourceEnv: hclspec.Val[string]{V: "T", Set: true}}},
			Hosts:       []hclspec.Host{{Name: "api.example", Port: hclspec.Val[int]{V: 443}, TLS: hclspec.Val[bool]{V: true}}}}},
		Phases: []hclspec.Phase{{Name: "review", Base: hclspec.Val[string]{V: "review"},
			Runners: []hclspec.Runner{{Name: "test", Argv: hclspec.Val[[]string]{V: []string{"/bin/true", "x"}}, Image: hclspec.Val[string]{V: "ci:1"}}}}},
		Invocations: []hclspec.Invocation{{Address: string(login), Name: "login", Vendor: hclspec.Val[string]{V: "local"},
			Phase: hclspec.Val[string]{V: "review"}, AfterRun: hclspec.Val[string]{V: "rearm"}}},
	}
}

// bench is one run on a fakeEngine, and what came of it.
type bench struct {
	*fakeEngine
	Params
	t           *testing.T
	out, err    bytes.Buffer
	events      []Event
	scopes      []*fakeLock
	lease       *fakeLock
	killChannel chan struct{}
}

func newBench(t *testing.T) *bench {
	t.Helper()
	spec := testSpec()
	cmd, err := policy.Seal(spec, string(login))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, fakeEngine: newFakeEngine(), killChannel: make(chan struct{})}
	b.lease = &fakeLock{f: b.fakeEngine, name: "lease"}
	b.Params = Params{
		Scope: planner.Scope{Project: "p", Workspace: "default"}, Invocation: spec.Invocations[0], Command: cmd,
		Timeout: time.Minute, Output: 1 << 20, Engine: b.fakeEngine,
		Compile: func(context.Context, planner.Snapshot) (Compiled, error) { return fakeCompiled{testResources()}, nil },
		LockScope: func(context.Context) (Lock, error) {
			l := &fakeLock{f: b.fakeEngine, name: "scope"}
			b.scopes = append(b.scopes, l)
			return l, nil
		},
		LockLease: func(context.Context) (Lock, error) { return b.lease, nil },
		Apply:     b.apply, Prompt: []byte("do it"),
		Credentials: func() (map[string][]byte, error) { return map[string][]byte{"token": []byte("s3cret")}, nil },
		Stdout:      &b.out, Stderr: &b.err, Events: func(e Event) { b.events = append(b.events, e) },
		DataDir: t.TempDir(), Now: time.Now, Kill: b.killChannel,
	}
	return b
}

// run runs it, and checks what must hold after every run, however it ended.
func (b *bench) run(ctx context.Context) Result {
	b.t.Helper()
	res := Run(ctx, b.Params)
	if (res.By == BySandplan) != (res.Decision != nil) || res.By == "" {
		b.t.Errorf("by %q with decision %v", res.By, res.Decision)
	}
	for id, p := range b.running {
		if _, now := b.process(id); now.Status == planner.StatusRunning && p.process.PID != 0 {
			b.t.Errorf("container %s (%s) still runs after the run", id, b.nameOf(id))
			p.killOnce.Do(func() { close(p.killed) })
		}
		_ = p.clientEnd.Close()
		p.endOutput(nil)
	}
	taken, released := len(b.scopes), 0
	for _, c := range b.calls {
		if c == "release scope" {
			released++
		}
	}
	if taken != released {
		b.t.Errorf("took the scope lock %d times, released it %d times", taken, released)
	}
	if !slices.Contains(b.calls, "release lease") && taken > 0 {
		b.t.Error("the lease is still held")
	}
	return res
}

func (b *bench) agentProgram(p program) { b.programs[login.With(planner.PartAgent)] = p }

// inBubble runs a test with fake time, and gives the programs of its containers time to end.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t)
		time.Sleep(2 * time.Hour)
	})
}

func TestRunGoesWell(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		res := b.run(t.Context())
		if res.Code != 0 || res.By != ByAgent || res.Unsettled != nil || res.Took != 0 {
			t.Fatalf("result = %+v, %v", res, res.Unsettled)
		}
		if got, want := b.out.String(), "prompt \"do it\"\n"; got != want {
			t.Errorf("stdout = %q, want %q", got, want)
		}
		if got := b.err.String(); got != "no newline" {
			t.Errorf("stderr = %q: the exit record must be cut off, and nothing else", got)
		}
		var kinds []EventKind
		for _, e := range b.events {
			kinds = append(kinds, e.Kind)
		}
		want := []EventKind{EventCompared, EventProxyReady, EventProven, EventRunning, EventEnded, EventEgress, EventArmed}
		if !slices.Equal(kinds, want) {
			t.Errorf("events = %v, want %v", kinds, want)
		}
		if e := res.Egress; e.Allowed["api.example:443"] != 1 || e.Refused["evil.example:443"] != 5 || e.Up != 10 || e.Down != 20 ||
			e.Lines != 5 || e.Incomplete != "" {
			t.Errorf("egress = %+v", res.Egress)
		}
		wantCalls := []string{"observe", "watch", "attach invocation.login.proxy", "start invocation.login.proxy", "attach invocation.login.agent",
			"recheck 5", "start invocation.login.agent", "recheck 4", "release scope", "observe",
			"apply replace invocation.login.proxy", "apply replace invocation.login.agent", "release scope", "release lease"}
		got := slices.DeleteFunc(slices.Clone(b.calls), func(c string) bool {
			return strings.HasPrefix(c, "wait ") || strings.HasPrefix(c, "process ") || strings.HasPrefix(c, "executes ")
		})
		if !slices.Equal(got, wantCalls) {
			t.Errorf("calls =\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wantCalls, "\n"))
		}
	})
}

func TestRecord(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		res := b.run(t.Context())
		raw, err := os.ReadFile(filepath.Join(res.RecordDir, recordFile))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte("s3cret")) || bytes.Contains(raw, []byte("do it")) {
			t.Error("the record holds the credential or the prompt")
		}
		var s statement
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		p := s.Predicate
		if s.Type != statementType || p.ID != res.RunID || p.Exit.By != ByAgent || p.Running == nil || len(p.Objects) != 6 ||
			p.Report == nil || p.Proxy == nil || len(s.Subject) != 6 {
			t.Errorf("record = %s", raw)
		}
		for name, want := range map[string]string{
			outputFile: "prompt \"do it\"\nno newline",
			egressFile: proxyLines,
		} {
			if got, err := os.ReadFile(filepath.Join(res.RecordDir, name)); err != nil || string(got) != want {
				t.Errorf("%s = %q, %v; want %q", name, got, err, want)
			}
		}
		if got, err := os.ReadFile(filepath.Join(b.DataDir, ".gitignore")); err != nil || string(got) != "*\n" {
			t.Errorf(".gitignore = %q, %v", got, err)
		}
	})
}

func TestExitCodes(t *testing.T) {
	shimEnds := func(c wire.Cause) program {
		return func(p *fakeProcess) int {
			return endWith(p, wire.Exit{By: wire.ByShim, Cause: c, Detail: "so it is"})
		}
	}
	agentEnds := func(code int) program { return shimProgram(goodReport, runFor(time.Second, code)) }
	for name, c := range map[string]struct {
		agent  program
		code   int
		by     string
		reason string
	}{
		"0":              {agentEnds(0), 0, ByAgent, "success"},
		"1":              {agentEnds(1), 1, ByAgent, "failure is the agent's own"},
		"42":             {agentEnds(42), 42, ByAgent, "any number is passed on"},
		"125":            {agentEnds(125), 125, ByAgent, "an agent may use our numbers; by tells them apart"},
		"timeout":        {shimEnds(wire.CauseTimeout), 124, BySandplan, "the shim's clock ended it"},
		"output":         {shimEnds(wire.CauseOutput), 119, BySandplan, "the shim's bound ended it"},
		"mount":          {shimEnds(wire.CauseMount), 120, BySandplan, "a mount went away"},
		"proxy":          {shimEnds(wire.CauseProxy), 123, BySandplan, "the shim lost the proxy"},
		"not executable": {shimEnds(wire.CauseNotExecutable), 126, BySandplan, "as a shell would say"},
		"not found":      {shimEnds(wire.CauseNotFound), 127, BySandplan, "as a shell would say"},
		"lease":          {shimEnds(wire.CauseLease), 122, BySandplan, "the link broke"},
		"internal":       {shimEnds(wire.CauseInternal), 121, BySandplan, "a shim that fails proves nothing"},
		"killed": {func(p *fakeProcess) int { endSilently(p); return 137 }, 137, BySandplan,
			"somebody killed the container: no word, no exit code of the agent's"},
		"forged": {func(p *fakeProcess) int {
			return endWith(p, wire.Exit{Token: "guess", By: wire.ByAgent, Code: 0})
		}, 137, BySandplan, "an exit record without the token is the agent's text"},
		"too long": {shimProgram(goodReport, runFor(time.Hour, 0)), 124, BySandplan, "a shim whose clock does not work"},
		"too much": {shimProgram(goodReport, func(ctx context.Context, p *fakeProcess, _ wire.Bundle) int {
			for ctx.Err() == nil {
				_, _ = p.stdout.Write(make([]byte, 64<<10))
				time.Sleep(time.Millisecond)
			}
			return -1
		}), 119, BySandplan, "a shim that does not bound the output"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newBench(t)
				b.agentProgram(c.agent)
				res := b.run(t.Context())
				if res.Code != c.code || res.By != c.by {
					t.Errorf("code %d by %s (%v), want %d by %s (%s)", res.Code, res.By, res.Decision, c.code, c.by, c.reason)
				}
				if b.out.Len() > 1<<20+markRoom {
					t.Errorf("%d bytes of output came through (%s)", b.out.Len(), c.reason)
				}
			})
		})
	}
}

func TestForgedPrograms(t *testing.T) {
	agent, proxy := login.With(planner.PartAgent), login.With(planner.PartProxy)
	for name, c := range map[string]struct {
		change func(b *bench)
		code   int
		fed    bool
		reason string
	}{
		"agent": {func(b *bench) { b.forged = map[planner.Address]bool{agent: true} }, 121, false,
			"swapped between the last hash and the start: what it reports is worth nothing"},
		"proxy": {func(b *bench) { b.forged = map[planner.Address]bool{proxy: true} }, 125, false, "an impostor with the way out"},
		"blind": {func(b *bench) { b.blind = true }, 0, true, "not to be seen, then what it was started from counts"},
		"blind and swapped": {func(b *bench) {
			b.blind = true
			b.after = func(call string, _ int) {
				if call == "start "+string(agent) {
					b.tamper(planner.AddrShim)
				}
			}
		}, 120, false, "swapped right after the last hash"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				fed := false
				b := newBench(t)
				b.agentProgram(shimProgram(goodReport, func(context.Context, *fakeProcess, wire.Bundle) int { fed = true; return 0 }))
				c.change(b)
				if res := b.run(t.Context()); res.Code != c.code || fed != c.fed {
					t.Errorf("code %d (%v), fed %v; want %d, %v (%s)", res.Code, res.Decision, fed, c.code, c.fed, c.reason)
				}
			})
		})
	}
}

// endWith is a first process that proves the sandbox and ends as told once it has the bundle.
func endWith(p *fakeProcess, e wire.Exit) int {
	ch := endSilently(p)
	if e.Token == "" {
		e.Token = ch.Token
	}
	_ = wire.WriteExit(p.stderr, e)
	return 1
}

func endSilently(p *fakeProcess) wire.Challenge {
	l := wire.Hold(p.stdin, wire.Silence)
	ch, _ := l.Challenge(context.Background())
	l.AllowBundle()
	_ = wire.WriteReport(p.stdout, goodReport(ch))
	_, _ = l.Bundle(context.Background())
	return ch
}

func TestProof(t *testing.T) {
	fed := false
	feedable := func(report func(wire.Challenge) wire.Report) program {
		return shimProgram(report, func(context.Context, *fakeProcess, wire.Bundle) int { fed = true; return 0 })
	}
	for name, c := range map[string]struct {
		agent  program
		want   string
		reason string
	}{
		"failed check": {feedable(func(c wire.Challenge) wire.Report {
			r := goodReport(c)
			r.Checks = append(r.Checks, wire.Check{Name: "proc.cap_eff", Detail: "0000003fffffffff"})
			return r
		}), "not as declared", "the shim itself says so"},
		"other inode": {feedable(func(c wire.Challenge) wire.Report {
			r := goodReport(c)
			r.Mounts[0].Inode = 3
			return r
		}), "not as declared", "the source was swapped after the gate saw it; only the host can tell"},
		"no mount": {feedable(func(c wire.Challenge) wire.Report {
			return wire.Report{Nonce: c.Nonce, Checks: []wire.Check{{Name: "a", OK: true}}}
		}), "not as declared", "the worktree is not there"},
		"no checks": {feedable(func(c wire.Challenge) wire.Report {
			return wire.Report{Nonce: c.Nonce, Mounts: goodReport(c).Mounts}
		}), "no checks", "an empty proof proves nothing"},
		"other nonce": {feedable(func(wire.Challenge) wire.Report { return goodReport(wire.Challenge{Nonce: "old"}) }),
			"another challenge", "a report that was recorded earlier"},
		"garbage": {func(p *fakeProcess) int { fmt.Fprintln(p.stdout, "Usage: agent [flags]"); <-p.killed; return 1 },
			"Usage: agent", "something else than the shim was started"},
		"silent": {func(p *fakeProcess) int { <-p.killed; return 1 }, "waiting for the proof", "it never says anything"},
		"ends":   {func(p *fakeProcess) int { fmt.Fprint(p.stderr, "exec format error"); return 1 }, "exec format error", "it ends without a word on stdout"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				fed = false
				b := newBench(t)
				b.agentProgram(c.agent)
				res := b.run(t.Context())
				if res.Code != int(CodeProof) || !strings.Contains(res.Decision.Error(), c.want) {
					t.Errorf("code %d, %v; want 121 with %q (%s)", res.Code, res.Decision, c.want, c.reason)
				}
				if fed {
					t.Errorf("the command got its prompt (%s)", c.reason)
				}
			})
		})
	}
}
