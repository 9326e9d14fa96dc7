package launch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRealLeftovers lets agents leave in their worktree what acts on this machine: the run fails, says
// so, and where the thing is a way to the host, nothing starts until it is gone.
func TestRealLeftovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 9, map[string][]string{
		"clean":   {"write=/work/main.go:package main"},
		"hooks":   {"mkdir=/work/sub/.git/hooks", "write=/work/sub/.git/hooks/post-checkout:evil"},
		"servers": {"write=/work/.mcp.json:{}"},
		"fifo":    {"say=up", "fifo=/work/f", "sleep=1h"},
	}, map[string]string{"clean": "  phase = phase.fix", "hooks": "  phase = phase.fix", "servers": "  phase = phase.fix", "fifo": "  phase = phase.fix"})
	if out, err := exec.Command("git", "init", "-q", w.tree).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := filepath.WalkDir(w.tree, func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, 4321, 4321)
	}); err != nil {
		t.Fatal(err)
	}
	w.apply()
	for _, c := range []struct {
		name   string
		code   int
		text   string
		reason string
	}{
		{"clean", 0, "", "what agents are for"},
		{"hooks", 120, `"sub/.git" is new`, "the user's git runs it"},
		{"servers", 120, `".mcp.json" is new`, "the user's CLI starts what it names"},
		{"clean", 0, "", "what is left by another run is looked at by the user"},
	} {
		e := w.sandplan("run", "invocation."+c.name)
		if e.code != c.code || !strings.Contains(strings.Join(strings.Fields(e.stderr), " "), c.text) {
			t.Errorf("%s: exit code %d, want %d with %q (%s)\n%s", c.name, e.code, c.code, c.text, c.reason, e.stderr)
		}
	}
	if e := w.must("runs", "show", "latest"); !strings.Contains(e.stdout, "invocation.clean") || !strings.Contains(e.stdout, "exit code 0") {
		t.Errorf("runs show latest:\n%s", e.stdout)
	}
	if e := w.must("runs"); strings.Count(e.stdout, "\n") != 4 || !strings.Contains(e.stdout, "exit code 120, decided by sandplan") {
		t.Errorf("runs:\n%s", e.stdout)
	}

	cmd, _, stderr := w.running(t, "invocation.fifo")
	began := time.Now()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 120 || time.Since(began) > 2*soon {
		t.Errorf("a FIFO in mid-run: exit code %d after %s\n%s", code, time.Since(began), stderr.bytes())
	}
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"plan"}, 1}, {[]string{"drift"}, 1}, {[]string{"run", "invocation.clean"}, 125},
	} {
		e := w.sandplan(c.args...)
		if e.code != c.code || !strings.Contains(e.stdout+e.stderr, `"f"`) {
			t.Errorf("%v with a FIFO in the worktree: exit code %d, want %d\n%s%s", c.args, e.code, c.code, e.stdout, e.stderr)
		}
	}
	if err := os.Remove(filepath.Join(w.tree, "f")); err != nil {
		t.Fatal(err)
	}
	if e := w.sandplan("run", "invocation.clean"); e.code != 0 {
		t.Errorf("without the FIFO: exit code %d\n%s", e.code, e.stderr)
	}
	if info, err := os.Lstat(filepath.Join(w.tree, "main.go")); err != nil || info.Sys().(*syscall.Stat_t).Uid != 4321 {
		t.Errorf("what the agent wrote: %v, %v", info, err)
	}
}
