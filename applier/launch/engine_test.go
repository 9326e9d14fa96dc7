package launch_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
)

// TestRealExitCodes runs agents that end in every way on the real engine.
func TestRealExitCodes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		steps      []string
		attributes string
		code       int
		decided    bool // by sandplan
		stdout     string
		reason     string
	}{
		"ok":        {[]string{"say=out", "warn=err", "stdin"}, "", 0, false, "out\ndo it", "the prompt comes on standard input"},
		"one":       {[]string{"exit=1"}, "", 1, false, "", "the agent's own code"},
		"answer":    {[]string{"exit=42"}, "", 42, false, "", "the agent's own code"},
		"mimic":     {[]string{"warn=sandplan: all is well", "exit=125"}, "", 125, false, "", "an agent that talks like sandplan"},
		"ro":        {[]string{"write=/work/x:y"}, "", 1, false, "", "review mounts the worktree read-only"},
		"slow":      {[]string{"say=begin", "sleep=1h"}, "timeout = \"2s\"", 124, true, "begin\n", "the declared timeout"},
		"deaf":      {[]string{"ignore", "sleep=1h"}, "timeout = \"2s\"", 124, true, "", "an agent that ignores SIGTERM"},
		"loud":      {[]string{"print=8MiB"}, "limits {\n output = \"64KiB\"\n }", 119, true, "", "the output bound"},
		"big":       {[]string{"eat=512MiB"}, "limits {\n memory = \"64MiB\"\n }", 137, true, "", "out of memory"},
		"orphans":   {[]string{"spawn=3", "exit=5"}, "", 5, false, "", "children that outlive the agent"},
		"suicide":   {[]string{"abort"}, "", 137, false, "", "killed by a signal of its own"},
		"parricide": {[]string{"signal=1:9", "say=still here"}, "", 0, false, "still here\n", "nothing inside can signal the first process"},
	}
	steps, attributes := map[string][]string{}, map[string]string{}
	for name, c := range cases {
		steps[name], attributes[name] = c.steps, c.attributes
	}
	w := newWorld(t, 0, steps, attributes)
	w.apply()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := w.sandplan("run", "invocation."+name)
			if e.code != c.code {
				t.Errorf("exit code %d, want %d (%s)\n%s", e.code, c.code, c.reason, e.stderr)
			}
			if decided := strings.HasPrefix(e.last(), "sandplan:"); decided != c.decided {
				t.Errorf("the last line is %q; decided by sandplan: %v, want %v (%s)", e.last(), decided, c.decided, c.reason)
			}
			if c.stdout != "" && e.stdout != c.stdout {
				t.Errorf("stdout %q, want %q (%s)", e.stdout, c.stdout, c.reason)
			}
			if len(e.stdout) > 64<<10 {
				t.Errorf("%d bytes of output (%s)", len(e.stdout), c.reason)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(w.tree, "x")); !os.IsNotExist(err) {
		t.Errorf("a write in review reached the host: %v", err)
	}
	t.Run("again", func(t *testing.T) {
		if e := w.sandplan("run", "invocation.ok"); e.code != 0 {
			t.Errorf("a second run: exit code %d\n%s", e.code, e.stderr)
		}
	})
	t.Run("nothing left to do", func(t *testing.T) {
		if e := w.sandplan("plan", "-detailed-exitcode"); e.code != 0 {
			t.Errorf("after the runs the plan is not empty: exit code %d\n%s", e.code, e.stdout)
		}
	})
	t.Run("dispatch", func(t *testing.T) {
		e := w.sandplan("dispatch", "invocation.ok", "test")
		if e.code != 3 || e.stdout != "tested\n" {
			t.Errorf("exit code %d, stdout %q\n%s", e.code, e.stdout, e.stderr)
		}
	})
}

