package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker"
)

type snapshotFlags struct {
	vars    varFlags
	out     string
	project string
	input   bool
}

func (a *app) snapshotCommand() *cobra.Command {
	var f snapshotFlags
	cmd := &cobra.Command{
		Use:   "snapshot [options]",
		Short: "Keep what drift and plan read of the engine, to be looked at anywhere",
		Long: `
Writes all that drift and plan read into a file: the objects of the scope, and what the configuration refers to on
this machine. It reads only, and takes no lock. Nothing in it is secret: credentials are on no engine. Then
"sandplan drift -engine=FILE" and "sandplan plan -engine=FILE" work from it without an engine.

With -project it needs no configuration, and serves "sandplan drift -recorded -engine=FILE".`,
		Example: "sandplan snapshot -out=engine.snap\nsandplan drift -engine=engine.snap",
		Args:    noArguments,
		RunE:    a.action(func(cmd *cobra.Command, _ []string) int { return a.snapshot(cmd.Context(), f) }),
	}
	f.vars.register(cmd.Flags())
	a.inputFlag(cmd, &f.input)
	neverLocks(cmd)
	cmd.Flags().StringVar(&f.out, "out", "", "the `file` to write")
	cmd.Flags().StringVar(&f.project, "project", "", "the project, a `name`; needs no configuration then")
	return cmd
}

func (a *app) snapshot(ctx context.Context, f snapshotFlags) int {
	switch {
	case f.out == "":
		return a.fail(misuse("snapshot", "snapshot needs -out=FILE"))
	case f.project != "" && len(f.vars.args) > 0:
		return a.fail(misuse("snapshot", "-project needs no configuration, so variables mean nothing to it"))
	}
	u := a.ui()
	a.global.reads = true
	in := a.watch(ctx, false, nil)
	defer in.done()
	r, ok := a.record(in.ctx, u, f)
	if !ok {
		return exitError
	}
	path := f.out
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.cwd, path)
	}
	if err := planner.WriteWhole(path, "snapshot", r.Encode); err != nil {
		u.fail(err)
		return exitError
	}
	u.print(fmt.Sprintf("Wrote %s: %d objects of %s.\n", f.out, len(r.Objects), r.Scope))
	return exitOK
}

func (a *app) record(ctx context.Context, u *ui, f snapshotFlags) (*docker.Recording, bool) {
	if f.project == "" {
		t, ok := a.opened(ctx, u, planFlags{vars: f.vars, input: f.input})
		if !ok {
			return nil, false
		}
		defer t.engine.Close()
		diags := t.compare(ctx)
		if t.snap.EngineID == "" { // not even looked at
			u.report(diags)
			return nil, false
		}
		if t.compiled == nil {
			u.notices([]string{"The configuration does not fit this machine. The snapshot serves sandplan drift -recorded only; sandplan plan says what is wrong."})
		} else {
			u.report(diags) // warnings
		}
		return t.engine.Record(t.snap, t.compiled, a.now()), true
	}
	project, host, ok := a.scopeOnly(u, f.project, varFlags{})
	if !ok {
		return nil, false
	}
	engine, err := a.open(ctx, host, a.cwd)
	if err != nil {
		u.fail(err)
		return nil, false
	}
	defer engine.Close()
	snap, err := engine.Observe(ctx, planner.Scope{Project: project, Workspace: a.workspace()})
	if err != nil {
		u.fail(err)
		return nil, false
	}
	return engine.Record(snap, nil, a.now()), true
}

// engineFlag is -engine of the commands that only compare.
func (a *app) engineFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.global.engine, "engine", "", "a `file` of sandplan snapshot, in place of an engine")
}

// readRecording opens a file of sandplan snapshot.
func (a *app) readRecording(u *ui) (*docker.Recording, error) {
	path := a.global.engine
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.cwd, path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the snapshot: %w", err)
	}
	defer file.Close()
	r, err := docker.DecodeRecording(file)
	if err != nil {
		return nil, fmt.Errorf("read the snapshot %s: %w", a.global.engine, err)
	}
	if r.Version != a.version {
		u.notices([]string{fmt.Sprintf("Another version made the snapshot. It was made by sandplan %s, and this is %s: what they declare may differ.", r.Version, a.version)})
	}
	return r, nil
}

// taken is when a recording was made, as reports have it.
func taken(r *docker.Recording) string { return r.Taken.UTC().Format(time.RFC3339) }
