//go:build unix

package planner_test

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// A plan of so many invocations has to cost less than so much of the processor, on a slow machine too:
// the engine calls around it take seconds.
const (
	benchInvocations = 500
	benchLimit       = 100 * time.Millisecond
)

// large is a scope of benchInvocations, each object with as many rows as real containers have.
func large() ([]planner.Resource, planner.Snapshot) {
	var want []planner.Resource
	var rows []planner.Field
	for i := range 120 {
		rows = append(rows, planner.Field{Path: fmt.Sprintf("Zone.Field%03d", i), Value: planner.JSON(fmt.Sprint("value of ", i))})
	}
	add := func(rs ...planner.Resource) {
		for _, r := range rs {
			r.Fields = append(r.Fields, rows...)
			r.Digest = planner.Digest(r.Fields)
			want = append(want, r)
		}
	}
	add(shared()...)
	for i := range benchInvocations {
		add(invocation(planner.InvocationAddress("many", fmt.Sprintf("key%03d", i)), "old", "test")...)
	}
	return want, has(want).Snapshot
}

// processorTime is what this process has used so far: on a machine with other work, the wall clock
// says nothing.
func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestDiffIsCheap(t *testing.T) {
	if testing.Short() {
		t.Skip("measures")
	}
	want, have := large()
	for name, want := range map[string][]planner.Resource{"nothing changed": want, "everything changed": changed(want)} {
		best := time.Hour
		for range 3 {
			runtime.GC()
			start := processorTime(t)
			p := planner.Diff(want, have, planner.Options{})
			best = min(best, processorTime(t)-start)
			if len(p.Changes) != 4+4*benchInvocations {
				t.Fatalf("%s: %d changes", name, len(p.Changes))
			}
		}
		t.Logf("a plan of %d invocations, %s: %v of the processor", benchInvocations, name, best)
		if limit := benchLimit * raceFactor; best > limit {
			t.Errorf("a plan of %d invocations, %s, costs %v of the processor, the goal is %v", benchInvocations, name, best, limit)
		}
	}
}

// changed is want with another declaration for every object.
func changed(want []planner.Resource) []planner.Resource {
	out := slices.Clone(want)
	for i := range out {
		out[i].Fields = slices.Clone(out[i].Fields)
		setRow(out[i].Fields, "Text", "changed")
		out[i].Digest = planner.Digest(out[i].Fields)
	}
	return out
}

func BenchmarkDiff(b *testing.B) {
	want, have := large()
	for _, c := range []struct {
		name string
		want []planner.Resource
		have planner.Snapshot
	}{{"unchanged", want, have}, {"all changed", changed(want), have}, {"empty engine", want, planner.Snapshot{}}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				planner.Diff(c.want, c.have, planner.Options{})
			}
		})
	}
}

func BenchmarkGraph(b *testing.B) {
	want, _ := large()
	p := planner.Diff(want, planner.Snapshot{}, planner.Options{})
	for b.Loop() {
		if _, err := p.Graph(); err != nil {
			b.Fatal(err)
		}
	}
}
