package launch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestRealCrash kills sandplan after each call to the engine that a run makes, as kill -9 does: whatever
// it had started ends with its lease, and the next run takes over, arms again what has to be, and works.
// SANDPLAN_TEST_FULL tries every call, otherwise it is every eighth.
func TestRealCrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6, map[string][]string{"job": {"say=ran"}}, nil)
	w.bin = filepath.Join(t.TempDir(), "sandplan")
	build := exec.Command("go", "build", "-tags", "sandplantest", "-o", w.bin, "github.com/sandplan/sandplan/cmd/sandplan")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	w.apply()
	count := filepath.Join(t.TempDir(), "calls")
	w.env = []string{"SANDPLAN_TEST_CALLS=" + count}
	w.must("run", "invocation.job")
	const least = 20 // of every run, however fast
	calls := callsMade(t, count)
	if calls < least {
		t.Fatalf("a run makes %d calls", calls)
	}
	step := 8
	if full() {
		step = 1
	}
	t.Logf("a run makes %d calls", calls)
	died := 0
	for n := 1; n <= calls; n += step {
		w.env = []string{"SANDPLAN_TEST_KILL_AT=" + strconv.Itoa(n), "SANDPLAN_TEST_CALLS=" + count}
		e := w.sandplan("run", "invocation.job")
		w.env = nil
		if e.code == -1 {
			died++
			// Nobody writes to its log any more: who follows it is told so, and does not wait.
			l := w.sandplan("logs", "-follow", "invocation.job")
			if told := strings.Join(strings.Fields(l.stderr), " "); l.code != 0 && (l.code != 1 || !strings.Contains(told, "log is not whole") && !strings.Contains(told, "has no log")) {
				t.Errorf("killed after call %d: logs -follow: exit code %d\n%s", n, l.code, l.stderr)
			}
		} else if made := callsMade(t, count); e.code != 0 || made >= n {
			t.Errorf("it ended with %d after %d calls and was not killed after call %d\n%s", e.code, made, n, e.stderr)
		}
		for _, part := range []string{"proxy", "agent"} {
			// It may have died between removing a container and making it anew.
			if id := w.find("invocation.job." + part); id != "" {
				within(t, soon, part+" ends with its lease", w.stopped(id))
			}
		}
		if e := w.sandplan("plan"); e.code != 0 {
			t.Errorf("killed after call %d: plan: exit code %d\n%s", n, e.code, e.stderr)
		}
		e = w.sandplan("run", "invocation.job")
		if e.code == 125 && strings.Contains(e.stderr, "is missing") {
			// It died while it armed the invocation again.
			w.must("apply", "-auto-approve")
			e = w.sandplan("run", "invocation.job")
		}
		if e.code != 0 || e.stdout != "ran\n" || !strings.Contains(e.stderr, "Armed again") {
			t.Fatalf("killed after call %d: the next run: exit code %d, stdout %q\n%s", n, e.code, e.stdout, e.stderr)
		}
	}
	// How many calls a run makes differs: one that takes longer is looked at more often.
	if died < least/step {
		t.Errorf("it died %d times", died)
	}
}

// callsMade is how many calls to the engine a command has counted in a file.
func callsMade(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatalf("a command made %q calls: %v", text, err)
	}
	return n
}
