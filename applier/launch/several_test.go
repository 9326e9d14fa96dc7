package launch_test

import (
	"strings"
	"testing"
)

// TestRealSeveral runs several invocations with one command: each with its own prefix, record and end,
// and none disturbed by another's.
func TestRealSeveral(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 11, map[string][]string{
		"a": {"say=one", "say=sandplan: all is well", "sleep=2s", "say=two"}, "b": {"warn=bad", "exit=7"}, "c": {"say=three"},
	}, nil)
	w.apply()
	e := w.sandplan("run", "-parallelism=2", "invocation.a", "invocation.b", "invocation.c")
	if e.code != 7 {
		t.Errorf("exit code %d, want that of the one that failed\n%s", e.code, e.stderr)
	}
	for _, want := range []string{"invocation.a | one\n", "invocation.a | sandplan: all is well\n", "invocation.a | two\n", "invocation.c | three\n"} {
		if strings.Count(e.stdout, want) != 1 {
			t.Errorf("stdout has no line %q:\n%s", want, e.stdout)
		}
	}
	for _, want := range []string{"invocation.b | bad\n", "invocation.a: exit code 0\n", "invocation.b: exit code 7\n", "invocation.c: exit code 0\n"} {
		if !strings.Contains(e.stderr, want) {
			t.Errorf("stderr has no line %q:\n%s", want, e.stderr)
		}
	}
	if n := strings.Count(w.must("runs").stdout, "\n"); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
	if e := w.sandplan("plan", "-detailed-exitcode"); e.code != 0 {
		t.Errorf("not all are armed again:\n%s", e.stdout)
	}
}
