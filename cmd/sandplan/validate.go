package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/machine"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner/policy"
)

func (a *app) validateCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate [options]",
		Short: "Check the configuration; needs no engine and no variables",
		Long: `
Checks everything that holds whatever the variables are: syntax, names, types, policies. It contacts
nothing and changes nothing. Exit code 1 when something is wrong.`,
		Example: "sandplan validate\nsandplan validate -config=examples/team.hcl",
		Args:    noArguments,
		RunE:    a.action(func(*cobra.Command, []string) int { return a.validate(asJSON) }),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document with everything that was found")
	return cmd
}

func (a *app) validate(asJSON bool) int {
	u := a.ui()
	spec, diags := hclspec.Load(a.source(), hclspec.Vars{Unknown: true}, policy.Catalog())
	u.sources(spec.Sources)
	if !diags.HasErrors() {
		diags = append(diags, policy.Check(spec)...)
	}
	if asJSON {
		u.print(machine.Document(machine.NewValidation(diags, spec.Sources)))
		if diags.HasErrors() {
			return exitError
		}
		return exitOK
	}
	if u.report(diags) {
		return exitError
	}
	u.print(fmt.Sprintf("The configuration of project %s is valid.\n", spec.Project.V))
	return exitOK
}
