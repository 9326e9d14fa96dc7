package launch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRealTampering changes one thing behind sandplan's back, and then runs: it must refuse, and the
// agent must never have been started.
func TestRealTampering(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, map[string][]string{"job": {"say=ran"}}, nil)
	w.apply()
	const agent, proxy = "invocation.job.agent", "invocation.job.proxy"
	for _, c := range []struct {
		name   string
		tamper func(t *testing.T)
		want   string
	}{
		{"network connect", func(*testing.T) { w.tell("network", "connect", "bridge", w.container(agent)) }, "bridge"},
		{"update of the agent", func(*testing.T) { w.tell("update", "--memory", "8g", "--memory-swap", "8g", w.container(agent)) }, "memory"},
		{"network replaced under its name", w.replaceNetwork, "Internal"},
		{"proxy replaced under its name", w.replaceProxy, "proxy"},
		{"shim volume written", func(t *testing.T) { w.writeShim(t) }, "sandplan.shim"},
		{"agent started by hand", func(t *testing.T) { w.startByHand(t, agent) }, "started outside a run"},
		{"pruned", func(t *testing.T) {
			within(t, soon, "what was started by hand ends", w.stopped(w.container(agent)))
			w.tell("rm", w.container(agent))
		}, "missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.tamper(t)
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
				w.signal(t, agent, syscall.SIGCONT)
				took := within(t, soon, "its first process ends, with nobody at its standard input", w.stopped(w.container(agent)))
				t.Logf("ended after %s", took)
			default:
				if w.everRan(w.container(agent)) {
					t.Error("the agent was started")
				}
			}
			w.must("apply", "-auto-approve")
			if e := w.sandplan("run", "invocation.job"); e.code != 0 || e.stdout != "ran\n" || !strings.Contains(e.stderr, "Armed again") {
				t.Errorf("after apply: exit code %d, stdout %q\n%s", e.code, e.stdout, e.stderr)
			}
		})
	}
	t.Run("docker cp", func(t *testing.T) {
		for _, address := range []string{agent, proxy} {
			for _, place := range []string{"/", "/.sandplan/", "/work/", "/tmp/", "/run/sandplan/"} {
				if _, err := w.docker("cp", filepath.Join(w.dir, "sandplan.hcl"), w.container(address)+":"+place); err == nil {
					t.Errorf("%s can be written to at %s", address, place)
				}
			}
		}
		if e := w.sandplan("drift"); e.code != 0 {
			t.Errorf("drift after copies that were refused: exit code %d\n%s", e.code, e.stdout)
		}
	})
	t.Run("run -apply", func(t *testing.T) {
		w.tell("network", "connect", "bridge", w.container(agent))
		if e := w.sandplan("run", "-apply", "invocation.job"); e.code != 0 || e.stdout != "ran\n" {
			t.Errorf("exit code %d, stdout %q\n%s", e.code, e.stdout, e.stderr)
		}
	})
}

// startByHand starts a container, and holds its first process: with nobody at its standard input it would end by itself
// within seconds, and on a slow machine before a run has looked at it.
func (w *world) startByHand(t *testing.T, address string) {
	t.Helper()
	id := w.container(address)
	within(t, soon, "it runs, and is held", func() bool {
		w.tell("start", id)
		w.signal(t, address, syscall.SIGSTOP)
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.firstProcess(t, address)))
		return err == nil && bytes.Contains(stat, []byte(") T "))
	})
}

// signal sends a signal to the first process of a container, if it has one.
func (w *world) signal(t *testing.T, address string, signal syscall.Signal) {
	t.Helper()
	pid := w.firstProcess(t, address)
	if pid == 0 {
		return
	}
	if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
}

