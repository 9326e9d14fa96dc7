package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) forceUnlockCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "force-unlock [options] LOCK_ID",
		Short: "Remove a lock whose holder is gone",
		Long: `
Removes one lock, by the ID that the message about it gave. Locks of dead processes of this host are taken over
by themselves; this is for the others. Make sure that nothing works there any more.`,
		Example: "sandplan force-unlock 4f2a9c1b77de",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse(name(cmd), "force-unlock needs the ID of one lock")
			}
			return nil
		},
		RunE: a.action(func(cmd *cobra.Command, args []string) int { return a.forceUnlock(cmd.Context(), args[0], force) }),
	}
	cmd.Flags().BoolVar(&force, "force", false, "do not ask")
	return cmd
}

func (a *app) forceUnlock(ctx context.Context, id string, force bool) int {
	u := a.ui()
	in := a.watch(ctx, false, nil)
	defer in.done()
	host, err := a.engineHost(u) // it may name the engine; it need not be valid
	if err != nil {
		u.fail(err)
		return exitError
	}
	engine, err := a.open(in.ctx, host, a.cwd)
	if err != nil {
		u.fail(err)
		return exitError
	}
	defer engine.Close()
	if !force && u.ask(in.ctx, u.human.ApproveUnlock(id)) != "yes" {
		u.printErr("force-unlock cancelled.\n")
		return exitError
	}
	if err := engine.ForceUnlock(in.ctx, id); err != nil {
		u.fail(err)
		return exitError
	}
	u.print("The lock is gone.\n")
	return exitOK
}
