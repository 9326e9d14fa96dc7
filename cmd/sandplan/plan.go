package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/markdown"
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
	base     string
	deny     bool
	format   string
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
nothing and takes no lock.

With -base=PATH it compares with another declaration instead, a directory, a file or a saved plan: no engine,
no credential and no worktree is needed, and what only an engine decides is (known after apply).
-deny-widening exits 1 when an agent may reach, write, run or see more than in the base (or, without -base,
than what the engine's objects declare). Invocations are compared by address; a renamed one is a new one.

With -engine=FILE it works from a file that "sandplan snapshot" wrote. With -destroy it shows what
"sandplan destroy" would do, and needs as little for it: no worktree, and no configuration that evaluates.`,
		Example: "sandplan plan\nsandplan plan -out=p && sandplan apply p\nsandplan plan -base=../main -deny-widening",
		Args:    noArguments,
		RunE:    a.action(func(cmd *cobra.Command, _ []string) int { return a.plan(cmd.Context(), f) }),
	}
	f.register(a, cmd)
	cmd.Flags().StringVar(&f.out, "out", "", "save the plan to this `file`")
	cmd.Flags().BoolVar(&f.detailed, "detailed-exitcode", false, "exit code 0 without changes, 2 with changes, 1 for errors")
	cmd.Flags().BoolVar(&f.destroy, "destroy", false, "plan to destroy everything of the scope")
	cmd.Flags().StringVar(&f.base, "base", "", "compare with the declaration at this `path`, and with no engine")
	cmd.Flags().BoolVar(&f.deny, "deny-widening", false, "exit code 1 when an agent may do more than before")
	reportFlag(cmd, &f.format, planFormats()...)
	a.engineFlag(cmd)
	a.jsonFlag(cmd)
	neverLocks(cmd)
	return cmd
}

// neverLocks lets habits pass that ask a command for what it does anyway: it takes no lock, so that it waits for none,
// and makes nothing, however many at a time.
func neverLocks(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.Bool("lock", false, "")
	fs.Duration("lock-timeout", 0, "")
	fs.Int("parallelism", applier.DefaultParallelism, "")
	for _, name := range []string{"lock", "lock-timeout", "parallelism"} {
		// It fails only for a flag that is not there.
		_ = fs.MarkHidden(name)
	}
}

func (a *app) plan(ctx context.Context, f planFlags) int {
	err := f.check("plan")
	if err == nil {
		err = a.checkPlan(f)
	}
	if err != nil {
		return a.fail(err)
	}
	a.global.reads = true
	u := a.ui()
	u.compact, u.quiet = f.compact, f.format != formatText
	in := a.watch(ctx, false, nil)
	defer in.done()
	if f.base != "" {
		return a.planBase(in.ctx, u, f)
	}
	open := a.opened
	if f.destroy {
		open = a.openedToDestroy
	}
	t, ok := open(in.ctx, u, f)
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
	view := a.planView(t, pl, len(f.targets) > 0)
	denied := f.denied(t.spec, permissionsOf(t.spec, unsettled(pl)))
	view.Hint = !t.obstacles.HasErrors() && len(denied) == 0
	if f.out != "" && view.Hint {
		if err := a.save(f.out, t, o); err != nil {
			u.fail(err)
			return exitError
		}
		view.Saved = f.out
	}
	wrong := append(append(t.obstacles, conflicts(pl)...), denied...)
	if !pl.Destroy {
		wrong = append(wrong, t.spec.EvalChecks(t.compiled.Live(kept(pl, t.snap)))...)
	}
	if f.format == formatText {
		u.print(u.out.Plan(pl, view))
		a.planWarnings(u, pl, f)
	} else if text, diags := a.planReport(t, pl, f, view); !u.report(diags) {
		u.print(text)
	}
	if wrong.HasErrors() {
		u.printErr(u.err.Gap())
	}
	if u.report(wrong) {
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

func planFormats() []string { return []string{formatText, formatJSON, formatMarkdown} }

// checkPlan refuses what cannot go with a comparison that no apply can follow.
func (a *app) checkPlan(f planFlags) error {
	if err := a.checkFormat("plan", f.format, planFormats()...); err != nil {
		return err
	}
	if f.deny && f.destroy {
		return misuse("plan", "-destroy lets nobody do more, so -deny-widening cannot go with it")
	}
	if f.base != "" && a.global.engine != "" {
		return misuse("plan", "-base and -engine exclude each other: each stands in place of the engine")
	}
	for _, l := range []struct {
		given bool
		name  string
	}{{f.out != "", "-out"}, {f.destroy, "-destroy"}, {len(f.targets) > 0, "-target"}, {len(f.replace) > 0, "-replace"}} {
		switch {
		case l.given && f.base != "":
			return misuse("plan", "-base compares two declarations and nothing can be applied, so %s cannot go with it", l.name)
		case l.given && l.name == "-out" && a.global.engine != "":
			return misuse("plan", "-engine is no engine to apply to, so -out cannot go with it")
		}
	}
	return nil
}

// planReport is a plan in another format than text.
func (a *app) planReport(t *target, pl *planner.Plan, f planFlags, view render.PlanView) (string, hcl.Diagnostics) {
	if f.format == formatJSON {
		return a.planDocument(t, pl)
	}
	errs, _ := render.Split(append(t.obstacles, conflicts(pl)...))
	return markdown.Plan(markdown.PlanInput{Plan: pl, Permissions: view.Permissions, Notes: pl.Warnings, Errors: errs, Denied: f.deny}), nil
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
	return o, planner.Diff(t.wanted(), t.snap, o), true
}

func (a *app) planView(t *target, pl *planner.Plan, targeted bool) render.PlanView {
	if pl.Destroy {
		return render.PlanView{Targeted: targeted}
	}
	alloc := t.compiled.Allocation()
	v := render.PlanView{Targeted: targeted, Free: alloc.Free, Pool: alloc.Pool.String(), Permissions: unread(permissionsOf(t.spec, unsettled(pl)), pl)}
	if was, will, diags := outputsOf(t, pl); !pl.Empty() && !diags.HasErrors() { // whoever prints their values reports what is wrong
		v.Outputs = render.OutputChanges(was, will)
	}
	return v
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
	f := &planner.SavedPlan{Version: a.version, Options: o, Spec: spec, Sources: t.spec.Sources}
	if t.compiled != nil {
		f.Allocation = t.compiled.Allocation()
	}
	f.Remember(t.wanted(), t.snap)
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.cwd, path)
	}
	return planner.WritePlan(path, f)
}
