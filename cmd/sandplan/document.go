package main

import (
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/machine"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
)

// planDocument is a plan for programs.
func (a *app) planDocument(t *target, pl *planner.Plan) (string, hcl.Diagnostics) {
	var checks []hclspec.CheckResult
	if !pl.Destroy {
		checks = t.spec.CheckResults(t.compiled.Live(kept(pl, t.snap)))
	}
	was, will, diags := outputsOf(t, pl)
	return machine.Document(machine.NewPlan(machine.PlanInput{
		Plan: pl, Permissions: permissions(t.spec, pl), Snapshot: t.snap, Before: was, Outputs: will,
		Variables: variables(t.spec), Configuration: machine.NewConfiguration(t.spec), Checks: machine.NewChecks(checks),
		Version: a.version, Now: a.now(),
	})), diags
}

// outputsOf are the outputs of what the engine has, and of what it will have when a plan is carried out.
func outputsOf(t *target, pl *planner.Plan) (was, will []render.Output, diags hcl.Diagnostics) {
	if pl.Destroy { // nothing is compiled then, and no output has a value afterwards
		return nil, nil, nil
	}
	after, diags := t.spec.EvalOutputs(t.compiled.Live(kept(pl, t.snap)))
	if there := found(t.snap); there != nil {
		// One that cannot be said of what is there was not there before, which is no mistake.
		before, _ := t.spec.EvalOutputs(there)
		was = outputs(before)
	}
	return was, outputs(after), diags
}

// kept are the IDs of the objects that stay what they are, those that a plan leaves out included.
func kept(pl *planner.Plan, s planner.Snapshot) planner.IDs {
	ids := planner.IDs{}
	for _, o := range s.Objects {
		ids[o.Addr] = o.ID
	}
	for _, c := range pl.Changes {
		if c.Action != planner.ActionNoOp && c.Action != planner.ActionRestore {
			delete(ids, c.Addr)
		}
	}
	return ids
}

// found is what outputs refer to, read from the objects themselves: no state remembers what an output was, but
// whatever made it what it was is there. It is nil where nothing was ever applied.
func found(s planner.Snapshot) map[string]hclspec.Live {
	var out map[string]hclspec.Live
	for _, o := range s.Objects {
		if o.Kind == planner.KindImage || o.Kind == planner.KindPinned {
			continue // the engine's, whether or not anything was applied
		}
		if out == nil {
			out = map[string]hclspec.Live{}
		}
		l := out[string(o.Addr.Invocation())]
		switch o.Kind {
		case planner.KindNetwork:
			l.NetworkID, l.NetworkName, l.Subnet = o.ID, observedText(o, "Name"), observedText(o, "IPAM.Config[0].Subnet")
		case planner.KindProxy:
			listen, _, _ := strings.Cut(observedText(o, "Config.Cmd[1].listen"), ":")
			l.ProxyID, l.ProxyName, l.ProxyAddress = o.ID, observedText(o, "Name"), listen
		case planner.KindAgent:
			l.AgentID, l.AgentName = o.ID, observedText(o, "Name")
		}
		out[string(o.Addr.Invocation())] = l
	}
	return out
}

// observedText is a setting of an object as text, or "".
func observedText(o planner.Object, path string) string {
	for _, f := range o.Observed {
		var text string
		if f.Path == path && f.Value.Decode(&text) == nil {
			return text
		}
	}
	return ""
}
