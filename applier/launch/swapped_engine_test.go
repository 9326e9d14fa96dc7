package launch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRealWorktreeSwapped puts something else in the worktree's place while the agent runs. The agent goes
// on in what was mounted, wherever that is by now, and nobody who looks over its worktree would look there:
// the agent is stopped. What has come in its place is not touched.
func TestRealWorktreeSwapped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 16, map[string][]string{"job": {"say=up", "sleep=1h"}}, nil)
	tree := filepath.Join(t.TempDir(), "tree")
	evil := t.TempDir()
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(evil, "host"), []byte("the host's"), 0o644); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(w.dir, "sandplan.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	w.write("sandplan.hcl", strings.Replace(string(config), w.tree, tree, 1))
	w.apply()
	for _, c := range []struct {
		name string
		swap func() error
	}{
		{"a symlink", func() error { return os.Symlink(evil, tree) }},
		{"another directory", func() error { return os.Mkdir(tree, 0o755) }},
		{"nothing", func() error { return nil }},
		{"a file", func() error { return os.WriteFile(tree, nil, 0o644) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd, _, stderr := w.running(t, "invocation.job")
			agent := w.container("invocation.job.agent")
			if err := errors.Join(os.Rename(tree, tree+".moved"), c.swap()); err != nil {
				t.Fatal(err)
			}
			took := within(t, soon, "the agent is stopped", w.stopped(agent))
			_ = cmd.Wait()
			t.Logf("stopped after %s", took)
			if code := cmd.ProcessState.ExitCode(); code != 120 {
				t.Errorf("exit code %d, want 120\n%s", code, stderr.bytes())
			}
			// Who sees it first says so in words of its own: the look over the worktree, the look at what is
			// mounted, or the first process inside, whose list of mounts names the new path.
			lines := strings.Split(strings.TrimSpace(string(stderr.bytes())), "\n")
			last := lines[len(lines)-1]
			t.Logf("%s", last)
			if !strings.HasPrefix(last, "sandplan: ") {
				t.Errorf("the last line is %q", last)
			}
			if c.name == "another directory" {
				return // a worktree like any other, for the next run
			}
			if e := w.sandplan("run", "invocation.job"); e.code != 125 {
				t.Errorf("the next run: exit code %d\n%s", e.code, e.stderr)
			}
		})
		if err := errors.Join(os.RemoveAll(tree), os.Rename(tree+".moved", tree)); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(evil, "host")); err != nil || string(text) != "the host's" {
		t.Errorf("what the link leads to: %q, %v", text, err)
	}
}
