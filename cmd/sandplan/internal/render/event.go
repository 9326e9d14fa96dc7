package render

import (
	"fmt"
	"time"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/planner"
)

// doing are the words for an operation: while it starts, goes on, and when it is over.
type doing struct{ start, still, done string }

func words(k planner.Kind, op planner.Op) doing {
	switch {
	case op == planner.OpDelete:
		return doing{"Destroying", "destroying", "Destruction"}
	case op == planner.OpRestore:
		return doing{"Restoring", "restoring", "Restoration"}
	case k == planner.KindPinned:
		return doing{"Pulling", "pulling", "Pull"}
	}
	return doing{"Creating", "creating", "Creation"}
}

// Event is one line about an operation. Failures have none: they are told once, at the end, with their
// place in the configuration.
func (r *Renderer) Event(e applier.Event) string {
	p := &page{r: r}
	w := words(e.Kind, e.Op)
	switch e.Type {
	case applier.EventStart:
		p.put(bold, string(e.Addr), ": ")
		p.line(plain, w.start, "...", idOf(e.ID))
	case applier.EventComplete:
		id := idOf(e.ID)
		if e.Op == planner.OpDelete {
			id = ""
		}
		p.put(bold, string(e.Addr), ": ")
		p.line(plain, w.done, " complete after ", seconds(e.Elapsed), id)
	}
	return p.String()
}

// Still is one line about an operation that takes long.
func (r *Renderer) Still(e applier.Event, elapsed time.Duration) string {
	p := &page{r: r}
	p.put(bold, string(e.Addr), ": ")
	if e.ID != "" {
		p.line(plain, "Still ", words(e.Kind, e.Op).still, "... [id=", shortID(e.ID), ", ", seconds(elapsed), " elapsed]")
	} else {
		p.line(plain, "Still ", words(e.Kind, e.Op).still, "... [", seconds(elapsed), " elapsed]")
	}
	return p.String()
}

func idOf(id string) string {
	if id == "" {
		return ""
	}
	return " [id=" + shortID(id) + "]"
}

// seconds is a duration as progress lines give it.
func seconds(d time.Duration) string { return fmt.Sprint(d.Round(time.Second)) }
