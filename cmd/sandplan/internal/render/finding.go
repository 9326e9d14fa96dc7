package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/planner"
)

// The two sides of a finding, in words. What they are depends on the comparison: drift holds an
// object against what was applied, pending holds that against the HCL, the gate looks past both.
var (
	sidesDrift   = [2]string{"applied", "observed"}
	sidesPending = [2]string{"declared", "applied"}
	sidesGate    = [2]string{"declared", "observed"}
)

// Drift is the report of an audit.
func (r *Renderer) Drift(scope planner.Scope, objects int, fs []planner.Finding, titles map[planner.Address]string) string {
	p := &page{r: r}
	if len(fs) == 0 {
		p.put(boldGreen, "No drift.")
		switch objects {
		case 0:
			p.line(plain, fmt.Sprintf(" Nothing of %s is on the engine.", scope))
		case 1:
			p.line(plain, fmt.Sprintf(" The one object of %s is as declared.", scope))
		default:
			p.line(plain, fmt.Sprintf(" The %s of %s are as declared.", plural(objects, "object"), scope))
		}
		return p.String()
	}
	counts := map[planner.FindingKind]int{}
	for i, g := range perObject(fs) {
		if i > 0 {
			p.nl()
		}
		counts[g.kind]++
		title := ""
		if t := titles[g.addr]; t != "" {
			title = " (" + t + ")"
		}
		switch g.kind {
		case planner.FindingDrift:
			r.object(p, g, title+" has drifted", sidesDrift)
		case planner.FindingPending:
			r.object(p, g, title+" is pending", sidesPending)
		default:
			r.object(p, g, title+" is in conflict", sidesGate)
		}
	}
	p.nl()
	r.driftSummary(p, counts)
	return p.String()
}

func (r *Renderer) driftSummary(p *page, counts map[planner.FindingKind]int) {
	var parts []string
	if n := counts[planner.FindingConflict]; n > 0 {
		parts = append(parts, plural(n, "conflict"))
	}
	if n := counts[planner.FindingDrift]; n > 0 {
		was := "was"
		if n > 1 {
			was = "were"
		}
		parts = append(parts, fmt.Sprintf("%s %s changed since the last apply", plural(n, "object"), was))
	}
	if n := counts[planner.FindingPending]; n > 0 {
		is := "is"
		if n > 1 {
			is = "are"
		}
		parts = append(parts, fmt.Sprintf("%s %s pending", plural(n, "object"), is))
	}
	head := "Drift: "
	if counts[planner.FindingDrift]+counts[planner.FindingConflict] == 0 {
		head = "No drift: "
	}
	p.line(bold, head, strings.Join(parts, "; "), ".")
	if !r.NoHints {
		p.line(plain, "To put all of it right: sandplan apply")
	}
}

// Refusal is the text of a run that the gate refused.
func (r *Renderer) Refusal(addr planner.Address, fs []planner.Finding) string {
	inner := &page{r: r}
	if r.Color {
		narrow := *r
		narrow.Width = r.width() - 2
		inner.r = &narrow
	}
	groups, n := perObject(fs), 0
	for _, g := range groups {
		n += g.shown()
	}
	inner.put(boldRed, "Error: ")
	inner.line(bold, "Run of ", string(addr), " refused")
	inner.nl()
	inner.prose("Nothing was started, because the engine differs from the declaration: %s on %s.",
		plural(n, "finding"), plural(len(groups), "object"))
	for _, g := range together(groups) {
		inner.nl()
		r.object(inner, g, "", sidesGate)
	}
	if !r.NoHints {
		inner.nl()
		inner.line(plain, "To see what would put it right:  sandplan plan")
		inner.line(plain, "To put it right:                 sandplan apply")
		inner.line(plain, "To put it right and run at once: sandplan run -apply ", shellQuote(string(addr)))
	}
	p := &page{r: r}
	p.boxed(inner, boldRed)
	p.nl()
	return p.String()
}

// objectFindings are the findings of one kind about one object.
type objectFindings struct {
	addr  planner.Address
	kind  planner.FindingKind
	texts []string
	decl  hcl.Range
	// places are the findings with a setting, by the line that declares it, in the order given.
	places []placeFindings
	// also are the objects of which the same is to be said.
	also []planner.Address
}

// together puts neighbours into one that differ in nothing but their addresses: before the first apply every
// object is missing, and one line says so of all that one block declares.
func together(groups []objectFindings) []objectFindings {
	var out []objectFindings
	for _, g := range groups {
		if n := len(out) - 1; n >= 0 && alike(out[n], g) {
			out[n].also = append(out[n].also, g.addr)
			continue
		}
		out = append(out, g)
	}
	return out
}

func alike(a, b objectFindings) bool {
	return len(a.places)+len(b.places) == 0 && len(a.texts) == 1 && slices.Equal(a.texts, b.texts) && a.kind == b.kind && a.decl == b.decl
}

type placeFindings struct {
	decl     hcl.Range
	findings []shownFinding
}

// shownFinding is one finding, with the paths of further ones that read the same: memory and its swap limit
// are two fields and one attribute.
type shownFinding struct {
	planner.Finding
	more []string
}

