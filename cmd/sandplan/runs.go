package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
)

func (a *app) runsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "The runs that were recorded here; runs show ID explains one",
		Long: `
Lists the records in the data directory, the oldest first. Every run has a directory of its own there, with
record.json (an in-toto statement, described by docs/schema/run.json), egress.jsonl, output.log and begun.json, on
which its sandplan holds a lock while it runs.`,
		Example: "sandplan runs\nsandplan runs show 20260102T150405Z-0a1b2c3d",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return misuse(name(cmd), "there is no command %q of runs; it has show", args[0])
			}
			return nil
		},
		RunE: a.action(func(*cobra.Command, []string) int { return a.runs() }),
	}
	show := &cobra.Command{
		Use:     "show ID",
		Short:   "What happened in one run, and why it ended",
		Long:    "Explains one run. The beginning of an ID is enough, or its end; latest is the newest.",
		Example: "sandplan runs show latest",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse(name(cmd), "runs show needs the ID of one run, or latest; sandplan runs lists them")
			}
			return nil
		},
		RunE: a.action(func(_ *cobra.Command, args []string) int { return a.showRun(args[0]) }),
	}
	cmd.AddCommand(show)
	return cmd
}

// recordsDir is the data directory of the configuration's directory, which need not be valid.
func (a *app) recordsDir() string {
	dir := a.cwd
	if c := a.global.config; c != "" {
		if !filepath.IsAbs(c) {
			c = filepath.Join(a.cwd, c)
		}
		if dir = c; strings.HasSuffix(c, ".hcl") {
			dir = filepath.Dir(c)
		}
	}
	return a.dataDir(dir)
}

func (a *app) runs() int {
	u := a.ui()
	dir := a.recordsDir()
	ids, err := launch.RunIDs(dir)
	if err != nil {
		u.fail(err)
		return exitError
	}
	var lines []render.RunLine
	for _, id := range ids {
		l := render.RunLine{ID: id}
		if l.Record, err = launch.ReadRecord(dir, id); err != nil {
			l.Note = strings.TrimPrefix(err.Error(), id+": ")
		}
		lines = append(lines, l)
	}
	if len(lines) == 0 {
		u.print(u.human.Line("No runs were recorded in " + dir + "."))
		return exitOK
	}
	u.print(u.human.Runs(lines))
	return exitOK
}

func (a *app) showRun(want string) int {
	u := a.ui()
	dir := a.recordsDir()
	id, diags := oneRun(dir, want)
	if u.report(diags) {
		return exitError
	}
	rec, err := launch.ReadRecord(dir, id)
	if err != nil {
		u.fail(err)
		return exitError
	}
	u.print(u.human.RunRecord(rec))
	return exitOK
}

// oneRun is the run that a part of its ID names.
func oneRun(dir, want string) (string, hcl.Diagnostics) {
	ids, err := launch.RunIDs(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", asDiagnostics(err)
	}
	if want == "latest" && len(ids) > 0 {
		return ids[len(ids)-1], nil
	}
	var found []string
	for _, id := range ids {
		if strings.HasPrefix(id, want) || strings.HasSuffix(id, want) {
			found = append(found, id)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	detail := fmt.Sprintf("No run in %s has the ID %q. sandplan runs lists those that there are.", dir, want)
	if len(found) > 1 {
		detail = fmt.Sprintf("%q begins the IDs of %d runs, %s among them. Give more of it.", want, len(found), found[0])
	}
	return "", hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "No such run", Detail: detail}}
}
