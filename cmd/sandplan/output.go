package main

import (
	"context"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/machine"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
)

type outputFlags struct {
	vars      varFlags
	json, raw bool
	input     bool
}

func (a *app) outputCommand() *cobra.Command {
	var f outputFlags
	cmd := &cobra.Command{
		Use:     "output [options] [NAME]",
		Short:   "Values of the outputs, as the engine has them",
		Long:    "Evaluates the outputs of the configuration against the engine. Sensitive values are never printed.",
		Example: "sandplan output\nsandplan output -raw proxy",
		Args:    atMost(1, "the name of an output"),
		RunE:    a.action(func(cmd *cobra.Command, args []string) int { return a.output(cmd.Context(), f, args) }),
	}
	f.vars.register(cmd.Flags())
	a.inputFlag(cmd, &f.input)
	cmd.Flags().BoolVar(&f.json, "json", false, "as JSON")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "one value as it is, without quotes and line break")
	return cmd
}

func (a *app) output(ctx context.Context, f outputFlags, args []string) int {
	u := a.ui()
	switch {
	case f.raw && f.json:
		return a.fail(misuse("output", "-raw and -json exclude each other"))
	case f.raw && len(args) == 0:
		return a.fail(misuse("output", "-raw prints one value: say which"))
	}
	in := a.watch(ctx, false, nil)
	defer in.done()
	t, ok := a.target(in.ctx, u, planFlags{vars: f.vars, input: f.input})
	if !ok {
		return exitError
	}
	defer t.engine.Close()
	ids := planner.IDs{}
	for _, o := range t.snap.Objects {
		ids[o.Addr] = o.ID
	}
	outs, diags := t.spec.EvalOutputs(t.compiled.Live(ids))
	if u.report(diags) {
		return exitError
	}
	if len(args) == 1 {
		return a.oneOutput(u, f, outs, args[0])
	}
	if f.json {
		u.print(machine.Document(machine.NewOutputs(outputs(outs))))
		return exitOK
	}
	if len(outs) == 0 {
		u.print("There are no outputs: no output block declares one.\n")
	}
	u.print(u.out.Outputs(outputs(outs)))
	return exitOK
}

func (a *app) oneOutput(u *ui, f outputFlags, outs map[string]hclspec.Output, name string) int {
	o, found := outs[name]
	if !found {
		detail := fmt.Sprintf("The configuration has no output %q.", name)
		switch n := nearest(name, sortedNames(outs)); {
		case n != "":
			detail += fmt.Sprintf(" Did you mean %q?", n)
		case len(outs) > 0 && len(outs) <= 10:
			detail += " It has " + listed(sortedNames(outs)) + "."
		}
		u.report(hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "No such output", Detail: detail}})
		return exitError
	}
	if o.Sensitive {
		u.report(hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "The output is sensitive", Detail: "Sensitive values are never printed.", Subject: &o.Range}})
		return exitError
	}
	if !o.Value.IsWhollyKnown() {
		u.report(hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "The output is not known yet", Detail: "It depends on objects that do not exist: run sandplan apply first.", Subject: &o.Range}})
		return exitError
	}
	switch {
	case f.json:
		b, err := ctyjson.Marshal(o.Value, o.Value.Type())
		if err != nil {
			return a.fail(err)
		}
		u.print(string(b) + "\n")
	case f.raw:
		s, err := convert.Convert(o.Value, cty.String)
		if err != nil || s.IsNull() {
			u.report(hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "The output is no text",
				Detail: fmt.Sprintf("It is %s; use -json for such values.", o.Value.Type().FriendlyName()), Subject: &o.Range}})
			return exitError
		}
		u.print(s.AsString())
	default:
		u.print(u.human.Value(o.Value))
	}
	return exitOK
}
