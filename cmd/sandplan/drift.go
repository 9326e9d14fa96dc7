package main

import (
	"context"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/drift"
	"github.com/sandplan/sandplan/planner"
)

type driftFlags struct {
	vars     varFlags
	ignore   []string
	recorded bool
	project  string
	input    bool
}

func (a *app) driftCommand() *cobra.Command {
	var f driftFlags
	cmd := &cobra.Command{
		Use:   "drift [options]",
		Short: "Report what was changed on the engine since the last apply; changes nothing",
		Long: `
Holds every object of the scope against what the last apply made it, and that against the configuration. It
never writes and never locks.

Exit code 0: all is as declared; 1: an error; 2: something drifted; 3: something is only pending.`,
		Example: "sandplan drift\nsandplan drift -recorded -project=codeboost",
		Args:    noArguments,
		RunE:    a.action(func(cmd *cobra.Command, _ []string) int { return a.drift(cmd.Context(), f) }),
	}
	f.vars.register(cmd.Flags())
	a.inputFlag(cmd, &f.input)
	a.jsonFlag(cmd)
	neverLocks(cmd)
	fs := cmd.Flags()
	fs.StringArrayVar(&f.ignore, "ignore", nil, "leave `address.field` out of this report, repeatable")
	fs.BoolVar(&f.recorded, "recorded", false, "hold objects against their own labels only; needs no variables")
	fs.StringVar(&f.project, "project", "", "the project, a `name`; with -recorded, which needs no configuration then")
	return cmd
}

func (a *app) drift(ctx context.Context, f driftFlags) int {
	u := a.ui()
	var ignore []drift.Ignore
	var diags hcl.Diagnostics
	for _, text := range f.ignore {
		i, err := drift.ParseIgnore(text)
		if err != nil {
			diags = append(diags, asDiagnostics(err)...)
		}
		ignore = append(ignore, i)
	}
	if f.project != "" && !f.recorded {
		return a.fail(misuse("drift", "-project goes with -recorded: without it the configuration says which project it is"))
	}
	if f.recorded && len(f.vars.args) > 0 {
		return a.fail(misuse("drift", "-recorded evaluates no configuration, so variables mean nothing to it"))
	}
	if u.report(diags) {
		return exitError
	}
	in := a.watch(ctx, false, nil)
	defer in.done()
	pl, wrong, ok := a.audited(in.ctx, u, f)
	if !ok {
		return exitError
	}
	report := drift.Audit(pl, ignore...)
	objects, titles := 0, map[planner.Address]string{}
	for _, c := range pl.Changes {
		if c.Object.ID != "" {
			objects++
		}
		if c.Title != "" {
			titles[c.Addr], titles[c.Addr.Invocation()] = c.Title, c.Title
		}
	}
	u.print(u.out.Drift(pl.Scope, objects, report.Findings, titles))
	u.print(u.out.Ignored(len(report.Ignored)))
	if len(pl.Warnings) > 0 {
		u.print(u.out.Gap())
		u.notices(pl.Warnings)
	}
	// A mistake in the configuration, or an image that somebody removed, hides nothing of what drifted.
	if u.report(wrong) && report.Code() != drift.CodeDrift {
		return exitError
	}
	return report.Code()
}

// audited is the comparison that the report is about, and what is wrong besides. Where the configuration
// does not fit this machine, objects are held against their own labels.
func (a *app) audited(ctx context.Context, u *ui, f driftFlags) (*planner.Plan, hcl.Diagnostics, bool) {
	if f.recorded {
		pl, ok := a.recorded(ctx, u, f)
		return pl, nil, ok
	}
	t, ok := a.opened(ctx, u, planFlags{vars: f.vars, input: f.input})
	if !ok {
		return nil, nil, false
	}
	defer t.engine.Close()
	diags := t.compare(ctx)
	if t.compiled == nil {
		if t.snap.EngineID == "" { // not even looked at
			u.report(diags)
			return nil, nil, false
		}
		return planner.Diff(planner.Recorded(t.snap), t.snap, planner.Options{}), diags, true
	}
	u.report(diags) // warnings
	_, pl, ok := a.diff(u, t, planFlags{})
	return pl, t.obstacles, ok
}

// recorded holds objects against their own labels.
func (a *app) recorded(ctx context.Context, u *ui, f driftFlags) (*planner.Plan, bool) {
	project, host, ok := a.scopeOnly(u, f.project)
	if !ok {
		return nil, false
	}
	engine, err := a.open(ctx, host, a.cwd)
	if err != nil {
		u.fail(err)
		return nil, false
	}
	defer engine.Close()
	snap, err := engine.Observe(ctx, planner.Scope{Project: project, Workspace: a.workspace()})
	if err != nil {
		u.fail(err)
		return nil, false
	}
	return planner.Diff(planner.Recorded(snap), snap, planner.Options{}), true
}
