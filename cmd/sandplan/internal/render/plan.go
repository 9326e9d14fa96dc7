package render

import (
	"fmt"
	"strings"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/permission"
)

// PlanView is what a plan's text says beside the plan itself.
type PlanView struct {
	// Free and Pool say how many more invocations the address pool has room for; Pool "" leaves it out.
	Free int
	Pool string
	// Permissions are what agents may do that nobody has read yet.
	Permissions []permission.Report
	// Outputs are what becomes of them.
	Outputs []OutputChange
	// Saved is the file that the plan was written to.
	Saved string
	// Targeted says that the plan leaves objects out.
	Targeted bool
	// Hint ends the text with what to do next. Automation and apply want none.
	Hint bool
}

// Plan is the whole text of a plan: what was changed behind sandplan's back, what will be done, and
// the summary. It is empty of changes only when nothing differs.
func (r *Renderer) Plan(pl *planner.Plan, v PlanView) string {
	p := &page{r: r}
	notes := r.driftNote(p, pl)
	changes := acting(pl.Changes)
	if len(changes) == 0 {
		r.noChanges(p, pl, v, notes)
		return p.String()
	}
	if notes {
		p.rule()
	}
	legend(p, changes)
	p.line(plain, "sandplan will do this:")
	groups, gone := grouped(changes), replacedIDs(pl)
	alike := map[string][]group{}
	for _, g := range groups {
		alike[g.signature] = append(alike[g.signature], g)
	}
	for _, g := range groups {
		same := alike[g.signature]
		if len(same) > manyAlike && same[0].addr != g.addr {
			continue
		}
		r.group(p, pl.Scope, g, gone)
		if len(same) > manyAlike {
			more(p, same)
		}
	}
	r.allowed(p, v.Permissions)
	p.nl()
	p.line(bold, Summary(pl))
	p.outputChanges(v.Outputs)
	if v.Pool != "" {
		p.nl()
		p.line(plain, v.Pool, " has room for ", plural(v.Free, "more invocation"), ".")
	}
	r.hint(p, pl, v)
	return p.String()
}

// Summary is the line that scripts look for. A replace counts as one added and one destroyed.
func Summary(pl *planner.Plan) string {
	add, change, destroy := pl.Counts()
	return fmt.Sprintf("Plan: %d to add, %d to change, %d to destroy.", add, change, destroy)
}

func acting(cs []planner.Change) []planner.Change {
	var out []planner.Change
	for _, c := range cs {
		if c.Action != planner.ActionNoOp {
			out = append(out, c)
		}
	}
	return out
}

func (r *Renderer) noChanges(p *page, pl *planner.Plan, v PlanView, notes bool) {
	if notes {
		p.rule()
	}
	if len(pl.Conflicts()) > 0 {
		p.prose("Nothing can be done before the conflicts are gone.")
		return
	}
	p.put(boldGreen, "No changes.")
	objects := 0
	for _, c := range pl.Changes {
		if c.Object.ID != "" {
			objects++
		}
	}
	text := fmt.Sprintf(" The engine has what is declared, in every setting of the %s of %s.", plural(objects, "object"), pl.Scope)
	switch {
	case v.Targeted:
		text = " Nothing is to be done to what -target names, and the rest was left out."
	case pl.Destroy && objects == 0, objects == 0:
		text = fmt.Sprintf(" Nothing of %s is on the engine, and nothing is declared.", pl.Scope)
		if pl.Destroy {
			text = fmt.Sprintf(" Nothing of %s is on the engine.", pl.Scope)
		}
	case notes:
		text = " There is nothing that sandplan can do about the above."
	}
	for i, l := range wrap("No changes."+text, r.width()) {
		if i == 0 {
			l = strings.TrimPrefix(l, "No changes.")
		}
		p.line(plain, l)
	}
	if v.Saved != "" && v.Hint && !r.NoHints {
		p.nl()
		p.line(plain, "Saved to ", v.Saved, ".")
	}
}

// driftNote prints what differs from the last apply; it is never hidden, since no run starts on it.
func (r *Renderer) driftNote(p *page, pl *planner.Plan) bool {
	byAddr := map[planner.Address][]planner.Finding{}
	var order []planner.Address
	for _, f := range pl.Findings {
		// Conflicts are errors of their own, below the plan.
		if f.Kind != planner.FindingDrift {
			continue
		}
		if byAddr[f.Addr] == nil {
			order = append(order, f.Addr)
		}
		byAddr[f.Addr] = append(byAddr[f.Addr], f)
	}
	if len(order) == 0 {
		return false
	}
	were := " were changed behind sandplan's back"
	if len(order) == 1 {
		were = " was changed behind sandplan's back"
	}
	p.line(boldAmber, "Note: ", plural(len(order), "object"), were)
	p.nl()
	outlook := ", which this plan does."
	if len(acting(pl.Changes)) == 0 {
		outlook = "."
	}
	if pl.Destroy {
		p.prose("Since the last apply somebody changed these objects of %s.", pl.Scope)
	} else {
		p.prose("Since the last apply somebody changed these objects of %s. "+
			"No run starts on them until they are put right%s", pl.Scope, outlook)
	}
	for _, a := range order {
		r.drifted(p, pl, a, byAddr[a])
	}
	return true
}

