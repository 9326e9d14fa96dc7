package hclspec

import (
	"fmt"
	"sort"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/hcl/v2"
)

// problem is an error at a place of the source.
func problem(summary string, subject hcl.Range, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  summary,
		Detail:   fmt.Sprintf(format, args...),
		Subject:  subject.Ptr(),
	}
}

// fail is one problem as a list.
func fail(summary string, subject hcl.Range, format string, args ...any) hcl.Diagnostics {
	return hcl.Diagnostics{problem(summary, subject, format, args...)}
}

// suggest ends a message with the name that was probably meant, if one is near.
func suggest(given string, names []string) string {
	if n := nearest(given, names); n != "" {
		return fmt.Sprintf(" Did you mean %q?", n)
	}
	return ""
}

// nearest is the first of the names with the smallest edit distance below 3, as HCL itself suggests
// blocks and attributes.
func nearest(given string, names []string) string {
	best, dist := "", 3
	if len(given) > 100 { // the distance costs the product of the lengths
		return ""
	}
	for _, n := range names {
		if d := levenshtein.Distance(given, n, nil); d < dist {
			best, dist = n, d
		}
	}
	return best
}

// nameList joins names for a sentence: "a", "a and b", "a, b and c". A long list is cut.
func nameList(names []string) string {
	const most = 12
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	switch len(names) {
	case 0:
		return "none"
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// orList joins alternatives: "a", "a or b", "a, b or c".
func orList(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// instanceExtra ties a diagnostic to an instance. It wraps what HCL has put there.
type instanceExtra struct {
	address string
	inner   any
}

// UnwrapDiagnosticExtra is how hcl.DiagnosticExtra finds what is below.
func (e instanceExtra) UnwrapDiagnosticExtra() any { return e.inner }

// at ties diagnostics to an instance.
func at(address string, diags hcl.Diagnostics) hcl.Diagnostics {
	for _, d := range diags {
		d.Extra = instanceExtra{address, d.Extra}
	}
	return diags
}

// DiagnosticAddress is the address of the instance in which a diagnostic arose, and "" when it is about
// the configuration as a whole.
func DiagnosticAddress(d *hcl.Diagnostic) string {
	if e, ok := hcl.DiagnosticExtra[instanceExtra](d); ok {
		return e.address
	}
	return ""
}

// tidy sorts diagnostics by place, drops repetitions (an expression evaluated for many instances fails
// in each of them) and cuts a list that nobody would read to its end.
func tidy(diags hcl.Diagnostics) hcl.Diagnostics {
	const most = 200
	sort.SliceStable(diags, func(i, j int) bool { return lessPlace(diags[i], diags[j]) })
	type identity struct {
		severity              hcl.DiagnosticSeverity
		summary, detail, file string
		start, end            int
	}
	seen := map[identity]bool{}
	var out hcl.Diagnostics
	for _, d := range diags {
		explain(d)
		id := identity{severity: d.Severity, summary: d.Summary, detail: d.Detail}
		if d.Subject != nil {
			id.file, id.start, id.end = d.Subject.Filename, d.Subject.Start.Byte, d.Subject.End.Byte
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		if len(out) == most {
			return append(out, problem(TooMany, *out[most-1].Subject, "Only the first %d are shown.", most))
		}
		out = append(out, d)
	}
	return out
}

func lessPlace(a, b *hcl.Diagnostic) bool {
	ra, rb := hcl.Range{}, hcl.Range{}
	if a.Subject != nil {
		ra = *a.Subject
	}
	if b.Subject != nil {
		rb = *b.Subject
	}
	if ra.Filename != rb.Filename {
		return ra.Filename < rb.Filename
	}
	if ra.Start.Byte != rb.Start.Byte {
		return ra.Start.Byte < rb.Start.Byte
	}
	if a.Summary != b.Summary {
		return a.Summary < b.Summary
	}
	return a.Detail < b.Detail
}
