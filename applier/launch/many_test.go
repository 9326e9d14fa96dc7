package launch_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestRealMany runs many invocations at once with one command: all of them run at the same moment, each
// has its own prefix, record and end, one that fails disturbs no other, and whoever looks meanwhile sees
// no drift. With SANDPLAN_TEST_FULL they are 20.
func TestRealMany(t *testing.T) {
	t.Parallel()
	many := 4
	if full() {
		many = 20
	}
	steps := map[string][]string{}
	for i := range many {
		steps[fmt.Sprintf("n%d", i)] = []string{"say=up", "await=/work/go", fmt.Sprintf("say=done %d", i)}
	}
	steps["n3"] = []string{"say=up", "exit=7"}
	w := newWorld(t, 13, steps, nil)
	w.apply()
	var addresses []string
	for name := range steps {
		addresses = append(addresses, "invocation."+name)
	}
	cmd := w.command(context.Background(), append([]string{"run", "-lock-timeout=30m", fmt.Sprintf("-parallelism=%d", many)}, addresses...)...)
	stdout, stderr := &lockedBuffer{}, &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	took := within(t, 9*soon, "all agents run", func() bool {
		return bytes.Count(stdout.bytes(), []byte("| up\n")) == many || bytes.Contains(stderr.bytes(), []byte("exit code 125"))
	})
	t.Logf("%d agents run after %s", many, took)
	if e := w.sandplan("drift"); e.code != 0 {
		t.Errorf("drift while they run: exit code %d\n%s", e.code, e.stdout)
	}
	if err := os.WriteFile(filepath.Join(w.tree, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("exit code %d, want that of the one that failed\n%s", code, stderr.bytes())
	}
	for i := range many {
		name, code, done := fmt.Sprintf("invocation.n%d", i), 0, 1
		if i == 3 {
			code, done = 7, 0
		}
		if want := fmt.Sprintf("%s: exit code %d\n", name, code); !bytes.Contains(stderr.bytes(), []byte(want)) {
			t.Errorf("no line %q", want)
		}
		if want := fmt.Sprintf("%s | done %d\n", name, i); bytes.Count(stdout.bytes(), []byte(want)) != done {
			t.Errorf("line %q is there %d times, want %d", want, bytes.Count(stdout.bytes(), []byte(want)), done)
		}
	}
	if t.Failed() {
		t.Logf("%s", stderr.bytes())
	}
	if n := strings.Count(w.must("runs").stdout, "\n"); n != many {
		t.Errorf("%d records, want %d", n, many)
	}
	if e := w.sandplan("plan", "-detailed-exitcode"); e.code != 0 {
		t.Errorf("not all are armed again:\n%s\n%s", e.stdout, stderr.bytes())
	}
}

// full reports whether tests that can be made as large as one likes are to be large.
func full() bool { return os.Getenv("SANDPLAN_TEST_FULL") != "" }

// TestRealTurns runs three invocations of one scope, each again and again: one begins while the
// second runs and the third is armed again, in every order, and none refuses or stops another. Whoever
// looks meanwhile sees no drift.
func TestRealTurns(t *testing.T) {
	t.Parallel()
	const rounds = 3
	w := newWorld(t, 14, map[string][]string{"a": {"say=ran"}, "b": {"say=ran", "sleep=1s"}, "c": {"say=ran", "sleep=2s"}}, nil)
	w.apply()
	ctx, over := context.WithCancel(t.Context())
	var runs, looks sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		runs.Go(func() {
			for i := range rounds {
				if e := w.sandplan("run", "invocation."+name); e.code != 0 || e.stdout != "ran\n" {
					t.Errorf("%s, run %d: exit code %d, stdout %q\n%s", name, i, e.code, e.stdout, e.stderr)
				}
			}
		})
	}
	for _, look := range [][]string{{"drift"}, {"plan", "-detailed-exitcode"}} {
		looks.Go(func() {
			for ctx.Err() == nil {
				if e := w.sandplan(look...); e.code != 0 {
					t.Errorf("%v: exit code %d\n%s%s", look, e.code, e.stdout, e.stderr)
				}
			}
		})
	}
	runs.Wait()
	over()
	looks.Wait()
}
