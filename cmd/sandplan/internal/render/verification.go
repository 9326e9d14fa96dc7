package render

import (
	"fmt"
	"strings"

	"github.com/sandplan/sandplan/applier/verify"
)

// Verification is the report of a verification, one table for each invocation. What went wrong is told in
// full; what held says only where it would have been seen.
func (r *Renderer) Verification(v verify.Report) string {
	p := &page{r: r}
	for i, s := range v.Subjects {
		if i > 0 {
			p.nl()
		}
		r.subject(p, s)
	}
	if len(v.Subjects) > 0 {
		p.nl()
		verdict(p, v)
	}
	return p.String()
}

func (r *Renderer) subject(p *page, s verify.Subject) {
	p.put(bold, string(s.Addr))
	p.line(plain, " after ", tenths(s.Took))
	p.nl()
	ids, places := 0, 0
	for _, f := range s.Findings {
		ids, places = max(ids, len(f.ID)), max(places, len(f.Where))
	}
	p.line(faint, fmt.Sprintf("  %-12s%-*s  %-*s  %s", "result", ids, "attempt", places, "seen at", "what it tries"))
	for _, f := range s.Findings {
		word, st := statusWord(f.Status)
		p.put(st, fmt.Sprintf("  %-12s", word))
		p.put(plain, fmt.Sprintf("%-*s  ", ids, f.ID))
		p.put(faint, fmt.Sprintf("%-*s  ", places, f.Where))
		p.line(plain, f.What)
		if told := f.Status == verify.Escaped || f.Status == verify.Unproven; told || r.Verbose {
			p.detail(st, map[verify.Status]string{verify.Escaped: "seen", verify.Unproven: "why"}[f.Status], f.Detail)
			if r.Verbose {
				p.detail(faint, "control", f.Proof)
				p.detail(faint, "source", f.Source)
			}
		}
	}
	if d := s.Decision; d != nil {
		p.nl()
		p.line(boldRed, "  Its probe did not come to its end: ", d.Error(), fmt.Sprintf(" (%d)", d.Code))
	}
}

// detail is one further line of a row.
func (p *page) detail(st style, what, text string) {
	if text == "" {
		return
	}
	if what == "" {
		what = "came of it"
	}
	p.put(faint, fmt.Sprintf("  %-12s%s: ", "", what))
	p.line(st, text)
}

// statusWord is how a status is called. The one that matters is not told by colour alone.
func statusWord(s verify.Status) (string, style) {
	switch s {
	case verify.Held:
		return "held", green
	case verify.Escaped:
		return "ESCAPED", boldRed
	case verify.Unproven:
		return "not proven", yellow
	}
	return "no such", faint
}

// verdict is the last line.
func verdict(p *page, v verify.Report) {
	counts := map[verify.Status]int{}
	for _, s := range v.Subjects {
		for _, f := range s.Findings {
			counts[f.Status]++
		}
	}
	var parts []string
	for _, s := range []verify.Status{verify.Escaped, verify.Unproven} {
		if n := counts[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, map[verify.Status]string{verify.Escaped: "escaped", verify.Unproven: "not proven"}[s]))
		}
	}
	total := counts[verify.Held] + counts[verify.Escaped] + counts[verify.Unproven]
	text := fmt.Sprintf("%d of %s held", counts[verify.Held], plural(total, "attempt"))
	if len(parts) > 0 {
		text += ", " + strings.Join(parts, ", ")
	}
	st := boldGreen
	if v.Code() != 0 {
		st = boldRed
	}
	p.put(st, text)
	p.put(plain, " on Docker ", v.Engine, ", after ", tenths(v.Took))
	if n := counts[verify.Moot]; n > 0 {
		p.put(plain, "; ", plural(n, "more attempt"), " had nothing here to try")
	}
	p.line(plain, ".")
}
