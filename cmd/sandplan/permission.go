package main

import (
	"fmt"
	"slices"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/machine"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/permission"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker"
)

// permissions are what every agent of a plan may do once it is applied, held against what the engine's
// objects declare.
func permissions(spec *hclspec.Spec, pl *planner.Plan) []permission.Report {
	return permissionsOf(spec, pl.Changes)
}

func permissionsOf(spec *hclspec.Spec, changes []planner.Change) []permission.Report {
	want, have := map[planner.Address][]planner.Field{}, map[planner.Address][]planner.Field{}
	for _, c := range changes {
		want[c.Addr], have[c.Addr] = c.After, c.Object.Declared
	}
	now := docker.Permissions(want)
	for i := range now {
		nameSet(spec, &now[i])
	}
	return permission.Against(docker.Permissions(have), now)
}

// nameSet adds what only the configuration knows of an invocation: the words that people use.
func nameSet(spec *hclspec.Spec, s *permission.Set) {
	c, err := policy.Seal(spec, string(s.Invocation))
	if err != nil {
		return // it was sealed before, to be compiled; without it the table only lacks these names
	}
	s.Vendor, s.Phase, s.Tools, s.Ceiling = c.Vendor(), c.Phase(), c.Tools(), ceiling(c.Base())
}

// ceiling is what a built-in phase allows at most.
func ceiling(base string) []string {
	p := policy.Catalog().Phases[base]
	out := slices.Clone(p.Tools)
	if p.Writable {
		out = append(out, "a writable worktree")
	}
	if p.Runners {
		out = append(out, "approved commands")
	}
	return out
}

// unread are the permissions that a plan brings to a reviewer: those of new invocations, and of those whose
// declaration has changed.
func unread(reports []permission.Report, pl *planner.Plan) []permission.Report {
	pending := map[planner.Address]bool{}
	for _, c := range pl.Changes {
		if len(c.Pending) > 0 {
			pending[c.Addr.Invocation()] = true
		}
	}
	var out []permission.Report
	for _, r := range reports {
		if r.New || len(r.Widened) > 0 || pending[r.Invocation] {
			out = append(out, r)
		}
	}
	return out
}

// unsettled are the changes of invocations of which not every label says what the configuration says. Of
// the others the permissions are the same on both sides, since they are read from just that.
func unsettled(pl *planner.Plan) []planner.Change {
	open := map[planner.Address]bool{}
	for _, c := range pl.Changes {
		same := len(c.Pending) == 0 && c.After != nil && c.Object.Declared != nil && c.Object.Digest == c.Digest
		open[c.Addr.Invocation()] = open[c.Addr.Invocation()] || !same
	}
	return slices.DeleteFunc(slices.Clone(pl.Changes), func(c planner.Change) bool { return !open[c.Addr.Invocation()] })
}

// approveForRun lets run -apply put right what somebody changed, make what is missing, and apply a changed
// declaration that lets no agent do more: anything else somebody has to read first.
func approveForRun(spec *hclspec.Spec, pl *planner.Plan) error {
	there := map[planner.Address]bool{}
	for _, c := range pl.Changes {
		there[c.Addr] = c.Object.ID != ""
	}
	for _, r := range permissions(spec, pl) {
		var why string
		switch {
		case len(r.Widened) > 0:
			w := r.Widened[0]
			why = fmt.Sprintf("%s would let its agent do more than before (%s: %s)", r.Invocation, w.What, w.Because)
		case r.New && there[r.Invocation.With(planner.PartAgent)]:
			why = fmt.Sprintf("the engine's %s does not say what it was allowed to do", r.Invocation)
		default:
			continue
		}
		return fmt.Errorf("%s, and run -apply does not apply what nobody has read; see sandplan plan, then sandplan apply", why)
	}
	return nil
}

// permissionsDocument is show -permissions -json.
func permissionsDocument(reports []permission.Report) string {
	return machine.Document(struct {
		FormatVersion string               `json:"format_version"`
		Permissions   []machine.Permission `json:"permissions"`
	}{machine.FormatVersion, machine.NewPermissions(reports)})
}
