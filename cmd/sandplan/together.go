package main

import (
	"bytes"
	"cmp"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker"
)

// runParallelism is how many of several invocations run at once.
const runParallelism = 10

// runAll runs invocations, some at once, each as if it were alone: how one ends is nothing to the
// others. The exit code is that of the first, in the order given, that did not end with 0.
func (a *app) runAll(in interrupts, u *ui, f runFlags, spec *hclspec.Spec, engine *docker.Engine, invs []hclspec.Invocation, prompt []byte) int {
	if len(invs) == 1 {
		return a.runOne(in, u, f, spec, engine, invs[0], prompt, nil)
	}
	u.together = true
	lock := newTurn()
	codes := make([]int, len(invs))
	var g errgroup.Group
	g.SetLimit(cmp.Or(f.parallelism, runParallelism)) // dispatch has no such option
	for i, inv := range invs {
		g.Go(func() error {
			codes[i] = a.runOne(in, u, f, spec, engine, inv, prompt, lock)
			return nil
		})
	}
	_ = g.Wait()
	code := exitOK
	for i, inv := range invs {
		if code == exitOK {
			code = codes[i]
		}
		if u.stream == nil {
			u.printErr(u.human.Line(fmt.Sprintf("%s: exit code %d", inv.Address, codes[i])))
		}
	}
	return code
}

// prefixed puts the address before every line, so that nobody's lines pass for another's, or for
// sandplan's own last word.
func prefixed(addr planner.Address, text []byte) string {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		fmt.Fprintf(&b, "%s | %s\n", addr, bytes.TrimSuffix(line, []byte("\n")))
	}
	return b.String()
}