// TestRealTampering changes one thing behind sandplan's back, and then runs: it must refuse, and the
// agent must never have been started.
func TestRealTampering(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, map[string][]string{"job": {"say=ran"}}, nil)
	w.apply()
	const agent, proxy = "invocation.job.agent", "invocation.job.proxy"
	ctx := t.Context()
	for _, c := range []struct {
		name   string
		tamper func(t *testing.T) error
		want   string
	}{
		{"network connect", func(*testing.T) error {
			return w.cli.NetworkConnect(ctx, "bridge", w.container(agent).ID, nil)
		}, "bridge"},
		{"update of the agent", func(*testing.T) error {
			_, err := w.cli.ContainerUpdate(ctx, w.container(agent).ID, container.UpdateConfig{Resources: container.Resources{Memory: 8 << 30, MemorySwap: 8 << 30}})
			return err
		}, "memory"},
		{"network replaced under its name", func(*testing.T) error {
			old, err := w.cli.NetworkInspect(ctx, w.network("invocation.job.network"), network.InspectOptions{})
			if err != nil {
				return err
			}
			if err := w.cli.NetworkRemove(ctx, old.ID); err != nil {
				return err
			}
			_, err = w.cli.NetworkCreate(ctx, old.Name, network.CreateOptions{Driver: old.Driver, IPAM: &old.IPAM, Options: old.Options, Labels: old.Labels})
			return err
		}, "Internal"},
		{"proxy replaced under its name", func(*testing.T) error {
			old, err := w.cli.ContainerInspect(ctx, w.container(proxy).ID)
			if err != nil {
				return err
			}
			if err := w.cli.ContainerRemove(ctx, old.ID, container.RemoveOptions{}); err != nil {
				return err
			}
			old.Config.Cmd = append(old.Config.Cmd[:1:1], "{}")
			_, err = w.cli.ContainerCreate(ctx, old.Config, old.HostConfig, nil, nil, strings.TrimPrefix(old.Name, "/"))
			return err
		}, "proxy"},
		{"shim volume written", func(t *testing.T) error { return w.writeShim(t) }, "sandplan.shim"},
		{"agent started by hand", func(*testing.T) error {
			return w.cli.ContainerStart(ctx, w.container(agent).ID, container.StartOptions{})
		}, "started outside a run"},
		{"pruned", func(*testing.T) error {
			return w.cli.ContainerRemove(ctx, w.container(agent).ID, container.RemoveOptions{})
		}, "missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.tamper(t); err != nil {
				t.Fatal(err)
			}
			e := w.sandplan("run", "invocation.job")
			if e.code != 125 || strings.Contains(e.stdout, "ran") {
				t.Errorf("exit code %d, stdout %q\n%s", e.code, e.stdout, e.stderr)
			}
			if !strings.Contains(e.stderr, c.want) || !strings.HasPrefix(e.last(), "sandplan:") {
				t.Errorf("the refusal does not name %q:\n%s", c.want, e.stderr)
			}
			switch c.name {
			case "pruned":
			case "agent started by hand":
				took := within(t, 7*time.Second, "its first process ends, with nobody at its standard input", w.stopped(w.container(agent).ID))
				t.Logf("ended after %s", took)
			default:
				if w.everRan(w.container(agent).ID) {
					t.Error("the agent was started")
				}
			}
			w.must("apply", "-auto-approve")
			if e := w.sandplan("run", "invocation.job"); e.code != 0 || e.stdout != "ran\n" || !strings.Contains(e.stderr, "Armed again") {
				t.Errorf("after apply: exit code %d, stdout %q\n%s", e.code, e.stdout, e.stderr)
			}
		})
	}
}

func (w *world) network(address string) string {
	w.t.Helper()
	list, err := w.cli.NetworkList(w.t.Context(), network.ListOptions{Filters: w.filter()})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range list {
		if n.Labels["dev.sandplan.address"] == address {
			return n.ID
		}
	}
	w.t.Fatalf("no network at %s", address)
	return ""
}

