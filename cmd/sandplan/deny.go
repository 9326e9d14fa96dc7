package main

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/permission"
)

// denied are the errors of -deny-widening: one for each invocation whose agent may do more than before, at the
// block that declares it.
func (f planFlags) denied(spec *hclspec.Spec, reports []permission.Report) hcl.Diagnostics {
	if !f.deny {
		return nil
	}
	before := "than what the engine's objects declare"
	if f.base != "" {
		before = "than in " + render.Clean(f.base)
	}
	var out hcl.Diagnostics
	for _, r := range reports {
		d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Agent may do more", Extra: render.About(r.Invocation)}
		switch {
		case r.New:
			d.Detail = fmt.Sprintf("There is nothing to compare %s with, so that all its agent may do is more %s.", r.Invocation, before)
		case len(r.Widened) > 0:
			d.Detail = fmt.Sprintf("The agent of %s may do more %s:", r.Invocation, before)
			for _, w := range r.Widened {
				d.Detail += "\n  - " + w.What + ": " + strings.TrimPrefix(render.WideningText(w), w.What+" ")
			}
		default:
			continue
		}
		if at := blockOf(spec, r.Invocation); at.Filename != "" {
			d.Subject = &at
		}
		out = append(out, d)
	}
	return out
}

// blockOf is where an invocation is declared.
func blockOf(spec *hclspec.Spec, addr planner.Address) hcl.Range {
	for _, inv := range spec.Invocations {
		if planner.Address(inv.Address) == addr.Invocation() {
			return inv.Range
		}
	}
	return hcl.Range{}
}
