package render

import (
	"strings"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/permission"
)

// What the reports for programs and for web pages say in the same words as the terminal's text.

// ValueText is one side of a setting on one line, in HCL's notation; "nothing" where there is none.
func ValueText(v planner.Value, f planner.Field) string {
	if v.IsZero() && !f.Sensitive {
		return "nothing"
	}
	return inline(shown(v, f))
}

// FieldName is what people call a setting: its attribute, else its label, else its path.
func FieldName(f planner.Field) string { return fieldName(f) }

// Sides are the names of the two sides of a finding.
func Sides(k planner.FindingKind) (want, got string) {
	switch k {
	case planner.FindingDrift:
		return sidesDrift[0], sidesDrift[1]
	case planner.FindingPending:
		return sidesPending[0], sidesPending[1]
	}
	return sidesGate[0], sidesGate[1]
}

// FindingText is a finding as one sentence, without the name of its object.
func FindingText(f planner.Finding) string {
	switch {
	case f.Extra != nil:
		return Clean(f.Extra.Path + " is there, and nothing declares it: " + f.Extra.Detail)
	case f.Mismatch == nil:
		return Clean("it " + f.Text)
	}
	m := f.Mismatch
	name := fieldName(m.Field)
	if !strings.EqualFold(name, m.Field.Path) {
		name += " (" + m.Field.Path + ")"
	}
	want, got := Sides(f.Kind)
	return Clean(name + ": " + want + " " + ValueText(m.Want, m.Field) + ", " + got + " " + ValueText(m.Got, m.Field))
}

// PermissionLine is one row of the table of what an agent may do.
type PermissionLine struct {
	Name   string
	Values []string
	// Wider are what is more than before in it, in words.
	Wider []string
}

// PermissionLines are the rows of the table for one invocation.
func PermissionLines(rep permission.Report) []PermissionLine {
	wider := map[string][]string{}
	for _, w := range rep.Widened {
		name := permissionRow(w.What)
		wider[name] = append(wider[name], wideningText(w))
	}
	var out []PermissionLine
	for _, row := range permissionRows(rep.Set) {
		line := PermissionLine{Name: row.name, Wider: wider[row.name]}
		for _, v := range row.values {
			line.Values = append(line.Values, Clean(v))
		}
		delete(wider, row.name)
		out = append(out, line)
	}
	for _, name := range sortedKeys(wider) { // a row that the table does not show otherwise
		out = append(out, PermissionLine{Name: name, Wider: wider[name]})
	}
	return out
}

// WideningText is one widening as a clause.
func WideningText(w permission.Widening) string { return wideningText(w) }

// Summarise is the line that counts what an audit found, by object.
func Summarise(fs []planner.Finding) string {
	counts := map[planner.FindingKind]int{}
	for _, g := range perObject(fs) {
		counts[g.kind]++
	}
	if len(counts) == 0 {
		return "No drift."
	}
	p := &page{r: &Renderer{NoHints: true}}
	p.r.driftSummary(p, counts)
	return strings.TrimSpace(p.String())
}
