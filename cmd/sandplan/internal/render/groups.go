package render

import (
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/permission"
)

// GroupText is what a plan does to one invocation, or to what all share, by itself.
type GroupText struct {
	Addr  planner.Address // "" for what all invocations share
	Title string
	// Actions are what happens, counted: "2 to add, 1 to destroy".
	Actions planner.Plan
	// Same are further invocations to which the same happens, when there are many.
	Same []planner.Address
	Text string
}

// Groups are the parts of a plan's text in their order; of many alike the first stands for all.
func (r *Renderer) Groups(pl *planner.Plan) []GroupText {
	groups, gone := grouped(acting(pl.Changes)), replacedIDs(pl)
	alike := map[string][]group{}
	for _, g := range groups {
		alike[g.signature] = append(alike[g.signature], g)
	}
	var out []GroupText
	for _, g := range groups {
		same := alike[g.signature]
		if len(same) > manyAlike && same[0].addr != g.addr {
			continue
		}
		p := &page{r: r}
		for i, c := range g.changes {
			if i > 0 {
				p.nl()
			}
			r.change(p, c, gone)
		}
		one := GroupText{Addr: g.addr, Title: g.title, Text: p.String(), Actions: planner.Plan{Changes: g.changes}}
		if len(same) > manyAlike {
			for _, s := range same[1:] {
				one.Same = append(one.Same, s.addr)
			}
		}
		out = append(out, one)
	}
	return out
}

// Changed is the note about objects that were changed behind sandplan's back, "" when there are none.
func (r *Renderer) Changed(pl *planner.Plan) string {
	p := &page{r: r}
	r.driftNote(p, pl)
	return p.String()
}

// Wider are how many permissions of how many invocations are more than before.
func Wider(reports []permission.Report) (n, invocations int) { return widenings(reports) }
