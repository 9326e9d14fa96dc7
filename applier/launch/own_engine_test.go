package launch_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ownEngine is an engine of the test's own, which can be killed and started again. It has a network
// namespace and a mount namespace of its own, in which its clients must be, too: its bridges and its
// mounts are there.
type ownEngine struct {
	t   *testing.T
	dir string
	pid int // of dockerd
}

// newOwnEngine starts one. Where that is not possible the test fails: skipped, nobody would miss it.
func newOwnEngine(t *testing.T) *ownEngine {
	t.Helper()
	for _, tool := range []string{"dockerd", "unshare", "nsenter", "ip", "iptables"} {
		if _, err := exec.LookPath(tool); err != nil || os.Getuid() != 0 {
			t.Fatalf("an engine of its own needs root and %s (%v): run the tests as root with make test, which installs what is missing", tool, err)
		}
	}
	dir, err := os.MkdirTemp("", "spown") // the path of a unix socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	e := &ownEngine{t: t, dir: dir}
	// Whoever keeps the namespaces outlives the engine.
	keep := exec.Command("unshare", "--net", "--mount", "--propagation", "private", "--", "bash", "-euc", `
		mkdir "$1/cgroup"
		mount --rbind /sys/fs/cgroup "$1/cgroup"
		mount -t sysfs sysfs /sys
		mount --rbind "$1/cgroup" /sys/fs/cgroup
		ip link set lo up
		touch "$1/ready"
		exec sleep infinity`, "keep", dir)
	if err := keep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.kill(syscall.SIGTERM)
		if text, err := os.ReadFile(filepath.Join(dir, "exec/containerd/containerd.pid")); err == nil {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		_ = keep.Process.Kill()
		_ = keep.Wait()
		_ = os.RemoveAll(dir)
	})
	within(t, soon, "the namespaces are there", func() bool { _, err := os.Stat(filepath.Join(dir, "ready")); return err == nil })
	e.pid = keep.Process.Pid
	e.start()
	return e
}

func (e *ownEngine) socket() string { return filepath.Join(e.dir, "s") }

// in is what puts a command into the namespaces.
func (e *ownEngine) in() []string {
	return []string{"nsenter", fmt.Sprintf("--target=%d", e.pid), "--net", "--mount", "--"}
}

// start starts the engine, or starts it again.
func (e *ownEngine) start() {
	e.t.Helper()
	log, err := os.OpenFile(filepath.Join(e.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		e.t.Fatal(err)
	}
	defer log.Close()
	// Its own name servers and search list (of TEST-NET-3, where nobody answers) must reach no container of ours.
	args := append(e.in(), "dockerd", "--dns=203.0.113.66", "--dns-search=engine.example", "--data-root="+filepath.Join(e.dir, "data"), "--exec-root="+filepath.Join(e.dir, "exec"),
		"--pidfile="+filepath.Join(e.dir, "pid"), "--host=unix://"+e.socket())
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	began := time.Now()
	for exec.Command("docker", "--host=unix://"+e.socket(), "version").Run() != nil {
		if time.Since(began) > 2*soon {
			text, _ := os.ReadFile(log.Name())
			e.t.Fatalf("the engine does not answer:\n%s", text[max(0, len(text)-4000):])
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// kill sends a signal to the engine and waits for its end.
func (e *ownEngine) kill(signal syscall.Signal) {
	text, err := os.ReadFile(filepath.Join(e.dir, "pid"))
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || syscall.Kill(pid, signal) != nil {
		return
	}
	for began := time.Now(); isAlive(pid) && time.Since(began) < soon; time.Sleep(20 * time.Millisecond) {
	}
	_ = os.Remove(filepath.Join(e.dir, "pid"))
}

// isAlive reports whether a process runs. One that has ended and was not waited for yet does not.
func isAlive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(state, []byte("Z"))
}

// listen stands in for the vendor in the namespaces of the engine.
func (e *ownEngine) listen(address string) {
	e.t.Helper()
	failed := make(chan error, 1)
	onOwnThread(func() {
		ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", e.pid))
		if err == nil {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
			ns.Close()
		}
		var fd int
		if err == nil {
			fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		}
		failed <- err
		if err != nil {
			return
		}
		failed <- serve(e.t, fd, address)
	})
	for range 2 {
		if err := <-failed; err != nil {
			e.t.Fatal(err)
		}
	}
}

// serve accepts connections on a socket of another namespace, and closes them.
func serve(t *testing.T, fd int, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	at := unix.SockaddrInet4{Port: n, Addr: [4]byte(net.ParseIP(host).To4())}
	if err := unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_FREEBIND, 1); err != nil {
		return err
	}
	if err := unix.Bind(fd, &at); err != nil {
		return err
	}
	if err := unix.Listen(fd, 64); err != nil {
		return err
	}
	ln, err := net.FileListener(os.NewFile(uintptr(fd), "vendor"))
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return nil
}

// TestRealEngineKilled kills the engine itself while an agent runs: the agent ends with its lease, the
// run ends and says so, and when there is an engine again it starts nothing, and the next run takes over.
func TestRealEngineKilled(t *testing.T) {
	t.Parallel()
	e := newOwnEngine(t)
	w := newWorldOn(t, e, 12, map[string][]string{"job": {"say=up", "sleep=1h"}, "short": {"say=ran"}}, nil)
	w.apply()
	cmd, _, stderr := w.running(t, "invocation.job")
	agent, proxy := w.pid("invocation.job.agent"), w.pid("invocation.job.proxy")
	began := time.Now()
	e.kill(syscall.SIGKILL)
	within(t, soon, "agent and proxy end with their lease", func() bool { return !isAlive(agent) && !isAlive(proxy) })
	t.Logf("agent and proxy ended %s after kill -9 of the engine", time.Since(began).Round(time.Millisecond))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(3 * soon):
		t.Fatalf("the run does not end without an engine:\n%s", stderr.bytes())
	}
	t.Logf("the run ended after %s", time.Since(began).Round(time.Millisecond))
	if code := cmd.ProcessState.ExitCode(); code != 122 {
		t.Errorf("exit code %d, want 122\n%s", code, stderr.bytes())
	}
	if e := w.sandplan("run", "invocation.short"); e.code != 125 || !strings.HasPrefix(e.last(), "sandplan:") {
		t.Errorf("a run without an engine: exit code %d\n%s", e.code, e.stderr)
	}
	e.start()
	if left := w.tell("ps", "-q"); left != "" {
		t.Errorf("the engine came back and runs %s", left)
	}
	if p := w.sandplan("plan"); p.code != 0 || !strings.Contains(p.stdout, "has run") {
		t.Errorf("plan afterwards: exit code %d\n%s%s", p.code, p.stdout, p.stderr)
	}
	if p := w.sandplan("run", "invocation.short"); p.code != 0 || p.stdout != "ran\n" {
		t.Errorf("another invocation: exit code %d\n%s", p.code, p.stderr)
	}
	cmd, _, stderr = w.running(t, "invocation.job")
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("the invocation itself, again: exit code %d\n%s", code, stderr.bytes())
	}
}

// pid is the process, as this machine sees it, of the container at an address.
func (w *world) pid(address string) int {
	w.t.Helper()
	pid, err := strconv.Atoi(w.tell("inspect", "-f", "{{.State.Pid}}", w.container(address)))
	if err != nil || pid == 0 {
		w.t.Fatalf("%s has no process: %d, %v", address, pid, err)
	}
	return pid
}
