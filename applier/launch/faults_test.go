package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

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
		says              string
	}{
		"upload":   {`{"seq":1,"event":"limit","reason":"upload_limit"}` + "\n" + `{"seq":2,"event":"end"}` + "\n", "", int(CodeBound), "limits.upload allows: 1MiB, at a.hcl:7"},
		"download": {`{"seq":1,"event":"limit","reason":"download_limit"}` + "\n" + `{"seq":2,"event":"end"}` + "\n", "", int(CodeBound), "limits.download allows: 2MiB, at a.hcl:8"},
		"log":      {`{"seq":1,"event":"limit","reason":"log_limit"}` + "\n" + `{"seq":2,"event":"end"}` + "\n", "", int(CodeBound), "used up: log_limit"},
		"gap":      {`{"seq":2,"event":"end"}` + "\n", "line 2 came where 1 was due", 0, ""},
		"cut":      {`{"seq":1,"event":"deci`, "did not write its last line", 0, ""},
		"text":     {"oops\n", "no JSON", 0, ""},
	} {
		inBubble(t, func(t *testing.T) {
			b := newBench(t)
			b.agentProgram(shimProgram(goodReport, runFor(5*time.Second, 0)))
			b.programs[login.With(planner.PartProxy)] = func(p *fakeProcess) int {
				l := wire.Hold(p.stdin, wire.Silence)
				ch, _ := l.Challenge(context.Background())
				_ = wire.WriteReady(p.stdout, goodReady(ch.Nonce))
				fmt.Fprint(p.stdout, c.lines)
				<-l.Done()
				return 0
			}
			at := func(line int) hcl.Range { return hcl.Range{Filename: "a.hcl", Start: hcl.Pos{Line: line}} }
			b.Invocation.Limits.Upload = hclspec.Val[int64]{V: 1 << 20, Range: at(7), Set: true}
			b.Invocation.Limits.Download = hclspec.Val[int64]{V: 2 << 20, Range: at(8), Set: true}
			res := b.run(t.Context())
			if c.says != "" && (res.Decision == nil || !strings.Contains(res.Decision.Error(), c.says)) {
				t.Errorf("%s: %v, want it to say %q", name, res.Decision, c.says)
			}
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

// TestOutOfMemory: the container's own first process knows why its command was killed, whether or not the
// engine heard of it.
func TestOutOfMemory(t *testing.T) {
	for _, detail := range []string{wire.OutOfMemory, ""} {
		inBubble(t, func(t *testing.T) {
			b := newBench(t)
			b.agentProgram(func(p *fakeProcess) int {
				ch := endSilently(p)
				_ = wire.WriteExit(p.stderr, wire.Exit{Token: ch.Token, By: wire.ByAgent, Code: 137, Signal: 9, Detail: detail})
				return 137
			})
			res := b.run(t.Context())
			if killed := res.By == BySandplan && strings.Contains(res.Decision.Error(), "more memory"); res.Code != 137 || killed != (detail != "") {
				t.Errorf("%q: code %d by %s (%v)", detail, res.Code, res.By, res.Decision)
			}
		})
	}
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

// TestLooksLeaveRoom: a sandbox is looked at once a second; where a look takes long, or where what others do
// asks for one again and again, looks leave the engine time for other things.
func TestLooksLeaveRoom(t *testing.T) {
	const ran = 60 * time.Second
	for name, c := range map[string]struct {
		takes, uplink time.Duration // one look; how often others come and go, 0 never
		least, most   int
	}{
		"idle":         {0, 0, 55, 61},
		"busy engine":  {time.Second, 0, 10, 13},
		"lost machine": {5 * time.Second, 0, 4, 5},
		"many others":  {10 * time.Millisecond, 50 * time.Millisecond, 200, 300},
		"both":         {time.Second, 50 * time.Millisecond, 28, 31},
	} {
		inBubble(t, func(t *testing.T) {
			b := newBench(t)
			b.agentProgram(shimProgram(goodReport, runFor(ran, 0)))
			b.Timeout = 2 * ran
			var running atomic.Bool
			b.Events = func(e Event) {
				if e.Kind == EventRunning {
					running.Store(true)
				}
			}
			looks := 0
			b.before = func(_ context.Context, call string, _ int) error {
				if running.Load() && strings.HasPrefix(call, "recheck") {
					looks++
					time.Sleep(c.takes)
				}
				return nil
			}
			over := make(chan struct{})
			defer close(over)
			if c.uplink > 0 {
				go func() {
					for {
						select {
						case <-time.After(c.uplink):
							b.mu.Lock()
							b.signal("network", "connect", b.object(planner.AddrUplink).ID, "neighbour")
							b.mu.Unlock()
						case <-over:
							return
						}
					}
				}()
			}
			if res := b.run(t.Context()); res.Code != 0 || looks < c.least || looks > c.most {
				t.Errorf("%s: code %d (%v), %d looks in %s, want %d to %d", name, res.Code, res.Decision, looks, ran, c.least, c.most)
			}
		})
	}
}

// TestRemovedAtOnce: the agent's container is removed before its process was looked at for the first time.
func TestRemovedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		first := true
		b.before = func(_ context.Context, call string, _ int) error {
			if call == "process "+string(login.With(planner.PartAgent)) && first {
				first = false
				return fmt.Errorf("no such container: %w", planner.ErrGone)
			}
			return nil
		}
		if res := b.run(t.Context()); res.Code != int(CodeKilled) {
			t.Errorf("code %d (%v), and the engine answers", res.Code, res.Decision)
		}
	})
}