// writeShim changes one byte of the binary that agents start with, on the host's file system.
func (w *world) writeShim(t *testing.T) error {
	t.Helper()
	agent, err := w.cli.ContainerInspect(t.Context(), w.container("invocation.job.agent").ID)
	if err != nil {
		return err
	}
	for _, m := range agent.HostConfig.Mounts {
		if m.Target != "/.sandplan" {
			continue
		}
		v, err := w.cli.VolumeInspect(t.Context(), m.Source)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(v.Mountpoint, "sandplan"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString("x")
		return joinClose(err, f)
	}
	return fmt.Errorf("the agent has no shim among %d mounts", len(agent.HostConfig.Mounts))
}

func joinClose(err error, f *os.File) error {
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// running starts a run in the background and waits until the agent says that it is up.
func (w *world) running(t *testing.T, address string, options ...string) (cmd *exec.Cmd, stdout, stderr *lockedBuffer) {
	t.Helper()
	cmd = w.command(context.Background(), append(append([]string{"run"}, options...), address)...)
	stdout, stderr = &lockedBuffer{}, &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	within(t, 30*time.Second, "the agent is up", func() bool {
		if bytes.Contains(stderr.bytes(), []byte("sandplan:")) {
			t.Fatalf("it ended early:\n%s", stderr.bytes())
		}
		return bytes.Contains(stdout.bytes(), []byte("up\n"))
	})
	return cmd, stdout, stderr
}

func (w *world) stopped(id string) func() bool {
	return func() bool {
		c, err := w.cli.ContainerInspect(context.Background(), id)
		return err != nil || !c.State.Running
	}
}

// TestRealEnds ends running agents from outside, in every way that can happen.
func TestRealEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, map[string][]string{"job": {"say=up", "sleep=1h"}}, nil)
	w.apply()
	const agent, proxy, address = "invocation.job.agent", "invocation.job.proxy", "invocation.job"
	bg := context.Background()

	t.Run("client killed", func(t *testing.T) {
		cmd, _, _ := w.running(t, address)
		a, p := w.container(agent).ID, w.container(proxy).ID
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		took := within(t, 6*time.Second, "agent and proxy end with their lease", func() bool { return w.stopped(a)() && w.stopped(p)() })
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
	ends := []struct {
		name string
		do   func(t *testing.T, cmd *exec.Cmd) error
		code int
		most time.Duration
	}{
		{"proxy killed", func(*testing.T, *exec.Cmd) error { return w.cli.ContainerKill(bg, w.container(proxy).ID, "KILL") }, 123, 5 * time.Second},
		{"agent killed", func(*testing.T, *exec.Cmd) error { return w.cli.ContainerKill(bg, w.container(agent).ID, "KILL") }, 137, 5 * time.Second},
		{"update while it runs", func(*testing.T, *exec.Cmd) error {
			_, err := w.cli.ContainerUpdate(bg, w.container(agent).ID, container.UpdateConfig{Resources: container.Resources{Memory: 8 << 30, MemorySwap: 8 << 30}})
			return err
		}, 120, 5 * time.Second},
		{"connect while it runs", func(*testing.T, *exec.Cmd) error {
			return w.cli.NetworkConnect(bg, "bridge", w.container(agent).ID, nil)
		}, 120, 5 * time.Second},
		{"proxy restarted", func(*testing.T, *exec.Cmd) error {
			none := 0
			return w.cli.ContainerRestart(bg, w.container(proxy).ID, container.StopOptions{Timeout: &none})
		}, 123, 8 * time.Second},
		{"interrupted", func(_ *testing.T, cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGINT) }, 130, 15 * time.Second},
		{"terminated", func(_ *testing.T, cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGTERM) }, 130, 15 * time.Second},
		{"interrupted twice", func(_ *testing.T, cmd *exec.Cmd) error {
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				return err
			}
			time.Sleep(100 * time.Millisecond)
			return cmd.Process.Signal(syscall.SIGINT)
		}, 130, 5 * time.Second},
	}
	for _, c := range ends {
		t.Run(c.name, func(t *testing.T) {
			// What the one before left to be looked at (drift) is put right first.
			w.must("apply", "-auto-approve")
			cmd, _, stderr := w.running(t, address)
			a, p := w.container(agent).ID, w.container(proxy).ID
			began := time.Now()
			if err := c.do(t, cmd); err != nil {
				t.Fatal(err)
			}
			took := within(t, c.most, "the agent is stopped", w.stopped(a))
			err := cmd.Wait()
			t.Logf("agent stopped after %s, sandplan ended after %s: %v", took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), err)
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d\n%s", code, c.code, stderr.bytes())
			}
			lines := strings.Split(strings.TrimSpace(string(stderr.bytes())), "\n")
			if !strings.HasPrefix(lines[len(lines)-1], "sandplan:") {
				t.Errorf("the last line is %q", lines[len(lines)-1])
			}
			// One that was restarted behind our back has no lease, and ends by itself.
			within(t, 6*time.Second, "the proxy is stopped", w.stopped(p))
		})
	}
}

// TestRealTogether runs several things at once: what belongs to a live run is left alone by all others,
// and nobody else is disturbed.
func TestRealTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, map[string][]string{"held": {"say=up", "sleep=1h"}, "quick": {"say=up"}},
		map[string]string{"held": "  phase = phase.review"})
	w.apply()
	held, stdout, _ := w.running(t, "invocation.held")
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
	if err := held.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _ = held.Wait(); held.ProcessState.ExitCode() != 130 || string(stdout.bytes()) != "up\n" {
		t.Errorf("the run that was held: exit code %d, stdout %q", held.ProcessState.ExitCode(), stdout.bytes())
	}
}

