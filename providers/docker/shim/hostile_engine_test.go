package shim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// TestHostileAgent: what an agent tries that has read all of this. Each answer is the kernel's; what must not have
// happened is looked for on the host, too.
func TestHostileAgent(t *testing.T) {
	l := engineLab(t)
	b := agentBox(t, l)
	config := filepath.Join(b.worktree, ".git", "config")
	if err := os.WriteFile(config, []byte("[core]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(config, testUID, testUID); err != nil {
		t.Fatal(err)
	}
	b.shim.Argv = []string{"/bin/hostile"}
	o := b.run(t, l)
	t.Log("\n" + o.out)
	if o.exit == nil || o.exit.By != wire.ByAgent || o.exit.Code != 0 {
		t.Fatalf("exit %+v, out %q, err %q", o.exit, o.out, o.err)
	}
	for _, c := range []struct{ line, reason string }{
		{"a second name for a read-only file: EXDEV", "a name in another mount would be written through that one"},
		{"a file without a name, linked into .git: EROFS EROFS", "it has no name that was refused before"},
		{"a read-only file, opened again by its descriptor: EROFS EACCES EACCES", "the descriptor of a file leads to the file"},
		{".git exchanged with a directory: EBUSY EBUSY", "what is mounted on a name goes with it, or away"},
		{`sandplan's own program, changed in memory: EACCES, the file begins with "\x7fELF" (DONE)`, "every agent on the engine executes these pages"},
		{"capabilities and flags of files: EPERM EPERM EPERM", "the host executes, or cannot remove, what is left in a worktree"},
		{"process 1, by its descriptor and with all others: DONE DONE ESRCH, process 1 lives: true", "signals from inside do not reach it"},
		{"the machine: restart, clock, log: EPERM EPERM EPERM", "they are the host's"},
		{"ahead of all other processes: EPERM EACCES", "the guard has the same processors"},
		{"the proxy's address as the sender's: transparent EPERM, bound ", "the proxy may talk to everybody"},
		{"sandplan's own program, started again: sandplan: shim: argv []: there is no command (exit status 125); " +
			"sandplan: shim: it runs only as the first process of a container (exit status 125)", "it kills all that it can see"},
		{"a file that nobody else can open: EPERM", "whoever opens a leased file waits for a minute, on the host as well"},
	} {
		if !strings.Contains("\n"+o.out, "\n"+c.line) {
			t.Errorf("missing %q (%s)", c.line, c.reason)
		}
	}
	if strings.Contains(o.out, "sent DONE") {
		t.Error("a datagram with the proxy's address was sent")
	}
	if text, err := os.ReadFile(config); err != nil || string(text) != "[core]\n" {
		t.Errorf("the repository's configuration is %q (%v)", text, err)
	}
	if left, err := os.ReadDir(filepath.Dir(config)); err != nil || len(left) != 1 {
		t.Errorf("the repository holds %v (%v)", left, err)
	}
}

// TestGuardIsNotStarved: whatever the processes of the command do with the processors, its time has an end.
func TestGuardIsNotStarved(t *testing.T) {
	l := engineLab(t)
	b := agentBox(t, l)
	b.shim.Argv, b.shim.Bounds.TimeoutMS = []string{"/bin/hostile", "spin"}, 5000
	o := b.run(t, l)
	if o.exit == nil || o.exit.By != wire.ByShim || o.exit.Cause != wire.CauseTimeout || o.code != 124 {
		t.Errorf("exit %+v, code %d, out %q, err %q", o.exit, o.code, o.out, o.err)
	}
}
