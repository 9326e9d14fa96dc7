package render

import (
	"fmt"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Located is what an Extra of a diagnostic has that is about one object or instance.
type Located interface{ DiagnosticAddress() string }

// About is the address that a diagnostic is about, as its Extra.
type About string

// DiagnosticAddress is the address itself.
func (a About) DiagnosticAddress() string { return string(a) }

// Split sorts diagnostics by place and parts errors from warnings: they go to different streams.
func Split(diags hcl.Diagnostics) (errs, warnings hcl.Diagnostics) {
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			errs = append(errs, d)
		} else {
			warnings = append(warnings, d)
		}
	}
	byPlace(errs)
	byPlace(warnings)
	return errs, warnings
}

func byPlace(diags hcl.Diagnostics) {
	sort.SliceStable(diags, func(i, j int) bool {
		a, b := diags[i].Subject, diags[j].Subject
		if a == nil || b == nil {
			return a == nil && b != nil
		}
		if a.Filename != b.Filename {
			return a.Filename < b.Filename
		}
		return a.Start.Byte < b.Start.Byte
	})
}

// Diagnostics is the text of diagnostics in the order given. Warnings that say the same of several
// places are told once, with the number of the others; so are errors of one place, with what they are about: each
// instance of a block may have the same mistake.
func (r *Renderer) Diagnostics(diags hcl.Diagnostics) string {
	p := &page{r: r}
	for i, d := range diags {
		var also []string
		n, first := sameWarnings(diags, i)
		if n > 0 {
			also = []string{fmt.Sprintf("(and %d more like it)", n)}
		}
		if d.Severity == hcl.DiagError {
			also, first = sameErrors(diags, i)
		}
		if !first {
			continue
		}
		if p.b.Len() > 0 {
			p.nl()
		}
		r.diagnostic(p, d, also)
	}
	return p.String()
}

// Errors of one place are told together from so many on, and of the others no more than this.
const (
	fewErrors  = 3
	mostErrors = 10
)

// sameErrors are the first sentences of the further errors that have the summary and the place of diags[i]; first
// is false when an earlier one speaks for diags[i].
func sameErrors(diags hcl.Diagnostics, i int) (also []string, first bool) {
	d := diags[i]
	if d.Subject == nil {
		return nil, true
	}
	var others []string
	earlier := false
	for j, e := range diags {
		if j == i || e.Severity != hcl.DiagError || e.Summary != d.Summary || e.Subject == nil || *e.Subject != *d.Subject {
			continue
		}
		earlier = earlier || j < i
		sentence, _, _ := strings.Cut(e.Detail, ". ")
		others = append(others, "  "+strings.TrimSuffix(sentence, "."))
	}
	switch {
	case len(others)+1 < fewErrors:
		return nil, true
	case earlier:
		return nil, false
	}
	if n := len(others) - mostErrors; n > 1 {
		others = append(others[:mostErrors], fmt.Sprintf("  and %d more", n))
	}
	return append([]string{"The same holds here:"}, others...), true
}

// Problems is the text of the errors of a command; of several it gives the number.
func (r *Renderer) Problems(errs, warnings hcl.Diagnostics) string {
	text := r.Diagnostics(errs)
	if len(errs) > 1 {
		text += "\n" + tally(errs, warnings) + "\n"
	}
	return text
}

// Warnings is the text of warnings with an empty line below; compact is a summary and a place each.
func (r *Renderer) Warnings(diags hcl.Diagnostics, compact bool) string {
	if !compact {
		return r.Diagnostics(diags) + "\n"
	}
	p := &page{r: r}
	for _, d := range diags {
		p.put(boldAmber, "Warning: ")
		p.put(bold, d.Summary)
		if d.Subject != nil {
			p.put(plain, " (", fileName(d.Subject.Filename), lineNumber(*d.Subject), ")")
		}
		p.nl()
	}
	p.nl()
	return p.String()
}

// sameWarnings counts the further warnings that have the summary of diags[i] and a place of their
// own; first is false when an earlier one speaks for diags[i].
func sameWarnings(diags hcl.Diagnostics, i int) (others int, first bool) {
	d := diags[i]
	if d.Severity != hcl.DiagWarning || d.Subject == nil {
		return 0, true
	}
	for j, e := range diags {
		if j == i || e.Severity != hcl.DiagWarning || e.Summary != d.Summary || e.Subject == nil {
			continue
		}
		if j < i {
			return 0, false
		}
		others++
	}
	return others, true
}