// firstProcess is that of a container, 0 if it does not run.
func (w *world) firstProcess(t *testing.T, address string) int {
	t.Helper()
	pid, err := strconv.Atoi(w.tell("inspect", "-f", "{{.State.Pid}}", w.container(address)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// labels are those of an object, as flags that give another one the same.
func (w *world) labels(of ...string) []string {
	w.t.Helper()
	var labels map[string]string
	if err := json.Unmarshal([]byte(w.tell(of...)), &labels); err != nil {
		w.t.Fatal(err)
	}
	var flags []string
	for k, v := range labels {
		flags = append(flags, "--label", k+"="+v)
	}
	return flags
}

// replaceNetwork puts a network that is not internal in the place of the agent's, with its name, its
// addresses and its labels.
func (w *world) replaceNetwork(*testing.T) {
	w.t.Helper()
	id := w.tell("network", "ls", "-q", "--filter", w.label("project", w.project), "--filter", w.label("address", "invocation.job.network"))
	name := w.tell("network", "inspect", "-f", "{{.Name}}", id)
	flags := append(w.labels("network", "inspect", "-f", "{{json .Labels}}", id), "--subnet",
		w.tell("network", "inspect", "-f", "{{(index .IPAM.Config 0).Subnet}}", id))
	w.tell("network", "rm", id)
	w.tell(append(append([]string{"network", "create"}, flags...), name)...)
}

// replaceProxy puts another container in the place of the proxy, with its name, image and labels.
func (w *world) replaceProxy(*testing.T) {
	w.t.Helper()
	id := w.container("invocation.job.proxy")
	name := w.tell("inspect", "-f", "{{.Name}}", id)
	image := w.tell("inspect", "-f", "{{.Image}}", id)
	flags := w.labels("inspect", "-f", "{{json .Config.Labels}}", id)
	w.tell("rm", id)
	w.tell(append(append([]string{"create", "--name", strings.TrimPrefix(name, "/")}, flags...), image, "egress", "{}")...)
}

// shimBinary is the path, on the host, of the program that agents start with.
func (w *world) shimBinary() string {
	w.t.Helper()
	volume := w.tell("inspect", "-f", `{{range .Mounts}}{{if eq .Destination "/.sandplan"}}{{.Name}}{{end}}{{end}}`, w.container("invocation.job.agent"))
	return filepath.Join(w.tell("volume", "inspect", "-f", "{{.Mountpoint}}", volume), "sandplan")
}

// writeShim adds one byte to that program.
func (w *world) writeShim(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(w.shimBinary(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("x")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestRealSwap swaps the program that the agent starts with at every moment of a run's start: either the
// gate refuses, or the proof fails, and no swapped program ever gets the prompt.
func TestRealSwap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 7, map[string][]string{"job": {"await=/work/seen"}}, nil)
	w.apply()
	good, err := os.ReadFile(w.shimBinary())
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for wait := 0; wait <= 600; wait += 150 {
		// While others start containers a run reads the program again, and may be over before anybody has looked at
		// what got the prompt. That tells nothing of this moment, and it is tried once more.
		const attempts = 10
		code, seen := 0, false
		for try := 1; !seen; try++ {
			if try > attempts {
				t.Fatalf("swapped %d ms after the proxy was ready: %d times it was over before it could be looked at", wait, attempts)
			}
			code, seen = w.swap(t, good, time.Duration(wait)*time.Millisecond)
			w.must("apply", "-auto-approve")
		}
		if code != 0 {
			refused++
		}
	}
	t.Logf("%d of 5 were refused", refused)
	if refused == 0 {
		t.Error("no swap came early enough to matter")
	}
}

// swap runs the job, swaps its program some time after the proxy is ready, and returns how the run ended. What got the
// prompt must be the good one; that was not seen when the run was over before.
func (w *world) swap(t *testing.T, good []byte, wait time.Duration) (code int, seen bool) {
	t.Helper()
	binary, await := w.shimBinary(), filepath.Join(w.tree, "seen")
	// A file of its own: the running one is busy, and whoever swaps it does not write into it.
	swapped := binary + ".swapped"
	if err := errors.Join(os.RemoveAll(await), os.WriteFile(swapped, append(good[:len(good):len(good)], 'x'), 0o555), os.Chmod(swapped, 0o555)); err != nil {
		t.Fatal(err)
	}
	cmd := w.command(t.Context(), "run", "invocation.job")
	stderr := &lockedBuffer{}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := func(text string) func() bool {
		return func() bool {
			return bytes.Contains(stderr.bytes(), []byte(text)) || bytes.Contains(stderr.bytes(), []byte("sandplan:"))
		}
	}
	within(t, soon, "the proxy is ready", said("Proxy is ready"))
	time.Sleep(wait)
	if err := os.Rename(swapped, binary); err != nil {
		t.Fatal(err)
	}
	within(t, soon, "the agent runs, or not", said("Running"))
	seen = true
	if bytes.Contains(stderr.bytes(), []byte("Running")) {
		running, err := w.program("invocation.job.agent")
		if seen = err == nil; seen && !bytes.Equal(running, good) {
			t.Errorf("swapped %s after the proxy was ready: another program got the prompt\n%s", wait, stderr.bytes())
		}
	}
	if err := os.WriteFile(await, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	switch code = cmd.ProcessState.ExitCode(); {
	case code == 125, code == 121, code == 120:
	case code == 0 && seen: // swapped when the good one ran already
	default:
		t.Errorf("swapped %s after the proxy was ready: exit code %d, its program was looked at: %v\n%s", wait, code, seen, stderr.bytes())
	}
	return code, seen
}

// program is what the first process of a running container executes.
func (w *world) program(address string) ([]byte, error) {
	w.t.Helper()
	pid, err := w.docker("inspect", "-f", "{{.State.Pid}}", w.find(address))
	if err != nil {
		return nil, err
	}
	return os.ReadFile("/proc/" + pid + "/exe")
}
