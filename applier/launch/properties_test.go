package launch_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

const probeImage = "sandplan-launch-test/probe:1"

// TestRealProperties runs a program that tries everything as an agent, under its exact specification, and
// looks at the host for what comes of it: what an engine shows of a container is no proof of anything.
func TestRealProperties(t *testing.T) {
	t.Parallel()
	const pids = 40
	word := fmt.Sprintf("word%d", time.Now().UnixNano())
	host := listenEverywhere(t, word)
	w := newWorld(t, 15, map[string][]string{"job": {
		"-hosts=" + strings.Join(host.addresses, ","), "-word=" + word, fmt.Sprintf("-tcp=%d", host.tcp), fmt.Sprintf("-udp=%d", host.udp)}},
		map[string]string{"job": fmt.Sprintf("  limits {\n    memory = \"96MiB\"\n    pids   = %d\n  }\n", pids)})
	w.useProbe(t)
	if err := os.MkdirAll(filepath.Join(w.tree, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.apply()
	cmd, stdout, stderr := w.running(t, "invocation.job")
	agent := w.container("invocation.job.agent")

	within(t, 3*time.Minute, "as many processes as there may be", func() bool { return strings.Contains(string(stdout.bytes()), "\nprocesses: ") })
	inside := w.cgroup(t, agent)
	routes := w.proc(t, w.container("invocation.job.proxy"), "net/route")
	if err := os.WriteFile(filepath.Join(w.tree, "counted"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	within(t, 3*time.Minute, "the probe is done", func() bool { return strings.Contains(string(stdout.bytes()), "\ndone: yes\n") })
	looks := func(result string) int { return strings.Count(string(stdout.bytes()), "mounted: "+result) }
	earlier := 0
	log := w.tell("inspect", "-f", "{{.LogPath}}", agent)
	paused(t, cmd, func() {
		w.mountBelow(t, filepath.Join(w.tree, "sub"))
		earlier = looksIn(t, log)
		for began := time.Now(); looksIn(t, log) < earlier+2 && time.Since(began) < 2*time.Second; {
			time.Sleep(10 * time.Millisecond)
		}
	})
	_ = cmd.Wait()
	got := told(string(stdout.bytes()))
	t.Logf("%d attempts", len(got))

	t.Run("host isolation", func(t *testing.T) { host.requireSilence(t, got) })
	t.Run("DNS", func(t *testing.T) { host.requireNoQuery(t, got) })
	t.Run("IPv6", func(t *testing.T) {
		for _, line := range strings.Split(got["ipv6"], " | ") {
			if line != "" && !strings.HasSuffix(line, " lo") && !strings.Contains(got["ipv6"], "no such file") {
				t.Errorf("an address outside of loopback: %s", line)
			}
		}
		requireRefused(t, got, "tcp6 outside", "udp6 all nodes")
	})
	t.Run("default route", func(t *testing.T) {
		requireRoutes(t, got["routes"])
		// The proxy's own leads out by the uplink, whose gateway is the host.
		if defaults := regexp.MustCompile(`(?m)^\w+\s+00000000\s+(\w+)`).FindAllStringSubmatch(routes, -1); len(defaults) != 1 || defaults[0][1] != "01F0E80A" {
			t.Errorf("the proxy's routes are\n%s", routes)
		}
	})
	t.Run("mounts", func(t *testing.T) {
		requireRefused(t, got, "write /written", "write /work/written", "write /work/.git/written", "write /.sandplan/written",
			"write /proc/sys/kernel/hostname", "write /sys/written", "execute /tmp/written")
		if got["write /tmp/written"] != "done" {
			t.Errorf("writing into /tmp: %s", got["write /tmp/written"])
		}
		// What is mounted below the worktree while the agent runs is not there for it, and ends the run.
		if n := looks(""); got["below the worktree"] != "[]" || n < earlier+2 || n != looks("[]") {
			t.Errorf("below the worktree is %s, after something was mounted there %s; %d looks before it, %d later", got["below the worktree"], got["mounted"], earlier, n-earlier)
		}
		if code := cmd.ProcessState.ExitCode(); code != 120 || !strings.Contains(string(stderr.bytes()), "mount point") {
			t.Errorf("after something was mounted there: exit code %d\n%s", code, stderr.bytes())
		}
		if _, err := os.Stat(filepath.Join(w.tree, "written")); err == nil {
			t.Error("a file reached the host")
		}
	})
	t.Run("capabilities", func(t *testing.T) {
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
			if got["status "+set] != "0000000000000000" {
				t.Errorf("%s is %s", set, got["status "+set])
			}
		}
		requireRefused(t, got, "cap setuid", "cap chown", "cap mknod", "cap sethostname", "packet socket", "raw socket")
	})
	t.Run("seccomp", func(t *testing.T) {
		if got["status Seccomp"] != "2" || got["status NoNewPrivs"] != "1" {
			t.Errorf("seccomp mode %s, no_new_privs %s", got["status Seccomp"], got["status NoNewPrivs"])
		}
		requireRefused(t, got, "set-id", "vsock", "crypto socket")
		n := 0
		for check := range got {
			if strings.HasPrefix(check, "call ") {
				n++
				requireRefused(t, got, check)
			}
		}
		if n < 15 {
			t.Errorf("only %d calls were tried", n)
		}
	})
	t.Run("processes", func(t *testing.T) {
		n, why, _ := strings.Cut(got["processes"], ", then ")
		if made, err := strconv.Atoi(n); err != nil || made < 5 || made >= pids || !strings.Contains(why, "temporarily unavailable") {
			t.Errorf("the probe could start %s", got["processes"])
		}
		if inside.pids == 0 || inside.pids > pids || inside.pidsMax != pids {
			t.Errorf("the kernel counts %d processes of %d, declared are %d", inside.pids, inside.pidsMax, pids)
		}
	})
	t.Run("memory", func(t *testing.T) {
		if inside.memoryMax != 96<<20 || inside.memory > 96<<20 {
			t.Errorf("the kernel counts %d bytes of %d, declared are %d", inside.memory, inside.memoryMax, 96<<20)
		}
	})
}

// paused does something while sandplan stands still, for less time than a lease lasts: it would end the run as soon as
// it sees what is done, and perhaps before the agent has seen it.
func paused(t *testing.T, sandplan *exec.Cmd, do func()) {
	t.Helper()
	defer func() {
		if err := sandplan.Process.Signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}()
	if err := sandplan.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	do()
}

// looksIn is how often a probe has told what it saw mounted, by the engine's own log of it.
func looksIn(t *testing.T, log string) int {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), `"mounted: `)
}

// mountBelow mounts a file system with a file on a directory of the host, until the end of the test.
func (w *world) mountBelow(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// useProbe makes the probe the agent's program.
func (w *world) useProbe(t *testing.T) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "probe")
	build := exec.Command("go", "build", "-o", program, "./testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	img, err := scratch.Image(scratch.Spec{Arch: runtime.GOARCH, Entries: []scratch.Entry{{Path: "/agent", Mode: 0o755, Source: program}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scratch.Load(t.Context(), dockertest.Socket(t), probeImage, img); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "sandplan.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	w.write("sandplan.hcl", strings.ReplaceAll(string(text), agentImage, probeImage))
}

// told are the attempts of a probe with what came of each.
func told(out string) map[string]string {
	got := map[string]string{}
	for _, line := range strings.Split(out, "\n") {
		if check, result, ok := strings.Cut(line, ": "); ok {
			got[check] = result
		}
	}
	return got
}

func requireRefused(t *testing.T, got map[string]string, checks ...string) {
	t.Helper()
	for _, check := range checks {
		if got[check] == "" || got[check] == "done" {
			t.Errorf("%s: %q", check, got[check])
		}
	}
}

// requireRoutes: the one route of an agent leads to its own network; a default route that the engine adds
// leads to an address that nobody has, which the proof from the inside makes sure of.
func requireRoutes(t *testing.T, table string) {
	t.Helper()
	lines := strings.Split(table, " | ")
	if len(lines) < 2 {
		t.Fatalf("routes %q", table)
	}
	for _, line := range lines[1:] {
		f := strings.Fields(line) // interface, destination, gateway, …
		if f[0] != "eth0" {
			t.Errorf("a route over %s: %s", f[0], line)
		}
		if f[1] == "00000000" {
			t.Logf("a default route by way of %s, which nobody has", f[2])
			if !strings.HasSuffix(f[2], "E80A") || strings.HasPrefix(f[2], "02") { // 10.232, and not the proxy
				t.Errorf("a default route by way of %s", f[2])
			}
		}
	}
}

// usage is what the kernel counts of a container.
type usage struct{ pids, pidsMax, memory, memoryMax int }

// cgroup reads it where the kernel keeps it, with either version of control groups.
func (w *world) cgroup(t *testing.T, id string) usage {
	t.Helper()
	groups := w.proc(t, id, "cgroup")
	read := func(controller, v1, v2 string) int {
		for _, line := range strings.Split(groups, "\n") {
			f := strings.SplitN(line, ":", 3)
			switch {
			case len(f) == 3 && f[1] == controller:
				return number(t, filepath.Join("/sys/fs/cgroup", controller, f[2], v1))
			case len(f) == 3 && f[0] == "0" && f[1] == "" && v2 != "":
				if n := number(t, filepath.Join("/sys/fs/cgroup", f[2], v2)); n > 0 {
					return n
				}
			}
		}
		t.Errorf("no control group for %s in %q", controller, groups)
		return 0
	}
	return usage{pids: read("pids", "pids.current", "pids.current"), pidsMax: read("pids", "pids.max", "pids.max"),
		memory: read("memory", "memory.usage_in_bytes", "memory.current"), memoryMax: read("memory", "memory.limit_in_bytes", "memory.max")}
}

func number(t *testing.T, name string) int {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return n
}

// proc is a file that the kernel shows of a container's first process.
func (w *world) proc(t *testing.T, id, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", w.tell("inspect", "-f", "{{.State.Pid}}", id), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
