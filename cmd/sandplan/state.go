package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/planner"
)

type stateFlags struct {
	project string
	all     bool
	id      string
}

func (a *app) stateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state COMMAND",
		Short: "The scope's objects, as the engine has them",
		Long:  "There is no state file: these commands read the engine. They need no variables and no valid configuration.",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				hint := ""
				if text, known := insteadOfState[args[0]]; known {
					hint = ": " + text
				} else if n := nearest(args[0], []string{"list", "show"}); n != "" {
					hint = fmt.Sprintf("; did you mean %q?", n)
				}
				return misuse(name(cmd), "there is no command %q of state; it has list and show%s", args[0], hint)
			}
			return cmd.Help()
		},
	}
	var f stateFlags
	list := &cobra.Command{
		Use:     "list [options] [ADDRESS…]",
		Short:   "Addresses of the objects",
		Long:    "Addresses of the objects that sandplan has made. Images that vendors and runners pin are somebody else's and carry no label: plan, drift and run compare and count them, and no list has them.",
		Example: "sandplan state list invocation.login",
		RunE:    a.action(func(cmd *cobra.Command, args []string) int { return a.stateList(cmd.Context(), f, args) }),
	}
	list.Flags().BoolVar(&f.all, "all", false, "list every scope of the engine, PROJECT/WORKSPACE, instead")
	list.Flags().StringVar(&f.id, "id", "", "only the object whose engine `id` begins like this")
	show := &cobra.Command{
		Use:     "show [options] ADDRESS",
		Short:   "One object, or all of an invocation, with settings",
		Example: "sandplan state show invocation.review.agent",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse(name(cmd), "state show needs one address, such as invocation.review.agent")
			}
			return nil
		},
		RunE: a.action(func(cmd *cobra.Command, args []string) int { return a.stateShow(cmd.Context(), f, args) }),
	}
	show.Flags().BoolVar(&a.global.verbose, "verbose", false, "show every setting")
	for _, c := range []*cobra.Command{list, show} {
		c.Flags().StringVar(&f.project, "project", "", "the project, a `name`; needs no configuration then")
		cmd.AddCommand(c)
	}
	return cmd
}

// observed is what the scope has on the engine, without a configuration that has to evaluate.
func (a *app) observed(ctx context.Context, u *ui, project string, vars varFlags) (planner.Snapshot, bool) {
	name, host, ok := a.scopeOnly(u, project, vars)
	if !ok {
		return planner.Snapshot{}, false
	}
	engine, err := a.open(ctx, host, a.cwd)
	if err != nil {
		u.fail(err)
		return planner.Snapshot{}, false
	}
	defer engine.Close()
	snap, err := engine.Observe(ctx, planner.Scope{Project: name, Workspace: a.workspace()})
	if err != nil {
		u.fail(err)
		return snap, false
	}
	slices.SortFunc(snap.Objects, func(x, y planner.Object) int {
		switch {
		case x.Addr.Less(y.Addr):
			return -1
		case y.Addr.Less(x.Addr):
			return 1
		}
		return 0
	})
	return snap, true
}

func (a *app) stateList(ctx context.Context, f stateFlags, args []string) int {
	u := a.ui()
	addrs, diags := addresses("the command line", args)
	if u.report(diags) {
		return exitError
	}
	if f.all && (len(args) > 0 || f.id != "" || f.project != "") {
		return a.fail(misuse("state list", "-all lists scopes, so addresses, -id and -project mean nothing to it"))
	}
	in := a.watch(ctx, false, nil)
	defer in.done()
	if f.all {
		return a.listScopes(in.ctx, u)
	}
	snap, ok := a.observed(in.ctx, u, f.project, varFlags{})
	if !ok {
		return exitError
	}
	for _, o := range snap.Objects {
		if within(addrs, o.Addr) && hasID(o, f.id) {
			u.print(u.human.Line(string(o.Addr)))
		}
	}
	return exitOK
}

// listScopes lists the scopes that have objects on the engine, whoever made them.
func (a *app) listScopes(ctx context.Context, u *ui) int {
	host, err := a.engineHost(u) // it may name the engine; it need not be there
	if err != nil {
		u.fail(err)
		return exitError
	}
	engine, err := a.open(ctx, host, a.cwd)
	if err != nil {
		u.fail(err)
		return exitError
	}
	defer engine.Close()
	scopes, err := engine.Scopes(ctx)
	if err != nil {
		u.fail(err)
		return exitError
	}
	for _, s := range scopes {
		u.print(u.human.Line(s.String()))
	}
	return exitOK
}

func within(addrs []planner.Address, a planner.Address) bool {
	return len(addrs) == 0 || slices.ContainsFunc(addrs, func(t planner.Address) bool { return t.Contains(a) })
}

// hasID reports whether an engine ID begins with what the user typed.
func hasID(o planner.Object, id string) bool {
	return strings.HasPrefix(strings.TrimPrefix(o.ID, "sha256:"), strings.TrimPrefix(id, "sha256:"))
}

func (a *app) stateShow(ctx context.Context, f stateFlags, args []string) int {
	u := a.ui()
	addrs, diags := addresses("the command line", args)
	if u.report(diags) {
		return exitError
	}
	in := a.watch(ctx, false, nil)
	defer in.done()
	snap, ok := a.observed(in.ctx, u, f.project, varFlags{})
	if !ok {
		return exitError
	}
	if text := u.human.Objects(snap, addrs); text != "" {
		u.print(text)
		return exitOK
	}
	u.report(hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Nothing there",
		Detail: fmt.Sprintf("The scope %s has no object at %s. sandplan state list lists those that it has.", snap.Scope, addrs[0])}})
	return exitError
}
