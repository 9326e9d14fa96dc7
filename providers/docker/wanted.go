package docker

import (
	"bytes"
	"runtime"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/planner"
)

// rows computes the rows of what is added, beside the compilation and on all processors: they are the most of
// it, and one object's follow from nothing but the object.
type rows struct {
	wanted []*planner.Resource
	work   chan func(*bench)
	done   sync.WaitGroup
}

// bench is what one of those who compute rows has beside it.
type bench struct {
	buf  bytes.Buffer
	like templates
}

// add computes fields and digest of a resource that is like r.
func (w *rows) add(r planner.Resource, fields func(*bench) []planner.Field) {
	if w.work == nil {
		w.work = make(chan func(*bench), 1024) // so that whoever adds seldom waits
		for range runtime.GOMAXPROCS(0) {
			w.done.Go(func() {
				var own bench
				for compute := range w.work {
					compute(&own)
				}
			})
		}
	}
	w.wanted = append(w.wanted, &r)
	w.work <- func(b *bench) {
		r.Fields = fields(b)
		r.Digest = planner.Digest(r.Fields)
	}
}

// all waits for the rest, and returns the resources in the order in which they were added.
func (w *rows) all() []planner.Resource {
	if w.work == nil {
		return nil
	}
	close(w.work)
	w.done.Wait()
	w.work = nil
	out := make([]planner.Resource, len(w.wanted))
	for i, r := range w.wanted {
		out[i] = *r
	}
	return out
}

func wantedFields(at *bench, t *table, d desired, from *hcl.Range, decl map[string]*hcl.Range) []planner.Field {
	where := func(attr string) *hcl.Range {
		if r := decl[attr]; r != nil && r.Filename != "" {
			return r
		}
		return from
	}
	var fields []planner.Field
	if s, ok := d.(containerSpec); ok { // of which there are most
		fields = at.like.fields(&at.buf, t, s, where)
	} else {
		fields = t.wanted(d.tree(), where)
	}
	if phase, ok := decl["phase"]; ok {
		for i := range fields {
			if fields[i].Path == pathWorktreeMode {
				fields[i].Decl = phase // no attribute by itself
			}
		}
	}
	return fields
}
