package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker"
)

type destroyFlags struct {
	applyFlags
	project string
}

func (a *app) destroyCommand() *cobra.Command {
	var f destroyFlags
	cmd := &cobra.Command{
		Use:   "destroy [options]",
		Short: "Remove everything of the scope from the engine",
		Long: `
Removes every object of the scope. What is to go stands in the objects' own labels: it needs no
worktree, no valid configuration, and no variables but for one that names the engine; with -project not even a file.
Worktrees and pinned images stay.`,
		Example: "sandplan destroy\nsandplan destroy -project=codeboost -workspace=default -auto-approve",
		Args:    noArguments,
		RunE:    a.action(func(cmd *cobra.Command, _ []string) int { return a.destroy(cmd.Context(), f) }),
	}
	f.registerApply(a, cmd)
	a.inputFlag(cmd, &f.input)
	fs := cmd.Flags()
	f.vars.register(fs)
	fs.StringArrayVar(&f.targets, "target", nil, "only this `address` and what needs it, repeatable")
	fs.StringVar(&f.project, "project", "", "the project to remove, a `name`; needs no configuration then")
	fs.BoolVar(&a.global.verbose, "verbose", false, "show every setting")
	return cmd
}

func (a *app) destroy(ctx context.Context, f destroyFlags) int {
	u := a.ui()
	if err := f.check("destroy", a.global.json); err != nil {
		return a.fail(err)
	}
	targets, diags := addresses("-target", f.targets)
	if u.report(diags) {
		return exitError
	}
	project, host, ok := a.scopeOnly(u, f.project, f.vars)
	if !ok {
		return exitError
	}
	in := a.watchWork(ctx, u)
	defer in.done()
	engine, err := a.open(in.ctx, host, a.cwd)
	if err != nil {
		u.fail(err)
		return exitError
	}
	defer engine.Close()
	scope := planner.Scope{Project: project, Workspace: a.workspace()}
	held, err := a.lockScope(in, u, engine, scope, "destroy", f.lockTimeout)
	if err != nil {
		u.fail(err)
		return exitError
	}
	defer a.release(u, held)
	snap, err := engine.Observe(in.ctx, scope)
	if err != nil {
		u.fail(err)
		return exitError
	}
	pl := planner.Diff(nil, snap, planner.Options{Destroy: true, Targets: targets})
	u.print(u.out.Plan(pl, render.PlanView{Targeted: len(targets) > 0}))
	if pl.Empty() {
		return exitOK
	}
	if !a.approved(in, u, f.applyFlags, pl) {
		return exitError
	}
	return a.carryOutDestroy(in, u, engine, pl, held, f.parallelism)
}

// carryOutDestroy removes what a plan says, and ends with the summary.
func (a *app) carryOutDestroy(in interrupts, u *ui, engine *docker.Engine, pl *planner.Plan, held *docker.Lock, parallelism int) int {
	result, err := a.walk(in, u, pl, remover{engine}, held, parallelism)
	if err != nil {
		u.printErr(u.err.Gap())
		u.fail(err)
		return exitError
	}
	u.print(u.out.Destroyed(result.Destroyed))
	return exitOK
}

// openedToDestroy is opened for a plan of a destruction. What is to go stands in labels, so that nothing has to
// evaluate, nor a worktree or an image to be there. A configuration that does evaluate is part of the plan, and
// may name the engine by a variable.
func (a *app) openedToDestroy(ctx context.Context, u *ui, f planFlags) (*target, bool) {
	spec, diags := hclspec.Load(a.source(), hclspec.Vars{Env: a.environ, Args: f.vars.args}, policy.Catalog())
	if !diags.HasErrors() {
		diags = policy.Check(spec)
	}
	if diags.HasErrors() {
		head, wrong, noEngine := a.head(u, f.vars)
		if u.report(append(wrong, noEngine...)) {
			return nil, false
		}
		spec = &hclspec.Spec{Project: head.Project, Workspace: a.workspace(), Dir: head.Dir}
		spec.Provider.Host = head.Host
	}
	engine, err := a.open(ctx, spec.Provider.Host.V, spec.Dir)
	if err != nil {
		u.fail(err)
		return nil, false
	}
	return &target{spec: spec, engine: engine, destroy: true}, true
}
