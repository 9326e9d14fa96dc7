package hclspec

import (
	"fmt"
	"regexp"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

var sandplanShape = &shape{required: []string{"project"}, optional: []string{"required_version"}}

var projectPattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

// project is the name of the scope together with the workspace.
var project = format[string]{summary: InvalidName, want: cty.String, parse: func(v cty.Value) (string, error) {
	s := v.AsString()
	if !projectPattern.MatchString(s) {
		return "", fmt.Errorf("%q cannot name a project: a lower-case letter, and then up to 30 lower-case letters, digits and hyphens", clip(s))
	}
	return s, nil
}}

// workspacePattern is what a workspace may be called; it becomes part of engine names.
var workspacePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,30}$`)

// decodeSandplan reads the sandplan block. It is constant, so that commands which need no more than the
// project work without variables.
func (ev *evaluator) decodeSandplan(s *section, spec *Spec, running string) hcl.Diagnostics {
	r := &reader{section: s, ev: ev, sc: &scope{}}
	spec.Range = s.block.DefRange
	spec.Project = readConstant(r, "project", project, "")
	spec.RequiredVersion = readConstant(r, "required_version", versionConstraint, "")
	if c := spec.RequiredVersion; c.Set && !c.Unknown {
		r.diags = append(r.diags, meets(c, running)...)
	}
	return r.diags
}

// readConstant reads an attribute that may refer to nothing.
func readConstant[T any](r *reader, name string, f format[T], def T) Val[T] {
	val := Val[T]{V: def, Range: r.block.DefRange}
	attr := r.attrs[name]
	if attr == nil {
		return val
	}
	v, diags := r.ev.constant(attr.Expr)
	r.diags = append(r.diags, diags...)
	val.Range = attr.Range
	if diags.HasErrors() {
		val.Unknown = true
		return val
	}
	return interpret(r, attr, v, f, val)
}

var versionConstraint = format[string]{summary: InvalidConstraint, want: cty.String, parse: func(v cty.Value) (string, error) {
	s := v.AsString()
	if len(s) > 200 {
		return "", fmt.Errorf("it has %d characters, and at most 200 are allowed", len(s))
	}
	if _, err := version.NewConstraint(s); err != nil {
		return "", fmt.Errorf(`%q is not a version constraint; write one as in ">= 0.1.0" or "~> 0.2"`, clip(s))
	}
	return s, nil
}}

// meets compares the running version without its pre-release part, as Terraform does: 0.2.0-rc1 is
// meant to try what 0.2.0 will do.
func meets(c Val[string], running string) hcl.Diagnostics {
	if running == "" || running == "dev" {
		return nil
	}
	v, err := version.NewVersion(running)
	if err != nil { // a build without a released version
		return nil
	}
	constraint, err := version.NewConstraint(c.V)
	if err != nil || constraint.Check(v.Core()) {
		return nil
	}
	return fail(UnsupportedVersion, c.Range, "This configuration asks for sandplan %s, and this is %s. Use another version of sandplan, or change required_version when you know that this one will do.", c.V, v)
}
