package hclspec

import (
	"github.com/hashicorp/hcl/v2"
)

// Head is what commands need that must work with a configuration which no longer evaluates.
type Head struct {
	Project Val[string]
	Host    Val[string] // Unknown when it is not a constant
	Dir     string      // where the configuration lies, absolute
}

// ReadHead reads the project and the provider's host only: no variables, no references, and other
// mistakes are ignored.
func ReadHead(src Source) (Head, hcl.Diagnostics) {
	l := &loader{src: src, disk: newDisk(src.FS), sections: map[string][]*section{}, locals: map[string]*hcl.Attribute{}}
	l.spec = &Spec{Sources: map[string][]byte{}, Paths: map[string]string{}}
	var head Head
	var diags hcl.Diagnostics
	if l.place, diags = src.find(); diags.HasErrors() {
		return head, diags
	}
	head.Dir = l.place.dir
	l.ev = newEvaluator(l.disk, l.place.dir, newMeter(allowance))
	diags = l.parse()
	if len(l.sections["sandplan"]) == 0 {
		return head, tidy(diags)
	}
	// Whatever else is wrong: the block that is needed is there.
	r := &reader{section: l.sections["sandplan"][0], ev: l.ev, sc: &scope{}}
	head.Project = readConstant(r, "project", project, "")
	if r.attrs["project"] == nil {
		r.diags = append(r.diags, problem(MissingSandplan, r.block.DefRange, "The sandplan block names no project."))
	}
	for _, s := range l.sections["provider"] {
		attr := s.attrs["host"]
		if s.name != "docker" || attr == nil {
			continue
		}
		if len(attr.Expr.Variables()) > 0 {
			head.Host = Val[string]{Range: attr.Range, Unknown: true}
			continue
		}
		pr := &reader{section: s, ev: l.ev, sc: &scope{}}
		head.Host = read(pr, "host", engineHost, "")
		r.diags = append(r.diags, pr.diags...)
	}
	return head, tidy(r.diags)
}
