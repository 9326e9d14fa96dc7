package launch_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/testfixtures/tlsserver"
)

// TestRealProxyKilled kills the proxy with SIGKILL at moments spread over a run, while its agent opens tunnel
// after tunnel: the agent is stopped, the run ends with a code of its own, and the egress log in the record
// has every tunnel that the agent got an answer through.
func TestRealProxyKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 17, map[string][]string{"job": {"say=up", "call=llm.test:8444"}}, nil)
	address := "10.242.16.1:8444"
	config, err := os.ReadFile(filepath.Join(w.dir, "sandplan.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	w.write("sandplan.hcl", strings.Replace(string(config), "port      = 8443", "port      = 8444", 1))
	answer(t, address)
	w.apply()
	const agent, proxy = "invocation.job.agent", "invocation.job.proxy"
	for _, after := range []time.Duration{0, 30 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, 700 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			w.must("apply", "-auto-approve")
			before := w.records(t)
			cmd, stdout, stderr := w.running(t, "invocation.job")
			a, p := w.container(agent), w.container(proxy)
			pid, err := strconv.Atoi(w.tell("inspect", "-f", "{{.State.Pid}}", p))
			if err != nil || pid == 0 {
				t.Fatalf("the proxy has no process: %d, %v", pid, err)
			}
			within(t, soon, "the agent gets answers", func() bool { return bytes.Contains(stdout.bytes(), []byte("answer 1\n")) })
			time.Sleep(after)
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			took := within(t, soon, "the agent is stopped", w.stopped(a))
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 123 {
				t.Errorf("exit code %d, want 123\n%s", code, stderr.bytes())
			}
			var record string
			for _, r := range w.records(t) {
				if !strings.Contains(strings.Join(before, " "), r) {
					record = r
				}
			}
			answers, allowed := bytes.Count(stdout.bytes(), []byte("answer ")), w.allowed(t, record)
			t.Logf("stopped after %s; %d answers, %d tunnels in the log", took.Round(time.Millisecond), answers, allowed)
			if answers == 0 || allowed < answers {
				t.Errorf("the agent got %d answers, and the log has %d tunnels", answers, allowed)
			}
		})
	}
}

// TestRealProxyKilledEarly kills the proxy as it starts: the agent never gets its prompt, and the next run goes
// well.
func TestRealProxyKilledEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 18, map[string][]string{"job": {"say=up", "await=/work/go"}}, nil)
	w.apply()
	proxy := w.container("invocation.job.proxy")
	cmd := w.command(t.Context(), "run", "invocation.job")
	stdout, stderr := &lockedBuffer{}, &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The engine shows the process of a container before that executes anything: the earliest moment there is.
	pid := 0
	within(t, soon, "the proxy runs", func() bool {
		pid, _ = strconv.Atoi(w.tell("inspect", "-f", "{{.State.Pid}}", proxy))
		return pid != 0
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	up := bytes.Contains(stdout.bytes(), []byte("up")) // on a busy machine this test may come late
	if code := cmd.ProcessState.ExitCode(); code != 123 && (up || code != 125 && code != 121) {
		t.Errorf("exit code %d, stdout %q\n%s", code, stdout.bytes(), stderr.bytes())
	}
	if err := os.WriteFile(filepath.Join(w.tree, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if e := w.sandplan("run", "invocation.job"); e.code != 0 || e.stdout != "up\n" {
		t.Errorf("the next run: exit code %d, stdout %q\n%s", e.code, e.stdout, e.stderr)
	}
}

// answer stands in for a vendor that says one byte, behind TLS.
func answer(t *testing.T, address string) {
	t.Helper()
	authority, err := tlsserver.Load(filepath.Join(t.TempDir(), "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := authority.Issue([]string{"llm.test"})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := tlsserver.Listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	ln := tls.NewListener(plain, &tls.Config{Certificates: []tls.Certificate{certificate}})
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = c.SetDeadline(time.Now().Add(soon))
				_, _ = c.Write([]byte("x"))
				_ = c.Close()
			}()
		}
	}()
}

// records are the directories of the records so far.
func (w *world) records(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(w.dir, "data", "runs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// allowed counts the tunnels in a record's egress log, of which every line must be whole and none missing
// but perhaps the last.
func (w *world) allowed(t *testing.T, record string) int {
	t.Helper()
	f, err := os.Open(filepath.Join(record, "egress.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, lines := 0, bufio.NewScanner(f)
	for i := int64(1); lines.Scan(); i++ {
		var line struct {
			Seq                   int64
			Event, Decision, Host string
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Seq != i {
			t.Errorf("line %d of the log: %v: %s", i, err, lines.Bytes())
		}
		if line.Event == "decision" && line.Decision == "allow" && line.Host == "llm.test" {
			n++
		}
	}
	return n
}
