package render

import (
	"github.com/sandplan/sandplan/planner"
)

// Objects shows what the engine has at some addresses, or everything; "" when there is nothing.
func (r *Renderer) Objects(s planner.Snapshot, at []planner.Address) string {
	p := &page{r: r}
	for _, o := range s.Objects {
		wanted := len(at) == 0
		for _, a := range at {
			wanted = wanted || a.Contains(o.Addr)
		}
		if !wanted {
			continue
		}
		if p.b.Len() > 0 {
			p.nl()
		}
		p.put(bold, "# ", string(o.Addr))
		if o.Status != planner.StatusNone {
			p.put(plain, " is ", string(o.Status))
		}
		p.line(faint, idOf(o.ID))
		rows := r.present(o.Observed, func(f planner.Field) row {
			return row{new: shown(f.Value, f)}
		})
		p.line(plain, block(o.Addr, o.Kind), " {")
		p.settings(rows)
		if n := left(count(o.Observed), rows); n > 0 && !r.Verbose {
			p.line(faint, "    ", hidden(n, "settings"))
		}
		p.line(plain, "}")
	}
	return p.String()
}

// settings prints rows without symbols, a level further out than in a plan.
func (p *page) settings(rows []row) {
	inner := &page{r: p.r}
	inner.rows(rows, 0)
	p.b.WriteString(inner.String())
}

// Line is one line of a list.
func (r *Renderer) Line(text string) string { return Clean(text) + "\n" }

// ApproveUnlock is the question before a lock is removed.
func (r *Renderer) ApproveUnlock(id string) string {
	p := &page{r: r}
	p.line(bold, "Shall sandplan remove the lock ", id, "?")
	p.line(plain, "  If its holder still works, two of them will work at once. There is no undo.")
	p.line(plain, `  Only "yes" is taken for a yes.`)
	p.nl()
	p.put(bold, "  Your answer: ")
	return p.String()
}
