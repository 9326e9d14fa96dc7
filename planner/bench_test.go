package planner_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sandplan/sandplan/planner"
)

const benchInvocations = 500

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
