package docker

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/planner"
)

// fill computes the rows of all that was added, on all processors: it is the most of a compilation, and one
// object's rows follow from nothing but the object.
func (b *builder) fill() {
	// None of them fails, and none is left out when the command is interrupted: an object without rows would
	// be wanted without properties.
	buffers := sync.Pool{New: func() any { return new(bytes.Buffer) }}
	_ = inParallel(context.WithoutCancel(b.ctx), runtime.GOMAXPROCS(0), len(b.rows), func(_ context.Context, i int) error {
		buf := buffers.Get().(*bytes.Buffer)
		defer buffers.Put(buf)
		r := &b.out.resources[i]
		r.Fields = b.rows[i](buf)
		r.Digest = planner.Digest(r.Fields)
		return nil
	})
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
