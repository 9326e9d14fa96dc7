package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/planner"
)

// planFlags say what to plan. apply and destroy share them.
type planFlags struct {
	vars     varFlags
	targets  []string
	replace  []string
	destroy  bool
	input    bool
	compact  bool
	takeover bool

	out      string // plan only
	detailed bool
}

func (f *planFlags) register(a *app, cmd *cobra.Command) {
	fs := cmd.Flags()
	f.vars.register(fs)
	fs.StringArrayVar(&f.targets, "target", nil, "only this `address` and what it needs, repeatable")
	fs.StringArrayVar(&f.replace, "replace", nil, "make this `address` anew, repeatable")
	a.inputFlag(cmd, &f.input)
	fs.BoolVar(&f.compact, "compact-warnings", false, "warnings in one line each")
	fs.BoolVar(&a.global.verbose, "verbose", false, "show every setting")
}

func (a *app) planCommand() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan [options]",
		Short: "Show what differs between configuration and engine, and what apply would do",
		Long: `
Compares the configuration with the engine, field by field, and shows what apply would do. It changes
nothing and takes no lock.`,
		Example: "sandplan plan\nsandplan plan -out=p && sandplan apply p",
		Args:    noArguments,
		RunE:    a.action(func(cmd *cobra.Command, _ []string) int { return a.plan(cmd.Context(), f) }),
	}
	f.register(a, cmd)
	cmd.Flags().StringVar(&f.out, "out", "", "save the plan to this `file`")
	cmd.Flags().BoolVar(&f.detailed, "detailed-exitcode", false, "exit code 0 without changes, 2 with changes, 1 for errors")
	cmd.Flags().BoolVar(&f.destroy, "destroy", false, "plan to destroy everything of the scope")
	a.jsonFlag(cmd)
	neverLocks(cmd)
	return cmd
}

// neverLocks lets a habit pass: -lock=false asks a command for what it does anyway.
func neverLocks(cmd *cobra.Command) {
	cmd.Flags().Bool("lock", false, "")
	// It fails only for a flag that is not there.
	_ = cmd.Flags().MarkHidden("lock")
}

func (a *app) plan(ctx context.Context, f planFlags) int {
	if err := f.check("plan"); err != nil {
		return a.fail(err)
	}
	u := a.ui()
	u.compact = f.compact
	in := a.watch(ctx, false, nil)
	defer in.done()
	t, ok := a.opened(in.ctx, u, f)
	if !ok {
		return exitError
	}
	defer t.engine.Close()
	if u.report(t.compare(in.ctx)) {
		return exitError
	}
	o, pl, ok := a.diff(u, t, f)
	if !ok {
		return exitError
	}
	view := a.planView(t, pl)
	view.Hint = !t.obstacles.HasErrors()
	if f.out != "" && view.Hint {
		if err := a.save(f.out, t, o); err != nil {
			u.fail(err)
			return exitError
		}
		view.Saved = f.out
	}
	u.print(u.out.Plan(pl, view))
	a.planWarnings(u, pl, f)
	if u.report(append(t.obstacles, conflicts(pl)...)) {
		return exitError
	}
	if f.detailed && !pl.Empty() {
		return exitChanges
	}
	return exitOK
}

// check refuses flags that contradict each other.
func (f planFlags) check(command string) error {
	switch {
	case f.destroy && len(f.replace) > 0:
		return misuse(command, "-destroy makes nothing anew, so -replace cannot go with it")
	case f.destroy && f.takeover:
		return misuse(command, "-destroy replaces nothing, so -takeover cannot go with it")
	}
	return nil
}

// target loads the configuration, opens the engine and looks at the scope.
func (a *app) target(ctx context.Context, u *ui, f planFlags) (*target, bool) {
	t, ok := a.opened(ctx, u, f)
	if ok && u.report(t.look(ctx)) {
		t.engine.Close()
		return nil, false
	}
	return t, ok
}

// opened loads the configuration and opens the engine.
func (a *app) opened(ctx context.Context, u *ui, f planFlags) (*target, bool) {
	spec, ok := a.load(ctx, u, f.vars, f.input)
	if !ok {
		return nil, false
	}
	engine, err := a.open(ctx, spec.Provider.Host.V, spec.Dir)
	if err != nil {
		u.fail(err)
		return nil, false
	}
	return &target{spec: spec, engine: engine}, true
}

// diff plans from one look.
func (a *app) diff(u *ui, t *target, f planFlags) (planner.Options, *planner.Plan, bool) {
	targets, d1 := addresses("-target", f.targets)
	replace, d2 := addresses("-replace", f.replace)
	o := planner.Options{
		Destroy: f.destroy, Targets: targets, Replace: replace, Takeover: f.takeover,
		Origin: a.origin(t.spec.Dir), Blocks: blocks(t.spec),
	}
	if u.report(append(d1, d2...)) {
		return o, nil, false
	}
	return o, planner.Diff(t.compiled.Resources(), t.snap, o), true
}

func (a *app) planView(t *target, pl *planner.Plan) render.PlanView {
	if pl.Destroy {
		return render.PlanView{}
	}
	alloc := t.compiled.Allocation()
	return render.PlanView{Free: alloc.Free, Pool: alloc.Pool.String(), Permissions: unread(permissions(t.spec, pl), pl)}
}

// planWarnings are printed below a plan, where they are seen.
func (a *app) planWarnings(u *ui, pl *planner.Plan, f planFlags) {
	texts := pl.Warnings
	if len(f.targets) > 0 {
		texts = append([]string{"The plan is incomplete: -target is in effect. It is meant for exceptional use, " +
			"and no run starts before the whole scope is as declared."}, texts...)
	}
	if len(texts) > 0 {
		u.print(u.out.Gap())
		u.notices(texts)
	}
}

// conflicts are the objects of others that stand where ours would.
func conflicts(pl *planner.Plan) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, f := range pl.Conflicts() {
		d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "An object of somebody else is in the way",
			Detail: fullSentence(string(f.Addr) + " " + render.Clean(f.Text)), Extra: render.About(f.Addr)}
		if f.Decl.Filename != "" {
			d.Subject = &f.Decl
		}
		diags = append(diags, d)
	}
	return diags
}

// save writes the plan and all that must still hold when it is applied.
func (a *app) save(path string, t *target, o planner.Options) error {
	spec, err := json.Marshal(t.spec)
	if err != nil {
		return fmt.Errorf("save the plan: %w", err)
	}
	f := &planner.SavedPlan{Version: a.version, Options: o, Spec: spec, Sources: t.spec.Sources, Allocation: t.compiled.Allocation()}
	f.Remember(t.compiled.Resources(), t.snap)
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.cwd, path)
	}
	return planner.WritePlan(path, f)
}
