package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/machine"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner/permission"
)

type showFlags struct {
	project string
	plan    string // -plan=FILE is the same as FILE
	json    bool
	format  string

	permissions bool
	vars        varFlags
	input       bool
}

func (a *app) showCommand() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show [options] [PLANFILE]",
		Short: "What the engine has, or what a saved plan would do",
		Long: `
Without an argument it shows the objects of the scope as the engine has them. With a PLANFILE it shows what
applying it would do; the engine that the plan was made for has to be there. With -permissions it is a table of
what every agent may read, write, reach and run; what is more than the engine's objects declare is marked.`,
		Example: "sandplan show\nsandplan show p\nsandplan show -permissions p",
		Args:    onePlan,
		RunE: a.action(func(cmd *cobra.Command, args []string) int {
			if len(args) == 1 && f.plan != "" {
				return a.fail(misuse("show", "-plan=%s and %s: show takes one plan", f.plan, args[0]))
			}
			if len(args) == 1 {
				f.plan = args[0]
			}
			if err := a.checkFormat("show", f.format, planFormats()...); err != nil {
				return a.fail(err)
			}
			f.json = f.json || f.format == formatJSON
			switch {
			case f.plan != "" && f.project != "":
				return a.fail(misuse("show", "-project and a saved plan exclude each other: the plan says it all"))
			case f.permissions && f.project != "":
				return a.fail(misuse("show", "-permissions is about a configuration, and -project needs none: they exclude each other"))
			case f.format == formatMarkdown && (f.plan == "" || f.permissions || f.json):
				return a.fail(misuse("show", "-format=markdown is for a saved plan, and goes with neither -json nor -permissions"))
			case len(f.vars.args) > 0 && (f.plan != "" || !f.permissions):
				return a.fail(misuse("show", "variables matter for -permissions of a configuration only"))
			}
			if f.plan != "" {
				return a.showPlan(cmd.Context(), f)
			}
			return a.show(cmd.Context(), f)
		}),
	}
	cmd.Flags().BoolVar(&a.global.verbose, "verbose", false, "show every setting")
	cmd.Flags().BoolVar(&f.json, "json", false, "one JSON document; docs/schema says what it holds")
	reportFlag(cmd, &f.format, planFormats()...)
	cmd.Flags().BoolVar(&f.permissions, "permissions", false, "what every agent may do, and what of it is more than before")
	f.vars.register(cmd.Flags())
	a.inputFlag(cmd, &f.input)
	cmd.Flags().StringVar(&f.plan, "plan", "", "the saved plan, a `file`")
	cmd.Flags().StringVar(&f.project, "project", "", "the project, a `name`; needs no configuration then")
	return cmd
}

func (a *app) show(ctx context.Context, f showFlags) int {
	u := a.ui()
	in := a.watch(ctx, false, nil)
	defer in.done()
	if f.permissions {
		return a.showPermissions(in.ctx, u, f)
	}
	snap, ok := a.observed(in.ctx, u, f.project, f.vars)
	if !ok {
		return exitError
	}
	if f.json {
		u.print(machine.Document(machine.NewState(snap, a.version)))
		return exitOK
	}
	text := u.human.Objects(snap, nil)
	if text == "" {
		text = "Nothing of " + snap.Scope.String() + " is on the engine.\n"
	}
	u.print(text)
	return exitOK
}

// showPermissions is about what the configuration declares, so it needs one that evaluates.
func (a *app) showPermissions(ctx context.Context, u *ui, f showFlags) int {
	t, ok := a.target(ctx, u, planFlags{vars: f.vars, input: f.input})
	if !ok {
		return exitError
	}
	defer t.engine.Close()
	_, pl, ok := a.diff(u, t, planFlags{})
	if !ok {
		return exitError
	}
	return a.printPermissions(u, f, permissions(t.spec, pl))
}

func (a *app) printPermissions(u *ui, f showFlags, reports []permission.Report) int {
	switch {
	case f.json:
		u.print(permissionsDocument(reports))
	case len(reports) == 0:
		u.print("There is no invocation, so nobody may do anything.\n")
	default:
		u.print(u.human.Permissions(reports))
	}
	return exitOK
}

func (a *app) showPlan(ctx context.Context, f showFlags) int {
	u := a.ui()
	in := a.watch(ctx, false, nil)
	defer in.done()
	saved, t, ok := a.openSaved(in.ctx, u, f.plan)
	if !ok {
		return exitError
	}
	defer t.engine.Close()
	pl, ok := a.planAgain(in.ctx, u, saved, t)
	if !ok {
		return exitError
	}
	if f.permissions {
		return a.printPermissions(u, f, permissions(t.spec, pl))
	}
	if f.format == formatMarkdown {
		text, _ := a.planReport(t, pl, planFlags{format: f.format}, a.planView(t, pl, len(saved.Options.Targets) > 0))
		u.print(text)
		return exitOK
	}
	if !f.json {
		u.print(u.out.Plan(pl, a.planView(t, pl, len(saved.Options.Targets) > 0)))
		return exitOK
	}
	doc, diags := a.planDocument(t, pl)
	if u.report(diags) {
		return exitError
	}
	u.print(doc)
	return exitOK
}

// variables are the inputs of a configuration with their values, those of sensitive ones left out.
func variables(spec *hclspec.Spec) []machine.Variable {
	var out []machine.Variable
	for _, v := range spec.Variables {
		one := machine.Variable{Name: v.Name, From: v.From, Sensitive: v.Sensitive}
		if known := spec.Scope.Values["var."+v.Name]; !v.Sensitive && len(known.Sensitive) == 0 {
			one.Value = json.RawMessage(known.Value)
		}
		out = append(out, one)
	}
	return out
}
