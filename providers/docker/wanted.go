package docker

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/planner"
)

// rows computes the rows of what is added, beside the compilation and on all processors: they are the most of
// it, and one object's follow from nothing but the object.
type rows struct {
	wanted []*planner.Resource
	work   chan func(*bytes.Buffer)
	done   sync.WaitGroup
}

// add computes fields and digest of a resource that is like r.
func (w *rows) add(r planner.Resource, fields func(*bytes.Buffer) []planner.Field) {
	if w.work == nil {
		w.work = make(chan func(*bytes.Buffer), 1024) // so that whoever adds seldom waits
		for range runtime.GOMAXPROCS(0) {
			w.done.Go(func() {
				var buf bytes.Buffer
				for compute := range w.work {
					compute(&buf)
				}
			})
		}
	}
	w.wanted = append(w.wanted, &r)
	w.work <- func(buf *bytes.Buffer) {
		r.Fields = fields(buf)
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

func wantedFields(buf *bytes.Buffer, t *table, d desired, at hcl.Range, decl map[string]hcl.Range) []planner.Field {
	fields := t.wantedOf(wantedReply(buf, t, d), func(attr string) hcl.Range {
		if r, ok := decl[attr]; ok && r.Filename != "" {
			return r
		}
		return at
	})
	if phase, ok := decl["phase"]; ok {
		for i := range fields {
			if fields[i].Path == pathWorktreeMode {
				fields[i].Decl = phase // no attribute by itself
			}
		}
	}
	return fields
}

// wantedReply is what the engine would reply about a wanted object. Containers, of which there are most,
// are read like replies, and so decode nothing twice that others have too.
func wantedReply(buf *bytes.Buffer, t *table, d desired) reply {
	s, ok := d.(containerSpec)
	if !ok {
		return reply{tree: d.tree()}
	}
	s.encode(buf)
	r, err := t.decode(buf.Bytes())
	if err != nil {
		panic(fmt.Sprintf("request of container %s: %v", s.name, err)) // it was written just now
	}
	arrangeWanted(r.tree)
	return r
}
