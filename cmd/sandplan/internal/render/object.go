package render

import (
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/sandplan/sandplan/planner"
)

// row is one setting of an object as a block shows it.
type row struct {
	sym symbol
	// name is the user's attribute, split where it lies in a nested block: limits, memory.
	name     []string
	field    planner.Field
	old, new any
	note     string
	merged   int // further rows that read the same
}

var nestedAttr = regexp.MustCompile(`^[a-z_]+(?:\.[a-z_]+)+$`)

// names says how people call a field: by their attribute, else by its label, else by its path.
func names(f planner.Field) []string {
	if nestedAttr.MatchString(f.Attr) {
		return strings.Split(f.Attr, ".")
	}
	return []string{fieldName(f)}
}

func fieldName(f planner.Field) string {
	switch {
	case f.Attr != "":
		return f.Attr
	case f.Label != "":
		return f.Label
	}
	return f.Path
}

// created are the rows of an object that is made: its headlines, or all of them.
func (r *Renderer) created(fields []planner.Field) []row {
	return r.present(fields, func(f planner.Field) row {
		return row{sym: symCreate, new: shown(f.Value, f)}
	})
}

// destroyed are the rows of an object that goes away.
func (r *Renderer) destroyed(fields []planner.Field) []row {
	return r.present(fields, func(f planner.Field) row {
		return row{sym: symDelete, old: shown(f.Value, f)}
	})
}

func (r *Renderer) present(fields []planner.Field, side func(planner.Field) row) []row {
	var rows []row
	for _, f := range fields {
		if f.Class == planner.ClassIgnored || f.Value.IsZero() || f.Show != planner.Headline && !r.Verbose {
			continue
		}
		w := side(f)
		w.name, w.field = names(f), f
		rows = append(rows, w)
	}
	return tidy(rows)
}

// changed are the rows of mismatches, from one side to the other.
func changed(ms []planner.Mismatch, wantIsOld bool) []row {
	var rows []row
	for _, m := range ms {
		w := row{sym: symChange, name: names(m.Field), field: m.Field}
		from, to := m.Got, m.Want
		if wantIsOld {
			from, to = m.Want, m.Got
		}
		w.old, w.new = shown(from, m.Field), shown(to, m.Field)
		switch {
		case from.IsZero():
			w.sym = symCreate
		case to.IsZero():
			w.sym = symDelete
		}
		rows = append(rows, w)
	}
	return tidy(rows)
}

// tidy sorts rows by name. Several fields may carry one attribute (memory and its swap limit): they
// are one row when they read the same, and are told apart by their paths when they do not.
func tidy(rows []row) []row {
	text := func(w row) string {
		return strings.Join(w.name, ".") + "\x00" + inline(w.old) + "\x00" + inline(w.new) + "\x00" + string(w.sym)
	}
	seen := map[string]int{}
	count := map[string]int{}
	kept := rows[:0]
	for _, w := range rows {
		t := text(w)
		if i, same := seen[t]; same && !w.field.Sensitive {
			kept[i].merged++
			continue
		}
		seen[t] = len(kept)
		count[strings.Join(w.name, ".")]++
		kept = append(kept, w)
	}
	for i, w := range kept {
		if count[strings.Join(w.name, ".")] > 1 {
			last := len(w.name) - 1
			kept[i].name = append(append([]string{}, w.name[:last]...), w.name[last]+" ("+w.field.Path+")")
		}
	}
	sort.SliceStable(kept, func(i, j int) bool {
		return strings.Join(kept[i].name, "\x00") < strings.Join(kept[j].name, "\x00")
	})
	return kept
}

// lead prints what stands in front of a text: its symbol, right-aligned in front of the text's column.
func (p *page) lead(sym symbol, depth int) {
	col := 4 * (depth + 1)
	p.put(plain, strings.Repeat(" ", col-1-len(sym)))
	p.put(sym.style(), string(sym))
	p.put(plain, " ")
}

// indentNote prints a remark in the column of texts.
func (p *page) indentNote(depth int, text string) {
	p.line(faint, strings.Repeat(" ", 4*(depth+1)), text)
}

