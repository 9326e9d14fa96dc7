package main

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner/policy"
)

// head is what commands need of a configuration that need not evaluate: the project, and which engine is meant.
// noEngine says why nobody can tell the latter. Then the command must end: another engine has nothing of the
// project, and all that it said would be true of the wrong one.
func (a *app) head(u *ui, vars varFlags) (head hclspec.Head, wrong, noEngine hcl.Diagnostics) {
	head, wrong = hclspec.ReadHead(a.source())
	if !head.Host.Unknown {
		return head, wrong, nil
	}
	spec, _ := hclspec.Load(a.source(), hclspec.Vars{Partial: true, Env: a.environ, Args: vars.args}, policy.Catalog())
	u.sources(spec.Sources)
	if h := spec.Provider.Host; !h.Unknown {
		head.Host = h
		return head, wrong, nil
	}
	return head, wrong, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Engine not known", Subject: head.Host.Range.Ptr(),
		Detail: "The host of the engine cannot be told here: it needs a variable that has no value, or is wrong itself. " +
			"Give the variable its value as SANDPLAN_VAR_NAME or in sandplan.spvars.hcl."}}
}

// scopeOnly is the project and the engine's host, without evaluating more than that takes: a configuration that
// no longer evaluates must not keep its objects alive. A project that is given needs no configuration at all.
func (a *app) scopeOnly(u *ui, project string, vars varFlags) (name, host string, ok bool) {
	head, wrong, noEngine := a.head(u, vars)
	if project != "" {
		wrong = nil
		head.Project.V = project
	}
	if u.report(append(wrong, noEngine...)) {
		return "", "", false
	}
	return head.Project.V, head.Host.V, true
}

// engineHost is the engine that the configuration means, if there is one.
func (a *app) engineHost(u *ui) (string, error) {
	head, _, noEngine := a.head(u, varFlags{})
	if noEngine.HasErrors() {
		return "", noEngine
	}
	return head.Host.V, nil
}
