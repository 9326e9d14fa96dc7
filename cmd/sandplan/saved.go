package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
)

// applyFile carries out a saved plan, and nothing else: every planning option would be a contradiction.
func (a *app) applyFile(cmd *cobra.Command, f applyFlags, path string) int {
	for _, name := range []string{"var", "var-file", "target", "replace", "destroy", "takeover", "config", "workspace"} {
		if fl := cmd.Flags().Lookup(name); fl != nil && fl.Changed {
			return a.fail(misuse("apply", "-%s and a saved plan exclude each other: the plan says it all", name))
		}
	}
	f.approve = true // whoever saved the plan has read it
	if err := f.check("apply", a.global.json); err != nil {
		return a.fail(err)
	}
	u := a.ui()
	in := a.watchWork(cmd.Context(), u)
	defer in.done()
	saved, t, ok := a.openSaved(in.ctx, u, path)
	if !ok {
		return exitError
	}
	defer t.engine.Close()
	if err := a.keeps(t.spec.Dir); err != nil && !saved.Options.Destroy {
		u.fail(err)
		return exitError
	}
	held, err := a.lockScope(in, u, t.engine, scopeOf(t.spec), "apply", f.lockTimeout)
	if err != nil {
		u.fail(err)
		return exitError
	}
	defer a.release(u, held)
	pl, ok := a.planAgain(in.ctx, u, saved, t)
	if !ok {
		return exitError
	}
	if !saved.Options.Takeover && u.report(inUse(pl)) {
		return exitError
	}
	if pl.Destroy {
		return a.carryOutDestroy(in, u, t.engine, pl, held, f.parallelism)
	}
	return a.carryOut(in, u, t, pl, held, f.parallelism)
}

// planAgain makes the plan that was saved from what it holds and what the engine has now, and refuses when
// that is not the same any more. What is to be destroyed stands in labels: worktrees and images may be gone.
func (a *app) planAgain(ctx context.Context, u *ui, saved *planner.SavedPlan, t *target) (*planner.Plan, bool) {
	t.destroy = saved.Options.Destroy
	if u.report(t.look(ctx)) {
		return nil, false
	}
	err := verifySeen(saved, t.snap)
	if err == nil {
		err = saved.VerifyWanted(t.wanted())
	}
	if err != nil {
		u.fail(err)
		return nil, false
	}
	return planner.Diff(t.wanted(), t.snap, saved.Options), true
}

// openSaved reads a saved plan, checks its configuration again, and opens the engine. Nothing in the file is
// taken on trust: it is sealed and compiled anew.
func (a *app) openSaved(ctx context.Context, u *ui, path string) (*planner.SavedPlan, *target, bool) {
	saved, spec, ok := a.readSaved(u, path)
	if !ok {
		return nil, nil, false
	}
	engine, err := a.open(ctx, spec.Provider.Host.V, spec.Dir)
	if err != nil {
		u.fail(err)
		return nil, nil, false
	}
	return saved, &target{spec: spec, engine: engine}, true
}

// readSaved reads a saved plan and checks its configuration again.
func (a *app) readSaved(u *ui, path string) (*planner.SavedPlan, *hclspec.Spec, bool) {
	saved, err := planner.ReadPlan(path)
	if err == nil {
		err = saved.VerifyVersion(a.version)
	}
	if err != nil {
		u.fail(notAPlan(path, err))
		return nil, nil, false
	}
	spec := &hclspec.Spec{}
	if err := json.Unmarshal(saved.Spec, spec); err != nil {
		u.fail(fmt.Errorf("read the configuration in the plan: %w", err))
		return nil, nil, false
	}
	spec.Sources = saved.Sources
	u.sources(spec.Sources)
	if u.report(policy.Check(spec)) {
		return nil, nil, false
	}
	return saved, spec, true
}

// notAPlan words what people take for a saved plan: a file that is another one, or an address.
func notAPlan(path string, err error) error {
	var fault *planner.PlanError
	d := &hcl.Diagnostic{Severity: hcl.DiagError}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.Summary, d.Detail = "No saved plan", fmt.Sprintf("There is no file %s.", render.Clean(path))
	case errors.As(err, &fault) && fault.Fault == planner.PlanMalformed:
		d.Summary, d.Detail = "Not a saved plan", fmt.Sprintf("%s is not used: %s", render.Clean(path), strings.TrimPrefix(fault.Text, "The file cannot be applied: "))
	default:
		return err
	}
	d.Detail += " A plan is saved by `sandplan plan -out=FILE`."
	if _, err := planner.ParseAddress(path); err == nil {
		d.Detail += fmt.Sprintf(" To plan and apply a part only, use -target=%s.", path)
	}
	return d
}

// verifySeen holds a saved plan against the engine.
func verifySeen(f *planner.SavedPlan, now planner.Snapshot) error {
	if err := f.VerifyEngine(now); err != nil {
		return err
	}
	return f.VerifyFresh(now)
}

// planFault words the faults of a saved plan.
func planFault(err error) (*hcl.Diagnostic, bool) {
	var fault *planner.PlanError
	if !errors.As(err, &fault) {
		return nil, false
	}
	summary := map[planner.PlanFault]string{
		planner.PlanStale: "The saved plan is stale", planner.PlanEngine: "The saved plan is for another engine",
		planner.PlanVersion: "The saved plan is of another version", planner.PlanTampered: "The saved plan is not what it says",
		planner.PlanMalformed: "Not a saved plan",
	}[fault.Fault]
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fault.Text}, true
}
