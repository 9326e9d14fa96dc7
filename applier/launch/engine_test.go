package launch_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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
		"slow":      {[]string{"say=begin", "sleep=1h"}, "timeout = \"5s\"", 124, true, "begin\n", "the declared timeout"},
		"deaf":      {[]string{"ignore", "sleep=1h"}, "timeout = \"2s\"", 124, true, "", "an agent that ignores SIGTERM"},
		"loud":      {[]string{"print=2GiB"}, "limits {\n output = \"64KiB\"\n }", 119, true, "", "the output bound"},
		"big":       {[]string{"eat=512MiB"}, "limits {\n memory = \"64MiB\"\n }", 137, true, "", "out of memory"},
		"orphans":   {[]string{"spawn=3", "exit=5"}, "", 5, false, "", "children that outlive the agent"},
		"asked":     {[]string{"abort=15"}, "", 143, false, "", "ended by SIGTERM, and not by sandplan's"},
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
			if len(e.stdout) > 64<<10+512 { // the mark of the cut comes on top
				t.Errorf("%d bytes of output (%s)", len(e.stdout), c.reason)
			}
			if name == "loud" && !strings.Contains(e.stdout, "cut here") {
				t.Errorf("nothing says where the output was cut: it ends with %q", e.stdout[max(0, len(e.stdout)-200):])
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
		within(t, soon, "the agent has both", func() bool {
			return bytes.Contains(stdout.bytes(), []byte(secret)) && bytes.Contains(stdout.bytes(), []byte(prompt))
		})
		inspect := w.tell("inspect", w.container("invocation.job.agent"))
		for what, b := range map[string][]byte{"inspect": []byte(inspect), "stderr": stderr.bytes()} {
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