// drifted prints one object's entry of the note.
func (r *Renderer) drifted(p *page, pl *planner.Plan, a planner.Address, fs []planner.Finding) {
	var ms []planner.Mismatch
	var extras []planner.Extra
	var texts []string
	for _, f := range fs {
		switch {
		case f.Mismatch != nil:
			ms = append(ms, *f.Mismatch)
		case f.Extra != nil:
			extras = append(extras, *f.Extra)
		default:
			texts = append(texts, f.Text)
		}
	}
	p.nl()
	if len(texts) > 0 {
		p.line(bold, "  # ", string(a), " ", strings.Join(texts, ", and "))
	} else {
		p.line(bold, "  # ", string(a), " has changed")
	}
	if len(ms)+len(extras) == 0 {
		return
	}
	p.lead(symChange, 0)
	p.line(plain, block(a, kindOf(pl, a)), " {")
	p.rows(changed(ms, true), 1)
	for _, e := range extras {
		p.lead(symCreate, 1)
		p.line(plain, e.Path, ": ", e.Detail)
	}
	p.line(plain, "    }")
}

func kindOf(pl *planner.Plan, a planner.Address) planner.Kind {
	for _, c := range pl.Changes {
		if c.Addr == a {
			return c.Kind
		}
	}
	return planner.Kind(a.Part())
}

func legend(p *page, cs []planner.Change) {
	present := map[planner.Action]bool{}
	for _, c := range cs {
		present[c.Action] = true
	}
	p.line(plain, "What the symbols mean:")
	for _, l := range []struct {
		a    planner.Action
		sym  symbol
		text string
	}{
		{planner.ActionCreate, symCreate, "create"},
		{planner.ActionRestore, symChange, "restore in place"},
		{planner.ActionDelete, symDelete, "destroy"},
		{planner.ActionReplace, symReplace, "destroy, then create again"},
	} {
		if present[l.a] {
			p.lead(l.sym, 0)
			p.line(plain, l.text)
		}
	}
	p.nl()
}

func (r *Renderer) hint(p *page, pl *planner.Plan, v PlanView) {
	if !v.Hint || r.NoHints {
		return
	}
	p.rule()
	command, destroyFlag := "apply", ""
	if pl.Destroy {
		command, destroyFlag = "destroy", "-destroy "
	}
	if v.Saved == "" {
		p.prose("Note: this plan was not saved, and what %s does may differ if something changes until then. "+
			"To apply exactly what was shown:", command)
		p.line(plain, "    sandplan plan ", destroyFlag, "-out=FILE && sandplan apply FILE")
		return
	}
	p.line(plain, "Saved to ", v.Saved, ". To apply exactly this:")
	p.line(plain, "    sandplan apply ", shellQuote(v.Saved))
}

// group is what one invocation, or the shared objects, see of a plan.
type group struct {
	addr      planner.Address // "" for what all invocations share
	title     string
	changes   []planner.Change
	signature string
}

// manyAlike is the number of equal groups from which on only the first is printed.
const manyAlike = 20

func grouped(cs []planner.Change) []group {
	var out []group
	for _, c := range cs {
		inv := c.Addr.Invocation()
		if len(out) == 0 || out[len(out)-1].addr != inv {
			out = append(out, group{addr: inv})
		}
		g := &out[len(out)-1]
		g.changes = append(g.changes, c)
		if g.title == "" {
			g.title = c.Title
		}
	}
	for i := range out {
		out[i].signature = signature(out[i])
	}
	return out
}

// signature is equal for groups of which one stands for the others: the same actions for the same
// reasons on the same settings.
func signature(g group) string {
	if g.addr == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString(g.title)
	for _, c := range g.changes {
		fmt.Fprintf(&b, "\n%s %s", c.Action, c.Addr.Part())
		for _, reason := range c.Reasons {
			fmt.Fprintf(&b, " %s", reason.Code)
		}
		if c.Before != nil && c.After != nil {
			for _, m := range planner.Compare(c.After, c.Before) { // in the order of paths
				fmt.Fprintf(&b, " %s", m.Field.Path)
			}
		}
	}
	return b.String()
}
