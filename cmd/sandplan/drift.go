package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/drift"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
)

type driftFlags struct {
	vars     varFlags
	ignore   []string
	recorded bool
	project  string
	input    bool
	format   string
}

func (a *app) driftCommand() *cobra.Command {
	var f driftFlags
	cmd := &cobra.Command{
		Use:   "drift [options]",
		Short: "Report what was changed on the engine since the last apply; changes nothing",
		Long: `
Holds every object of the scope against what the last apply made it, and that against the configuration. It
never writes and never locks: the connection that it opens lets no writing call pass.

-ignore holds for this report only; no run starts for it. With -engine=FILE it works from a file that
"sandplan snapshot" wrote, without an engine.

Exit code 0: all is as declared; 1: an error; 2: something drifted; 3: something is only pending.`,
		Example: "sandplan drift\nsandplan drift -format=sarif >drift.sarif\nsandplan drift -recorded -project=codeboost",
		Args:    noArguments,
		RunE:    a.action(func(cmd *cobra.Command, _ []string) int { return a.drift(cmd.Context(), f) }),
	}
	f.vars.register(cmd.Flags())
	a.inputFlag(cmd, &f.input)
	a.jsonFlag(cmd)
	a.engineFlag(cmd)
	neverLocks(cmd)
	reportFlag(cmd, &f.format, driftFormats()...)
	fs := cmd.Flags()
	fs.StringArrayVar(&f.ignore, "ignore", nil, "leave `address.field` out of this report, repeatable")
	fs.BoolVar(&f.recorded, "recorded", false, "hold objects against their own labels only; needs no variables")
	fs.StringVar(&f.project, "project", "", "the project, a `name`; with -recorded, which needs no configuration then")
	return cmd
}

func driftFormats() []string {
	return []string{formatText, formatJSON, formatSARIF, formatJUnit, formatMarkdown}
}

func (f driftFlags) check() error {
	switch {
	case f.project != "" && !f.recorded:
		return misuse("drift", "-project goes with -recorded: without it the configuration says which project it is")
	case f.recorded && len(f.vars.args) > 0:
		return misuse("drift", "-recorded evaluates no configuration, so variables mean nothing to it")
	}
	return nil
}

func (a *app) drift(ctx context.Context, f driftFlags) int {
	err := f.check()
	if err == nil {
		err = a.checkFormat("drift", f.format, driftFormats()...)
	}
	if err != nil {
		return a.fail(err)
	}
	a.global.reads = true
	u := a.ui()
	told := &recorder{view: u.err}
	u.err, u.quiet = told, f.format != formatText
	var ignore []drift.Ignore
	var diags hcl.Diagnostics
	for _, text := range f.ignore {
		i, err := drift.ParseIgnore(text)
		if err != nil {
			diags = append(diags, asDiagnostics(err)...)
		}
		ignore = append(ignore, i)
	}
	if u.report(diags) {
		return exitError
	}
	in := a.watch(ctx, false, nil)
	defer in.done()
	found, ok := a.audited(in.ctx, u, f)
	if !ok {
		if f.format != formatText { // whoever reads the report alone must not take it for a clean one
			return a.driftReport(u, f.format, a.failedAudit(told.told))
		}
		return exitError
	}
	return a.tellDrift(u, f, found, drift.Audit(found.plan, ignore...))
}

// tellDrift prints what was found.
func (a *app) tellDrift(u *ui, f driftFlags, found audited, report drift.Report) int {
	code := report.Code()
	if f.format == formatText {
		a.driftText(u, found, report)
	}
	// A mistake in the configuration, or an image that somebody removed, hides nothing of what drifted.
	if u.report(found.wrong) && code != drift.CodeDrift {
		code = exitError
	}
	if f.format == formatText {
		return code
	}
	errs, _ := render.Split(found.wrong)
	return a.driftReport(u, f.format, a.newAudit(found, report, errs, code))
}

func (a *app) driftText(u *ui, found audited, report drift.Report) {
	pl := found.plan
	objects, titles := 0, map[planner.Address]string{}
	for _, c := range pl.Changes {
		if c.Object.ID != "" {
			objects++
		}
		if c.Title != "" {
			titles[c.Addr], titles[c.Addr.Invocation()] = c.Title, c.Title
		}
	}
	if found.taken != "" {
		u.notices([]string{"This is a snapshot. It was taken at " + found.taken + ", and what the engine has now may differ."})
	}
	u.print(u.out.Drift(pl.Scope, objects, report.Findings, titles))
	u.print(u.out.Ignored(len(report.Ignored)))
	if len(pl.Warnings) > 0 {
		u.print(u.out.Gap())
		u.notices(pl.Warnings)
	}
}

// audited is a comparison that a report is about.
type audited struct {
	plan *planner.Plan
	// spec is nil where objects were held against their own labels.
	spec *hclspec.Spec
	// wrong is what is wrong besides.
	wrong hcl.Diagnostics
	// taken is when the engine was looked at, for a snapshot.
	taken string
}

// audited is the comparison that the report is about. Where the configuration does not fit this machine,
// objects are held against their own labels.
func (a *app) audited(ctx context.Context, u *ui, f driftFlags) (audited, bool) {
	if f.recorded {
		pl, ok := a.recorded(ctx, u, f)
		return audited{plan: pl, taken: a.global.taken}, ok
	}
	t, ok := a.opened(ctx, u, planFlags{vars: f.vars, input: f.input})
	if !ok {
		return audited{}, false
	}
	defer t.engine.Close()
	diags := t.compare(ctx)
	if t.compiled == nil {
		if t.snap.EngineID == "" { // not even looked at
			u.report(diags)
			return audited{}, false
		}
		return audited{plan: planner.Diff(planner.Recorded(t.snap), t.snap, planner.Options{}), wrong: diags, taken: a.global.taken}, true
	}
	u.report(diags) // warnings
	_, pl, ok := a.diff(u, t, planFlags{})
	return audited{plan: pl, spec: t.spec, wrong: t.obstacles, taken: a.global.taken}, ok
}

// recorded holds objects against their own labels.
func (a *app) recorded(ctx context.Context, u *ui, f driftFlags) (*planner.Plan, bool) {
	scope, host, ok := a.recordedScope(u, f)
	if !ok {
		return nil, false
	}
	engine, err := a.open(ctx, host, a.cwd)
	if err != nil {
		u.fail(err)
		return nil, false
	}
	defer engine.Close()
	snap, err := engine.Observe(ctx, scope)
	if err != nil {
		u.fail(err)
		return nil, false
	}
	pl := planner.Diff(planner.Recorded(snap), snap, planner.Options{})
	// A mistake in a name must not pass for a clean scope every night. The image belongs to the engine.
	if !slices.ContainsFunc(snap.Objects, func(o planner.Object) bool { return o.Kind != planner.KindImage }) {
		pl.Warnings = append(pl.Warnings, fmt.Sprintf("There was nothing to look at. The engine has nothing of %s: "+
			"another project or workspace may be meant, or somebody removed everything.", scope))
	}
	return pl, true
}

// recordedScope is the scope of an audit without configuration. A snapshot has only one.
func (a *app) recordedScope(u *ui, f driftFlags) (planner.Scope, string, bool) {
	if a.global.engine != "" && f.project == "" {
		r, err := a.readRecording(u)
		if err != nil {
			u.fail(err)
			return planner.Scope{}, "", false
		}
		return r.Scope, "", true
	}
	project, host, ok := a.scopeOnly(u, f.project, f.vars)
	return planner.Scope{Project: project, Workspace: a.workspace()}, host, ok
}
