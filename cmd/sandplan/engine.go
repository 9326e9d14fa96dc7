package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker"
)

// What the packages that do the work ask of an engine, and docker gives.
var (
	_ launch.Engine    = (*docker.Engine)(nil)
	_ launch.Compiled  = (*docker.Compiled)(nil)
	_ launch.Lock      = (*docker.Lock)(nil)
	_ applier.Lock     = (*docker.Lock)(nil)
	_ applier.Provider = provider{}
)

// provider makes objects as they were compiled and removes them by their engine IDs.
type provider struct {
	*docker.Compiled
	engine *docker.Engine
}

func (p provider) Delete(ctx context.Context, o planner.Object) error { return p.engine.Delete(ctx, o) }

// remover is the provider of a destruction, which has nothing compiled.
type remover struct{ engine *docker.Engine }

func (r remover) Delete(ctx context.Context, o planner.Object) error { return r.engine.Delete(ctx, o) }

func (r remover) Create(context.Context, planner.Resource, planner.IDs) (planner.Object, error) {
	return planner.Object{}, fmt.Errorf("a destruction creates nothing")
}

func (r remover) Restore(context.Context, planner.Change, planner.IDs) error {
	return fmt.Errorf("a destruction restores nothing")
}

// open finds the engine. host is what the configuration asks for, dir is where that configuration lies.
func (a *app) open(ctx context.Context, host, dir string) (*docker.Engine, error) {
	if a.global.engine != "" {
		r, err := a.readRecording(a.ui())
		if err != nil {
			return nil, err
		}
		a.global.taken = taken(r)
		return docker.Recorded(r), nil
	}
	if runtime.GOOS != "linux" { // worktrees, bridges and the binary in containers are the engine's own machine's
		return nil, fmt.Errorf("sandplan needs Linux, on the machine of the engine, and this is %s; validate, fmt, graph, plan -base and whatever takes -engine=FILE work here, too", runtime.GOOS)
	}
	o := docker.Options{
		Host: host, Getenv: a.getenv, Home: a.home, Origin: a.origin(dir), Version: a.version, Self: a.self,
		Who: a.who, Now: a.now, DataDir: a.dataDir(dir), ReadOnly: a.global.reads,
	}
	if a.log.Enabled(ctx, slog.LevelDebug) {
		o.Calls = a.logCall
	}
	return docker.Open(ctx, o)
}

// origin is the host and directory that objects come from. Whoever looks at a snapshot may be anywhere.
func (a *app) origin(dir string) string {
	if a.global.engine != "" {
		return ""
	}
	return a.host + ":" + dir
}

// target is one configuration on one engine, as one look found it.
type target struct {
	spec     *hclspec.Spec
	engine   *docker.Engine
	compiled *docker.Compiled // nil for a destruction, which has nothing to make
	snap     planner.Snapshot
	destroy  bool
	// obstacles let nothing be applied, and everything be compared.
	obstacles hcl.Diagnostics
}

// look is compare for those who cannot go on where something is in the way.
func (t *target) look(ctx context.Context) hcl.Diagnostics {
	diags := t.compare(ctx)
	return append(diags, t.obstacles...)
}

// compare observes the scope and compiles the configuration against what is there.
func (t *target) compare(ctx context.Context) hcl.Diagnostics {
	var err error
	if t.snap, err = t.engine.Observe(ctx, scopeOf(t.spec)); err != nil {
		return asDiagnostics(err)
	}
	if t.destroy {
		return nil
	}
	compiled, diags := t.engine.Compile(ctx, t.spec, t.snap)
	if diags.HasErrors() {
		return diags
	}
	t.compiled, t.snap = compiled, compiled.Complete(t.snap)
	t.obstacles = compiled.Obstacles(ctx, t.snap)
	return diags
}

// wanted are the objects that there are to be.
func (t *target) wanted() []planner.Resource {
	if t.compiled == nil {
		return nil
	}
	return t.compiled.Resources()
}
