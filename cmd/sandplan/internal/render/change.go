package render

import (
	"strings"

	"github.com/sandplan/sandplan/planner"
)

// group prints the changes of one invocation, under a header in the user's words.
func (r *Renderer) group(p *page, scope planner.Scope, g group, gone map[planner.Address]string) {
	p.nl()
	switch {
	case g.addr == "":
		p.line(bold, "  # ", scope.String(), ", shared by all invocations")
	case g.title == "":
		p.line(bold, "  # ", string(g.addr))
	default:
		p.line(bold, "  # ", string(g.addr), " (", g.title, ")")
	}
	for _, c := range g.changes {
		p.nl()
		r.change(p, c, gone)
	}
}

// more lists the groups that the printed one stands for.
func more(p *page, same []group) {
	p.nl()
	p.line(bold, "  # The same happens to ", plural(len(same)-1, "more invocation"), ":")
	var names []string
	for i, g := range same[1:] {
		name := string(g.addr)
		if i < len(same)-2 {
			name += ","
		}
		names = append(names, name)
	}
	for _, l := range wrap(strings.Join(names, " "), p.r.width()-6) {
		p.line(plain, "  #   ", l)
	}
}

// Verdict is what a plan says of an object, and the symbol of its block.
func Verdict(c planner.Change) (string, symbol) {
	switch c.Action {
	case planner.ActionCreate:
		switch {
		case c.Lost:
			return "is not on the engine, and in no registry", symCreate
		case c.Kind == planner.KindPinned:
			return "will be pulled", symCreate
		}
		return "will be created", symCreate
	case planner.ActionDelete:
		return "will be destroyed", symDelete
	case planner.ActionRestore:
		return "will be restored in place", symChange
	case planner.ActionReplace:
		if len(c.Reasons) > 0 && c.Reasons[0].Code == planner.ReasonRequested {
			return "will be replaced, as requested", symReplace
		}
		return "must be replaced", symReplace
	}
	return "stays as it is", symNone
}

func (r *Renderer) change(p *page, c planner.Change, gone map[planner.Address]string) {
	text, sym := Verdict(c)
	p.put(bold, "  # ", string(c.Addr), " ")
	if sym == symReplace || sym == symDelete {
		p.line(boldRed, text)
	} else {
		p.line(bold, text)
	}
	for _, reason := range c.Reasons {
		if !implied(c.Action, reason) {
			p.line(plain, "  # (", reason.Text, ")")
		}
	}
	p.lead(sym, 0)
	p.line(plain, block(c.Addr, c.Kind), " {")
	switch c.Action {
	case planner.ActionCreate:
		rows := r.created(c.After)
		p.rows(rows, 1)
		r.hiddenCount(p, left(count(c.After), rows), "hardened settings")
	case planner.ActionDelete:
		rows := r.destroyed(c.Before)
		p.rows(rows, 1)
		r.hiddenCount(p, left(count(c.Before), rows), "settings")
	default:
		rows := r.replaced(c, gone)
		p.rows(rows, 1)
		for _, e := range c.Extra {
			p.lead(symDelete, 1)
			p.line(plain, e.Path, ": ", e.Detail)
		}
		r.hiddenCount(p, left(count(c.After), rows), "unchanged settings")
	}
	p.line(plain, "    }")
}

// implied reasons say nothing that the headline has not said.
func implied(a planner.Action, reason planner.Reason) bool {
	switch reason.Code {
	case planner.ReasonAbsent:
		return a == planner.ActionCreate
	case planner.ReasonRequested, planner.ReasonDestroy:
		return true
	}
	return reason.Text == ""
}

func (r *Renderer) hiddenCount(p *page, n int, what string) {
	if n > 0 && !r.Verbose {
		p.indentNote(1, hidden(n, what))
	}
}

// replaced are the rows that differ between what is there and what will be, and the references to
// objects that get a new ID.
func (r *Renderer) replaced(c planner.Change, gone map[planner.Address]string) []row {
	rows := changed(planner.Compare(c.After, c.Before), false)
	differs := map[string]bool{}
	for _, w := range rows {
		differs[w.field.Path] = true
	}
	for _, f := range c.After {
		a, isRef := f.Value.Ref()
		if !isRef || differs[f.Path] {
			continue
		}
		if id, goes := gone[a]; goes {
			rows = append(rows, row{sym: symChange, name: names(f), field: f, old: id, new: literal(textUnknown)})
		}
	}
	if c.Action == planner.ActionReplace {
		for i := range rows {
			if rows[i].field.Class != planner.ClassSet {
				rows[i].note = "# forces replacement"
			}
		}
	}
	return tidy(rows)
}

// replacedIDs are the engine IDs, as people see them, of all objects that a plan gives another one.
func replacedIDs(pl *planner.Plan) map[planner.Address]string {
	out := map[planner.Address]string{}
	for _, c := range pl.Changes {
		if c.Action == planner.ActionReplace && c.Object.ID != "" {
			out[c.Addr] = shortID(c.Object.ID)
		}
	}
	return out
}

// shortID is an engine ID as people know it. A volume's ID is its name, which stays whole.
func shortID(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	if len(id) == 64 && strings.Trim(id, "0123456789abcdef") == "" {
		return id[:12]
	}
	return id
}

// shellQuote makes s one word for a POSIX shell.
func shellQuote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:@%+,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