func (f shownFinding) reads(g planner.Finding) bool {
	return f.Mismatch != nil && g.Mismatch != nil && f.Mismatch.Field.Attr != "" && f.Mismatch.Field.Attr == g.Mismatch.Field.Attr &&
		f.Mismatch.Want == g.Mismatch.Want && f.Mismatch.Got == g.Mismatch.Got && !f.Mismatch.Field.Sensitive
}

// shown is the number of findings that the object's entry shows.
func (g objectFindings) shown() int {
	n := len(g.texts)
	for _, p := range g.places {
		n += len(p.findings)
	}
	return n
}

func perObject(fs []planner.Finding) []objectFindings {
	var out []objectFindings
	at := map[string]int{}
	for _, f := range fs {
		id := string(f.Kind) + " " + string(f.Addr)
		i, known := at[id]
		if !known {
			i = len(out)
			at[id] = i
			out = append(out, objectFindings{addr: f.Addr, kind: f.Kind, decl: f.Decl})
		}
		out[i].add(f)
	}
	return out
}

func (g *objectFindings) add(f planner.Finding) {
	decl := f.Decl
	switch {
	case f.Mismatch != nil:
		if at := f.Mismatch.Field.At(); at.Filename != "" {
			decl = at
		}
	case f.Extra == nil:
		g.texts = append(g.texts, f.Text)
		return
	}
	for i := range g.places {
		p := &g.places[i]
		if p.decl != decl {
			continue
		}
		if last := &p.findings[len(p.findings)-1]; last.reads(f) {
			last.more = append(last.more, f.Mismatch.Field.Path)
			return
		}
		p.findings = append(p.findings, shownFinding{Finding: f})
		return
	}
	g.places = append(g.places, placeFindings{decl, []shownFinding{{Finding: f}}})
}

// object prints what differs in one object, each setting at the line that declares it.
func (r *Renderer) object(p *page, g objectFindings, verdict string, sides [2]string) {
	p.put(bold, string(g.addr))
	which := " it "
	for _, a := range g.also {
		which = " each "
		p.line(plain, ",")
		p.put(bold, string(a))
	}
	p.put(bold, verdict)
	p.put(plain, ":")
	if len(g.texts) == 1 {
		p.put(plain, which, g.texts[0])
	}
	p.nl()
	if len(g.texts) > 1 {
		for _, t := range g.texts {
			p.line(plain, "  - it ", t)
		}
	}
	if len(g.places) == 0 && g.decl.Filename != "" {
		p.nl()
		p.place(g.decl, "  ")
	}
	for _, pl := range g.places {
		p.nl()
		p.place(pl.decl, "  ")
		for _, f := range pl.findings {
			p.finding(f, sides)
		}
	}
}

// finding prints the two sides of one setting.
func (p *page) finding(f shownFinding, sides [2]string) {
	const indent = "      "
	if f.Extra != nil {
		p.line(bold, indent, f.Extra.Path)
		p.side(sides[0], []string{"nothing"}, plain)
		p.side(sides[1], []string{f.Extra.Detail}, red)
		return
	}
	m := *f.Mismatch
	p.put(bold, indent, fieldName(m.Field))
	if !strings.EqualFold(fieldName(m.Field), m.Field.Path) {
		p.put(faint, " (", strings.Join(append([]string{m.Field.Path}, f.more...), ", "), ")")
	}
	p.nl()
	want, got := shown(m.Want, m.Field), shown(m.Got, m.Field)
	room := p.r.width() - sideColumn
	nodes := structural(want, got, 0, room)
	if w, g := flow(want, room), flow(got, room); nodes == nil || short(w, room) && short(g, room) {
		p.side(sides[0], w, plain)
		p.side(sides[1], g, red)
		p.cause(m.Field)
		return
	}
	// Too long to lay side by side: what differs within is what a person looks for.
	p.line(plain, "        ", sides[0], " -> ", sides[1])
	for _, n := range nodes {
		p.lead(n.sym, 1+n.depth)
		p.line(plain, strings.Repeat(" ", max(0, n.pad)), n.text)
	}
}

// cause says what usually undoes a setting that is restored in place: no attack, as a rule.
func (p *page) cause(f planner.Field) {
	if f.Class != planner.ClassSet || f.Reason == "" {
		return
	}
	for _, l := range wrap("("+f.Reason+")", p.r.width()-8) {
		p.line(faint, "        ", l)
	}
}

func short(lines []string, room int) bool {
	for _, l := range lines {
		if cells(l) > room {
			return false
		}
	}
	return len(lines) <= sideLines
}

const (
	sideColumn = 18 // where the values of a finding begin
	sideLines  = 4  // the most lines that a side takes
)

func (p *page) side(name string, lines []string, st style) {
	for i, l := range lines {
		if i > 0 {
			name = ""
		}
		p.put(plain, "        ", fmt.Sprintf("%-10s", name))
		p.line(st, l)
	}
}

// Stopped shows what changed while an agent ran.
func (r *Renderer) Stopped(_ planner.Address, fs []planner.Finding) string {
	p := &page{r: r}
	p.nl()
	for i, g := range perObject(fs) {
		if i > 0 {
			p.nl()
		}
		r.object(p, g, " has changed while it ran", sidesGate)
	}
	p.nl()
	return p.String()
}
