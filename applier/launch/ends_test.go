package launch_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRealEnds ends running agents from outside, in every way that can happen.
func TestRealEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, map[string][]string{"job": {"say=up", "sleep=1h"}}, nil)
	w.apply()
	const agent, proxy, address = "invocation.job.agent", "invocation.job.proxy", "invocation.job"

	t.Run("client killed", func(t *testing.T) {
		cmd, _, _ := w.running(t, address)
		a, p := w.container(agent), w.container(proxy)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		took := within(t, soon, "agent and proxy end with their lease", func() bool { return w.stopped(a)() && w.stopped(p)() })
		t.Logf("ended %s after kill -9 of the client", took)
		if e := w.sandplan("plan"); e.code != 0 {
			t.Errorf("plan afterwards: exit code %d\n%s", e.code, e.stderr)
		}
		// The dead run's lease is taken over, and what it left is armed again.
		cmd, _, _ = w.running(t, address)
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	})
	does := func(args ...string) func(*testing.T, *exec.Cmd) error {
		return func(*testing.T, *exec.Cmd) error {
			for i, arg := range args {
				switch arg {
				case "AGENT":
					args[i] = w.container(agent)
				case "PROXY":
					args[i] = w.container(proxy)
				}
			}
			_, err := w.docker(args...)
			return err
		}
	}
	// tried is for what may fail because the run was ended while it was being done.
	tried := func(do func(*testing.T, *exec.Cmd) error) func(*testing.T, *exec.Cmd) error {
		return func(t *testing.T, cmd *exec.Cmd) error {
			if err := do(t, cmd); err != nil {
				t.Logf("the run was ended meanwhile, or nothing was done: %v", err)
			}
			return nil
		}
	}
	both := func(first, second func(*testing.T, *exec.Cmd) error) func(*testing.T, *exec.Cmd) error {
		return func(t *testing.T, cmd *exec.Cmd) error {
			if err := first(t, cmd); err != nil {
				return err
			}
			return second(t, cmd)
		}
	}
	signal := func(s os.Signal) func(*testing.T, *exec.Cmd) error {
		return func(_ *testing.T, cmd *exec.Cmd) error { return cmd.Process.Signal(s) }
	}
	ends := []struct {
		name string
		do   func(t *testing.T, cmd *exec.Cmd) error
		code int
	}{
		{"proxy killed", does("kill", "PROXY"), 123},
		{"agent killed", does("kill", "AGENT"), 137},
		{"proxy restarted", tried(does("restart", "-t", "0", "PROXY")), 123}, // or 120, see below
		{"proxy removed", does("rm", "-f", "PROXY"), 123},
		{"agent removed", does("rm", "-f", "AGENT"), 137},
		{"update", does("update", "--memory", "8g", "--memory-swap", "8g", "AGENT"), 120},
		{"connect", does("network", "connect", "bridge", "AGENT"), 120},
		{"a guest on the uplink", func(t *testing.T, _ *exec.Cmd) error {
			// Its labels are not those of a proxy; it starts on the uplink, as `docker run --network` lets anybody.
			network := w.tell("network", "ls", "-q", "--no-trunc", "--filter", w.label("project", w.project), "--filter", w.label("kind", "uplink"))
			id := w.tell("create", "--network", network, agentImage, "/agent", "sleep=1h")
			t.Cleanup(func() { w.tell("rm", "-f", id) })
			_, err := w.docker("start", id)
			return err
		}, 120},
		{"a port of the host's on its bridge", func(t *testing.T, _ *exec.Cmd) error {
			network := w.tell("inspect", "-f", "{{range .NetworkSettings.Networks}}{{.NetworkID}}{{end}}", w.container(agent))
			bridge := w.tell("network", "inspect", "-f", `{{index .Options "com.docker.network.bridge.name"}}`, network)
			port := fmt.Sprintf("splp%d", os.Getpid())
			t.Cleanup(func() { _ = exec.Command("ip", "link", "del", port).Run() })
			// The other end is this machine's: it answers for every address that this machine has.
			for _, args := range [][]string{{"add", port, "type", "veth", "peer", "name", port + "x"}, {"set", port, "master", bridge},
				{"set", port, "up"}, {"set", port + "x", "up"}} {
				if out, err := exec.Command("ip", append([]string{"link"}, args...)...).CombinedOutput(); err != nil {
					return fmt.Errorf("ip link %v: %w: %s", args, err, out)
				}
			}
			return nil
		}, 120},
		{"exec", tried(does("exec", "-u", "0", "AGENT", "/agent", "say=owned")), 120},
		{"exec in the proxy", tried(does("exec", "-u", "0", "PROXY", "/.sandplan/sandplan", "version")), 120},
		{"paused and unpaused", both(does("pause", "AGENT"), tried(does("unpause", "AGENT"))), 120},
		{"connected and disconnected", both(does("network", "connect", "bridge", "PROXY"), tried(does("network", "disconnect", "-f", "bridge", "PROXY"))),
			120},
		{"attached", func(t *testing.T, _ *exec.Cmd) error {
			attach := exec.Command("docker", "attach", "--no-stdin", "--sig-proxy=false", w.container(agent))
			t.Cleanup(func() { _ = attach.Process.Kill(); _ = attach.Wait() })
			return attach.Start()
		}, 120},
		{"interrupted", signal(syscall.SIGINT), 130},
		{"terminated", signal(syscall.SIGTERM), 130},
		{"interrupted twice", both(signal(syscall.SIGINT), func(t *testing.T, cmd *exec.Cmd) error {
			time.Sleep(50 * time.Millisecond)
			return signal(syscall.SIGINT)(t, cmd)
		}), 130},
	}
	for _, c := range ends {
		t.Run(c.name, func(t *testing.T) {
			// What the one before left to be looked at (drift) is put right first.
			w.must("apply", "-auto-approve")
			cmd, _, stderr := w.running(t, address)
			a, p := w.container(agent), w.container(proxy)
			began := time.Now()
			if err := c.do(t, cmd); err != nil {
				t.Fatal(err)
			}
			took := within(t, soon, "the agent is stopped", w.stopped(a))
			err := cmd.Wait()
			t.Logf("agent stopped after %s, sandplan ended after %s: %v", took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), err)
			code := cmd.ProcessState.ExitCode()
			// Its end is told by an event, its new start by a look: on a machine that stood still by both at once.
			again := code == 120 && c.name == "proxy restarted" && bytes.Contains(stderr.bytes(), []byte("was restarted by somebody"))
			if code != c.code && !again {
				t.Errorf("exit code %d, want %d\n%s", code, c.code, stderr.bytes())
			}
			lines := strings.Split(strings.TrimSpace(string(stderr.bytes())), "\n")
			if !strings.HasPrefix(lines[len(lines)-1], "sandplan:") {
				t.Errorf("the last line is %q", lines[len(lines)-1])
			}
			// One that was restarted behind our back has no lease, and ends by itself.
			within(t, soon, "the proxy is stopped", w.stopped(p))
		})
	}
}