// TestRealSecrets looks for a credential and a prompt wherever the host could see them while the agent has them.
func TestRealSecrets(t *testing.T) {
	t.Parallel()
	const secret, prompt = "c0ffee-secret", "tell nobody"
	w := newWorld(t, 5, map[string][]string{"job": {"cat=/run/sandplan/credentials/token", "say=", "say=up", "stdin", "sleep=1h"}}, nil)
	config, err := os.ReadFile(filepath.Join(w.dir, "sandplan.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(config), "  kind    = \"custom\"", "  kind    = \"custom\"\n  credential \"token\" {\n    source_env = \"LAUNCH_TEST_TOKEN\"\n  }", 1)
	w.write("sandplan.hcl", strings.Replace(text, "  prompt   = \"do it\"\n", "", 1))
	w.write("prompt", prompt)
	w.apply()
	if e := w.sandplan("run", "-prompt="+filepath.Join(w.dir, "prompt"), "invocation.job"); e.code != 125 || !strings.Contains(e.stderr, "LAUNCH_TEST_TOKEN") {
		t.Errorf("without the credential: exit code %d\n%s", e.code, e.stderr)
	}
	t.Run("with it", func(t *testing.T) {
		w.env = []string{"LAUNCH_TEST_TOKEN=" + secret}
		cmd, stdout, stderr := w.running(t, "invocation.job", "-prompt="+filepath.Join(w.dir, "prompt"))
		within(t, 5*time.Second, "the agent has both", func() bool {
			return bytes.Contains(stdout.bytes(), []byte(secret)) && bytes.Contains(stdout.bytes(), []byte(prompt))
		})
		_, raw, err := w.cli.ContainerInspectWithRaw(t.Context(), w.container("invocation.job.agent").ID, false)
		if err != nil {
			t.Fatal(err)
		}
		for what, b := range map[string][]byte{"inspect": raw, "stderr": stderr.bytes()} {
			if bytes.Contains(b, []byte(secret)) || bytes.Contains(b, []byte(prompt)) {
				t.Errorf("%s shows the credential or the prompt", what)
			}
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		records, err := filepath.Glob(filepath.Join(w.dir, "data", "runs", "*", "record.json"))
		if err != nil || len(records) == 0 {
			t.Fatalf("no record: %v", err)
		}
		for _, name := range records {
			if b, err := os.ReadFile(name); err != nil || bytes.Contains(b, []byte(secret)) || bytes.Contains(b, []byte(prompt)) {
				t.Errorf("%s: %v, or it holds a secret", name, err)
			}
		}
	})
}

// TestRealWrite lets an agent write in a clone of this repository: the file reaches the host, and
// belongs to the worktree's owner.
func TestRealWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, map[string][]string{
		"fix":    {"write=/work/made.txt:by the agent", "cat=/work/go.mod"},
		"hook":   {"write=/work/.git/hooks/pre-commit:evil"},
		"review": {"cat=/work/go.mod", "write=/work/made2.txt:x"},
	}, map[string]string{"fix": "  phase = phase.fix", "hook": "  phase = phase.fix"})
	const owner = 4321
	clone := exec.Command("git", "clone", "-q", "--no-hardlinks", "--depth=1", "file://"+repositoryRoot(t), w.tree)
	if out, err := clone.CombinedOutput(); err != nil {
		t.Fatalf("clone: %v\n%s", err, out)
	}
	if err := filepath.WalkDir(w.tree, func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, owner, owner)
	}); err != nil {
		t.Fatal(err)
	}
	w.apply()
	if e := w.sandplan("run", "invocation.fix"); e.code != 0 || !strings.Contains(e.stdout, "module github.com/sandplan/sandplan") {
		t.Fatalf("fix: exit code %d, stdout %q\n%s", e.code, e.stdout, e.stderr)
	}
	made, err := os.Stat(filepath.Join(w.tree, "made.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if st := made.Sys().(*syscall.Stat_t); st.Uid != owner || st.Gid != owner {
		t.Errorf("the file belongs to %d:%d, want %d", st.Uid, st.Gid, owner)
	}
	if text, _ := os.ReadFile(filepath.Join(w.tree, "made.txt")); string(text) != "by the agent\n" {
		t.Errorf("the file holds %q", text)
	}
	if e := w.sandplan("run", "invocation.hook"); e.code != 1 {
		t.Errorf("writing a git hook: exit code %d\n%s", e.code, e.stderr)
	}
	if _, err := os.Stat(filepath.Join(w.tree, ".git/hooks/pre-commit")); err == nil {
		t.Error("a git hook reached the host")
	}
	e := w.sandplan("run", "invocation.review")
	if e.code != 1 || !strings.Contains(e.stderr, "read-only file system") || !strings.Contains(e.stdout, "module ") {
		t.Errorf("review: exit code %d\n%s", e.code, e.stderr)
	}
	if _, err := os.Stat(filepath.Join(w.tree, "made2.txt")); err == nil {
		t.Error("a write in review reached the host")
	}
}

func repositoryRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
