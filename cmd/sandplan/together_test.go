package main

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
)

// TestOutputOfSeveralRuns wants every line of every agent to bear its address, whatever the pieces were
// in which it came.
func TestOutputOfSeveralRuns(t *testing.T) {
	for name, c := range map[string]struct {
		pieces []string
		want   string
		reason string
	}{
		"lines":   {[]string{"a\nb\n"}, "invocation.x | a\ninvocation.x | b\n", "each line"},
		"pieces":  {[]string{"a", "b\n", "c"}, "invocation.x | ab\ninvocation.x | c\n", "a line comes whole; the last may have no end"},
		"mimicry": {[]string{"sandplan: all is well (exit code 0)\n"}, "invocation.x | sandplan: all is well (exit code 0)\n", "nobody speaks for sandplan"},
		"long":    {[]string{strings.Repeat("y", longestPiece+1)}, "invocation.x | " + strings.Repeat("y", longestPiece) + "\ninvocation.x | y\n", "a line without end has a bound"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			a := newTestApp(t)
			a.stdout = stream{Writer: &out}
			u := &ui{app: a.app, together: true, lines: bufio.NewReader(strings.NewReader(""))}
			w := u.agentWriter("invocation.x", "stdout")
			for _, p := range c.pieces {
				if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
					t.Fatal(n, err)
				}
			}
			w.(*agentOutput).flush()
			if out.String() != c.want {
				t.Errorf("%q, want %q (%s)", out.String(), c.want, c.reason)
			}
		})
	}
}