// rows prints a block's settings: those with a name that people use, then those that only the engine has a
// name for, each aligned; then nested blocks.
func (p *page) rows(rows []row, depth int) {
	var named, built []row
	for _, w := range rows {
		switch {
		case len(w.name) > 1:
		case w.field.Attr == "" && w.field.Label == "":
			built = append(built, w)
		default:
			named = append(named, w)
		}
	}
	first := true
	for _, group := range [][]row{named, built} {
		if !first && len(group) > 0 && p.r.Verbose {
			p.nl()
		}
		wide := 0
		for _, w := range group {
			wide = max(wide, cells(w.name[0]))
		}
		for _, w := range group {
			p.setting(w, wide, depth)
			first = false
		}
	}
	for i := 0; i < len(rows); {
		w := rows[i]
		if len(w.name) == 1 {
			i++
			continue
		}
		var inner []row
		sym := w.sym
		for ; i < len(rows) && len(rows[i].name) > 1 && rows[i].name[0] == w.name[0]; i++ {
			in := rows[i]
			in.name = in.name[1:]
			if in.sym != sym {
				sym = symChange
			}
			inner = append(inner, in)
		}
		if !first {
			p.nl()
		}
		first = false
		p.lead(sym, depth)
		p.line(plain, w.name[0], " {")
		p.rows(inner, depth+1)
		p.line(plain, strings.Repeat(" ", 4*(depth+1)), "}")
	}
}

// setting prints one setting.
func (p *page) setting(w row, wide, depth int) {
	name := w.name[0] + strings.Repeat(" ", wide-cells(w.name[0])) + " = "
	col := 4*(depth+1) + cells(name)
	room := p.r.width() - col
	p.lead(w.sym, depth)
	p.put(plain, name)
	switch w.sym {
	case symCreate, symNone:
		p.flowing(w.new, col, room)
	case symDelete:
		p.flowing(w.old, col, room-len(" -> null"))
		p.put(plain, " -> null")
	default:
		for i, n := range difference(w.old, w.new, room-cells(w.note)) {
			if i > 0 {
				p.nl()
				p.lead(n.sym, depth+n.depth)
				if n.depth == 0 && n.sym == symNone && strings.HasPrefix(n.text, arrowText) {
					n.pad += cells(name)
				}
				p.put(plain, strings.Repeat(" ", max(0, n.pad)))
			}
			if n.note {
				p.put(faint, n.text)
			} else {
				p.put(plain, n.text)
			}
		}
	}
	if w.note != "" {
		p.put(red, " "+w.note)
	}
	p.nl()
	if w.sym == symChange && w.field.Class == planner.ClassSet && w.field.Reason != "" {
		// What usually undoes such a setting is no attack, and a reader should know before looking for one.
		for _, l := range wrap("# "+w.field.Reason, p.r.width()-4*(depth+1)) {
			p.indentNote(depth, l)
		}
	}
}

func (p *page) flowing(v any, col, room int) {
	for i, l := range flow(v, room) {
		if i > 0 {
			p.nl()
			p.put(plain, strings.Repeat(" ", col))
		}
		p.put(plain, l)
	}
}

// block is how an object's block begins: its part in the user's words, agent or runner "test".
func block(a planner.Address, k planner.Kind) string {
	if k == planner.KindRunner {
		name := strings.TrimSuffix(strings.TrimPrefix(a.Part(), "runner["), "]")
		return "runner " + name
	}
	if k == planner.KindPinned {
		return "image"
	}
	return string(k)
}

// count is the number of rows that take part in comparisons.
func count(fields []planner.Field) int {
	n := 0
	for _, f := range fields {
		if f.Class != planner.ClassIgnored && !f.Value.IsZero() {
			n++
		}
	}
	return n
}

// left is how many of n rows are not among those shown.
func left(n int, rows []row) int {
	for _, w := range rows {
		n -= 1 + w.merged
	}
	return n
}

func hidden(n int, what string) string {
	if n == 1 {
		what = strings.TrimSuffix(what, "s")
	}
	return fmt.Sprintf("# (%d %s hidden; -verbose)", n, what)
}
