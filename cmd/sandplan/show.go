package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/planner"
)

func (a *app) showCommand() *cobra.Command {
	var project string
	cmd := &cobra.Command{
		Use:   "show [options] [PLANFILE]",
		Short: "What the engine has, or what a saved plan would do",
		Long: `
Without an argument it shows the objects of the scope as the engine has them. With a PLANFILE it shows what
applying it would do; the engine that the plan was made for has to be there.`,
		Example: "sandplan show\nsandplan show p",
		Args:    atMost(1, "a saved plan"),
		RunE: a.action(func(cmd *cobra.Command, args []string) int {
			if len(args) == 1 {
				return a.showPlan(cmd.Context(), args[0])
			}
			return a.show(cmd.Context(), project)
		}),
	}
	cmd.Flags().BoolVar(&a.global.verbose, "verbose", false, "show every setting")
	cmd.Flags().StringVar(&project, "project", "", "the project, a `name`; needs no configuration then")
	return cmd
}

func (a *app) show(ctx context.Context, project string) int {
	u := a.ui()
	snap, ok := a.observed(ctx, u, project)
	if !ok {
		return exitError
	}
	text := u.out.Objects(snap, nil)
	if text == "" {
		text = "Nothing of " + snap.Scope.String() + " is on the engine.\n"
	}
	u.print(text)
	return exitOK
}

func (a *app) showPlan(ctx context.Context, path string) int {
	u := a.ui()
	in := a.watch(ctx, false, nil)
	defer in.done()
	saved, t, ok := a.openSaved(in.ctx, u, path)
	if !ok {
		return exitError
	}
	defer t.engine.Close()
	if u.report(t.look(in.ctx)) {
		return exitError
	}
	if err := verify(saved, t); err != nil {
		u.fail(err)
		return exitError
	}
	pl := planner.Diff(t.compiled.Resources(), t.snap, saved.Options)
	u.print(u.out.Plan(pl, a.planView(t)))
	return exitOK
}
