package hclspec

import (
	"fmt"
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

// warn is one warning as a list.
func warn(summary string, subject hcl.Range, format string, args ...any) hcl.Diagnostics {
	d := problem(summary, subject, format, args...)
	d.Severity = hcl.DiagWarning
	return hcl.Diagnostics{d}
}

// suggest ends a message with the name that was probably meant, or with all that are possible.
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