// TestRealTogether runs several things at once: what belongs to a live run is left alone by all others,
// and nobody else is disturbed.
func TestRealTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, map[string][]string{"held": {"say=up", "sleep=1h"}, "quick": {"say=up"}, "kept": {"say=x"}, "gone": {"say=x"}},
		map[string]string{"kept": "  after_run = \"keep\"", "gone": "  after_run = \"dispose\""})
	w.apply()
	held, stdout, stderr := w.running(t, "invocation.held")
	for _, c := range []struct {
		args   []string
		code   int
		want   string // in stderr
		reason string
	}{
		{[]string{"run", "invocation.held"}, 125, "lock", "the lease is held"},
		{[]string{"dispatch", "invocation.held", "test"}, 125, "lock", "a runner takes the lease, too"},
		{[]string{"apply", "-auto-approve"}, 0, "", "nothing differs"},
		{[]string{"apply", "-auto-approve", "-replace=invocation.held.agent"}, 1, "invocation.held", "nobody replaces what runs"},
		{[]string{"destroy", "-auto-approve"}, 1, "invocation.held", "nobody removes what runs"},
		{[]string{"drift"}, 0, "", "what runs under its lease is no drift"},
		{[]string{"run", "invocation.quick"}, 0, "", "another invocation is free"},
		{[]string{"dispatch", "invocation.quick", "test"}, 3, "", "its runner, too"},
	} {
		e := w.sandplan(c.args...)
		if e.code != c.code || !strings.Contains(e.stderr, c.want) {
			t.Errorf("%v: exit code %d, want %d with %q (%s)\n%s%s", c.args, e.code, c.code, c.want, c.reason, e.stdout, e.stderr)
		}
	}
	for _, c := range []struct {
		args   []string
		code   int
		want   string
		reason string
	}{
		{[]string{"run", "invocation.kept"}, 0, "Kept as it ended", "after_run = keep"},
		{[]string{"plan", "-detailed-exitcode"}, 2, "", "what was kept has run"},
		{[]string{"run", "invocation.kept"}, 0, "Arming again", "and is armed before the next run"},
		{[]string{"run", "invocation.gone"}, 0, "Removed from the engine", "after_run = dispose"},
		{[]string{"run", "invocation.gone"}, 125, "sandplan:", "nothing is left of it"},
	} {
		e := w.sandplan(c.args...)
		if e.code != c.code || !strings.Contains(e.stderr, c.want) {
			t.Errorf("%v: exit code %d, want %d with %q (%s)\n%s%s", c.args, e.code, c.code, c.want, c.reason, e.stdout, e.stderr)
		}
	}
	if w.find("invocation.gone.agent") != "" {
		t.Error("the disposed agent is still there")
	}
	if err := held.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _ = held.Wait(); held.ProcessState.ExitCode() != 130 || string(stdout.bytes()) != "up\n" {
		t.Errorf("the run that was held: exit code %d, stdout %q\n%s", held.ProcessState.ExitCode(), stdout.bytes(), stderr.bytes())
	}
}