// diagnostic prints one: a box where there is colour, plain lines where there is none.
func (r *Renderer) diagnostic(p *page, d *hcl.Diagnostic, also []string) {
	inner := &page{r: r}
	if r.Color {
		narrow := *r
		narrow.Width = r.width() - 2
		inner.r = &narrow
	}
	head, st := "Error: ", boldRed
	if d.Severity == hcl.DiagWarning {
		head, st = "Warning: ", boldAmber
	}
	lines := []string{head + d.Summary} // one line, where nobody sees it break
	if r.Color {
		lines = wrap(lines[0], inner.r.width())
	}
	for i, l := range lines {
		if i == 0 {
			inner.put(st, head)
			l = strings.TrimSpace(strings.TrimPrefix(l, strings.TrimSpace(head)))
		}
		inner.line(bold, l)
	}
	inner.nl()
	var about Located
	if e, ok := hcl.DiagnosticExtra[Located](d); ok {
		about = e
	}
	if about != nil && about.DiagnosticAddress() != "" {
		inner.line(plain, "  with ", about.DiagnosticAddress(), ":")
	}
	if d.Subject != nil {
		inner.place(*d.Subject, "  ")
		inner.values(d)
	}
	if about != nil || d.Subject != nil {
		inner.nl()
	}
	inner.paragraph(plain, "", d.Detail)
	if len(also) > 0 {
		inner.nl()
	}
	for _, l := range also {
		inner.line(plain, l)
	}
	p.boxed(inner, st)
}

// boxed prints what inner collected, with a line along its left side where there is colour.
func (p *page) boxed(inner *page, st style) {
	text := strings.TrimRight(inner.String(), "\n")
	if !p.r.Color {
		p.b.WriteString(text + "\n")
		return
	}
	p.line(st, "╷")
	for _, l := range strings.Split(text, "\n") {
		p.put(st, "│ ")
		p.b.WriteString(l + "\n")
	}
	p.line(st, "╵")
}

// values says what the names in the failing expression stand for.
func (p *page) values(d *hcl.Diagnostic) {
	for i, v := range Values(d) {
		lead := "      where "
		if i > 0 {
			lead = "        and "
		}
		p.line(plain, lead, v.Name, " ", v.Text)
	}
	if call := Called(d); call != "" {
		p.line(plain, "      while calling ", call)
	}
}

// Called is the function that failed, with the names of its parameters; "" where none did.
func Called(d *hcl.Diagnostic) string {
	call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d)
	if !ok || call.CalledFunctionName() == "" {
		return ""
	}
	var names []string
	for ctx := d.EvalContext; ctx != nil; ctx = ctx.Parent() {
		f, known := ctx.Functions[call.CalledFunctionName()]
		if !known {
			continue
		}
		for _, p := range f.Params() {
			names = append(names, p.Name)
		}
		if v := f.VarParam(); v != nil {
			names = append(names, v.Name+"...")
		}
		break
	}
	return call.CalledFunctionName() + "(" + strings.Join(names, ", ") + ")"
}

// NamedValue is what a name in a failing expression stands for.
type NamedValue struct{ Name, Text string }

// Values are the names in the failing expression of a diagnostic, sorted, as far as they say something.
func Values(d *hcl.Diagnostic) []NamedValue {
	if d.Expression == nil || d.EvalContext == nil {
		return nil
	}
	texts := map[string]string{}
	for _, t := range d.Expression.Variables() {
		v, diags := t.TraverseAbs(d.EvalContext)
		if diags.HasErrors() {
			continue
		}
		if what := describe(v); what != "" {
			texts[traversal(t)] = what
		}
	}
	var out []NamedValue
	for _, name := range sortedKeys(texts) {
		out = append(out, NamedValue{name, texts[name]})
	}
	return out
}

func traversal(t hcl.Traversal) string {
	var b strings.Builder
	for _, step := range t {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			b.WriteString(s.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + s.Name)
		case hcl.TraverseIndex:
			b.WriteString("[" + inlineCty(s.Key) + "]")
		}
	}
	return b.String()
}

// describe says what a value is, short enough for one line and never what is sensitive. What is not
// known yet is no news: that is why it says nothing then.
func describe(v cty.Value) string {
	if v.IsMarked() || v.ContainsMarked() {
		return "has a sensitive value"
	}
	if !v.IsKnown() {
		return ""
	}
	if v.IsNull() {
		return "is null"
	}
	t := v.Type()
	switch {
	case t.IsPrimitiveType():
		if text := inlineCty(v); cells(text) <= 60 {
			return "is " + text
		}
		return "is a " + t.FriendlyName()
	case t.IsCollectionType() || t.IsTupleType():
		return fmt.Sprintf("is %s with %s", t.FriendlyName(), plural(v.LengthInt(), "element"))
	}
	return "is " + t.FriendlyName()
}

// tally counts diagnostics for the last line of a command that found errors.
func tally(errs, warnings hcl.Diagnostics) string {
	s := plural(len(errs), "error")
	if len(warnings) > 0 {
		s += ", " + plural(len(warnings), "warning")
	}
	return s + "."
}
