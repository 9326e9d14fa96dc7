package shim

import (
	"bytes"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

func TestOutputBound(t *testing.T) {
	for name, c := range map[string]struct {
		bound  int64
		in     string
		want   string
		full   bool
		reason string
	}{
		"below":    {10, "abc\n", "abc\n", false, "everything passes"},
		"exactly":  {4, "abc\n", "abc\n", false, "the bound itself is allowed"},
		"mid line": {2, "abc\n", "ab\nsandplan: cut here, the output bound of 2 bytes is used up\n", true, "the mark has a line of its own"},
		"at line":  {4, "abc\nd", "abc\nsandplan: cut here, the output bound of 4 bytes is used up\n", true, "without an empty one before it"},
		"nothing":  {10, "", "", false, "a silent command"},
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			var seen atomic.Int64
			o := newOutput(c.bound)
			o.copy(&out, r, &seen)
			if _, err := w.WriteString(c.in); err != nil {
				t.Fatal(err)
			}
			w.Close()
			<-o.drained()
			full := false
			select {
			case <-o.full:
				full = true
			default:
			}
			if out.String() != c.want || full != c.full || seen.Load() != int64(len(c.in)) {
				t.Errorf("%q, full %v, seen %d (%s)", out.String(), full, seen.Load(), c.reason)
			}
		})
	}
}

// Two streams share the bound, and what is lost is marked in each.
func TestOutputBoundIsShared(t *testing.T) {
	var outs [2]bytes.Buffer
	var seen [2]atomic.Int64
	o := newOutput(1000)
	for i := range outs {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		o.copy(&outs[i], r, &seen[i])
		go func() {
			_, _ = w.WriteString(strings.Repeat("x", 5000))
			w.Close()
		}()
	}
	<-o.drained()
	total := 0
	for i := range outs {
		text, _, marked := strings.Cut(outs[i].String(), "sandplan: cut here")
		total += len(strings.TrimSuffix(text, "\n"))
		if !marked || seen[i].Load() != 5000 {
			t.Errorf("stream %d: marked %v, seen %d", i, marked, seen[i].Load())
		}
	}
	if total != 1000 {
		t.Errorf("%d bytes passed, the bound is 1000", total)
	}
}
