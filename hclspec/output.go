package hclspec

import (
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

var outputShape = &shape{label: "name", required: []string{"value"}, optional: []string{"description", "sensitive"}}

// Output is one evaluated output.
type Output struct {
	Name        string
	Description string
	// Sensitive values are never printed, not even as JSON. Value is there all the same.
	Sensitive bool
	// Value may be unknown, or hold unknown parts, until everything is applied.
	Value cty.Value
	Range hcl.Range
}

// decodeOutput evaluates an output block.
func (ev *evaluator) decodeOutput(s *section) (Output, hcl.Diagnostics) {
	o := Output{Name: s.name, Value: cty.DynamicVal, Range: s.block.DefRange}
	diags := s.checkName()
	diags = append(diags, constantAttr(ev, s, "description", cty.String, func(v cty.Value) { o.Description = v.AsString() })...)
	diags = append(diags, constantAttr(ev, s, "sensitive", cty.Bool, func(v cty.Value) { o.Sensitive = v.True() })...)
	attr := s.attrs["value"]
	if attr == nil {
		return o, diags
	}
	v, more := ev.value(attr.Expr, liveScope())
	diags = append(diags, more...)
	v, hidden := unmark(v)
	if hidden && !o.Sensitive {
		diags = append(diags, problem(SensitiveOutput, attr.Expr.Range(), "The value uses a sensitive one, and outputs are printed. Set sensitive = true to keep it out of all output."))
		v, o.Sensitive = cty.DynamicVal, true
	}
	o.Value = v
	return o, diags
}

var (
	assertShape = &shape{required: []string{"condition", "error_message"}}
	checkShape  = &shape{label: "name", blocks: map[string]*shape{"assert": assertShape}}
)

// decodeCheck evaluates the assertions of a check block.
func (ev *evaluator) decodeCheck(s *section) hcl.Diagnostics {
	diags := s.checkName()
	asserts := s.inner("assert")
	if len(asserts) == 0 {
		diags = append(diags, problem(MissingAssert, s.block.DefRange, "check %q has no assert block, so it checks nothing.", clip(s.name)))
	}
	for _, a := range asserts {
		at := a.block.DefRange
		if c := a.attrs["condition"]; c != nil {
			at = c.Expr.Range()
		}
		diags = append(diags, ev.assertion(a, liveScope(), hcl.DiagWarning, FailedCheck, at)...)
	}
	return diags
}

// EvalOutputs evaluates the output blocks of a Spec that was loaded without errors, by this process or,
// through JSON, by another. live is by the address of the instance; what is missing there is unknown.
func (s *Spec) EvalOutputs(live map[string]Live) (map[string]Output, hcl.Diagnostics) {
	out := map[string]Output{}
	late, diags := s.late(live)
	for _, o := range late.outputs {
		val, more := late.ev.decodeOutput(o)
		out[o.name] = val
		diags = append(diags, more...)
	}
	return out, append(diags, late.ev.meter.report()...)
}

// EvalChecks evaluates the check blocks. An assertion that does not hold is a warning; one that
// depends on what is not known yet is passed over.
func (s *Spec) EvalChecks(live map[string]Live) hcl.Diagnostics {
	late, diags := s.late(live)
	for _, c := range late.checks {
		diags = append(diags, late.ev.decodeCheck(c)...)
	}
	return append(diags, late.ev.meter.report()...)
}

// CheckState is what is known of a check block.
type CheckState string

// States of a check: one assertion that fails is enough for a failure, one that is unknown for an unknown.
const (
	CheckPass    CheckState = "pass"
	CheckFail    CheckState = "fail"
	CheckUnknown CheckState = "unknown" // it depends on what only apply tells
	CheckError   CheckState = "error"   // it cannot be evaluated
)

// CheckResult is one check block with what came of it.
type CheckResult struct {
	Name  string
	State CheckState
	// Problems are the messages of the assertions that failed, or of what kept them from being evaluated.
	Problems []string
	Range    hcl.Range
}

// CheckResults says of each check block, in the order of names, what EvalChecks says of the failed ones.
func (s *Spec) CheckResults(live map[string]Live) []CheckResult {
	var out []CheckResult
	late, _ := s.late(live)
	for _, c := range late.checks {
		r := CheckResult{Name: c.name, State: CheckPass, Range: c.block.DefRange}
		for _, a := range c.inner("assert") {
			if cond := a.attrs["condition"]; cond != nil {
				if v, diags := late.ev.value(cond.Expr, liveScope()); !diags.HasErrors() && !v.IsKnown() {
					r.State = CheckUnknown
				}
			}
		}
		for _, d := range late.ev.decodeCheck(c) {
			switch {
			case d.Severity == hcl.DiagError:
				r.State = CheckError
			case d.Summary != FailedCheck:
				continue
			case r.State != CheckError:
				r.State = CheckFail
			}
			text, _, _ := strings.Cut(d.Detail, "\n\nThe condition is at ")
			r.Problems = append(r.Problems, text)
		}
		out = append(out, r)
	}
	return out
}

// sortSections orders sections by name, for a stable order of evaluation.
func sortSections(list []*section) {
	sort.SliceStable(list, func(i, j int) bool { return list[i].name < list[j].name })
}
