package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/machine"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/markdown"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/permission"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker"
)

// declaration is one side of a comparison without an engine.
type declaration struct {
	spec      *hclspec.Spec
	resources []planner.Resource
}

// comparison is a plan against another declaration in place of an engine.
type comparison struct {
	now, base declaration
	plan      *planner.Plan
	reports   []permission.Report
	notes     []string
}

// planBase compares the configuration with another one: no engine, no credential, no file of the host.
func (a *app) planBase(ctx context.Context, u *ui, f planFlags) int {
	c, ok := a.compareWith(ctx, u, f)
	if !ok {
		return exitError
	}
	denied := f.denied(c.now.spec, c.reports)
	switch f.format {
	case formatMarkdown:
		u.print(markdown.Plan(markdown.PlanInput{Plan: c.plan, Base: f.base, Permissions: unread(c.reports, c.plan), Notes: c.notes, Denied: f.deny}))
	case formatJSON:
		u.print(machine.Document(machine.NewPlan(machine.PlanInput{Plan: c.plan, Permissions: c.reports, Snapshot: planner.Snapshot{Scope: c.plan.Scope},
			Variables: variables(c.now.spec), Version: a.version, Now: a.now()})))
	default:
		a.printComparison(u, f, c)
	}
	if u.report(denied) {
		return exitError
	}
	if f.detailed && !c.same() {
		return exitChanges
	}
	return exitOK
}

// same reports whether both sides declare the same. Which engine it is for stands in no object.
func (c comparison) same() bool {
	return c.plan.Empty() && !slices.ContainsFunc(c.reports, func(r permission.Report) bool { return len(r.Widened) > 0 })
}

func (a *app) printComparison(u *ui, f planFlags, c comparison) {
	if u.stream == nil {
		u.print(fmt.Sprintf("Compared with %s. No engine was asked: what only an engine decides is (known after apply).\n\n", render.Clean(f.base)))
	}
	if u.stream == nil && c.same() {
		u.print("No changes. Both declare the same.\n")
	} else {
		u.print(u.out.Plan(c.plan, render.PlanView{Permissions: unread(c.reports, c.plan)}))
	}
	if len(c.notes) > 0 {
		u.print(u.out.Gap())
		u.notices(c.notes)
	}
}

// compareWith evaluates both sides and holds one against the other.
func (a *app) compareWith(ctx context.Context, u *ui, f planFlags) (comparison, bool) {
	now, ok := a.load(ctx, u, f.vars, f.input)
	if !ok {
		return comparison{}, false
	}
	base, err := a.baseSpec(u, f)
	if err != nil {
		u.fail(err)
		return comparison{}, false
	}
	c := comparison{now: declaration{spec: now}, base: declaration{spec: base}}
	nowRoot := repositoryOf(now.Dir)
	var diags hcl.Diagnostics
	if c.now.resources, diags = onPaper(ctx, now, nowRoot); u.report(diags) {
		return c, false
	}
	if base == nil {
		c.notes = append(c.notes, fmt.Sprintf("There is nothing to compare with. %s holds no configuration, so all that agents may do is more than before.", f.base))
	} else if c.base.resources, diags = onPaper(ctx, base, baseRoot(now.Dir, nowRoot, base.Dir)); diags.HasErrors() {
		u.fail(fmt.Errorf("compile %s: %w", f.base, diags))
		return c, false
	}
	c.plan = planner.Diff(c.now.resources, asSnapshot(scopeOf(now), c.base.resources), planner.Options{Blocks: blocks(now)})
	c.reports = permission.Against(sets(c.base), sets(c.now))
	c.notes = append(c.notes, renames(c)...)
	return c, true
}

func onPaper(ctx context.Context, spec *hclspec.Spec, root string) ([]planner.Resource, hcl.Diagnostics) {
	compiled, diags := docker.NoEngine(root).Compile(ctx, spec, planner.Snapshot{})
	return compiled.Resources(), diags
}

// sets are what a declaration lets its agents do, in the user's words.
func sets(d declaration) []permission.Set {
	out := docker.Permissions(docker.Wanted(d.resources))
	for i := range out {
		nameSet(d.spec, &out[i])
		if out[i].Engine = d.spec.Provider.Host.V; out[i].Engine == "" {
			out[i].Engine = "the one that DOCKER_HOST or the docker context names"
		}
	}
	return out
}

// asSnapshot is an engine that has exactly what a declaration says.
func asSnapshot(scope planner.Scope, base []planner.Resource) planner.Snapshot {
	s := planner.Snapshot{Scope: scope}
	for _, r := range base {
		s.Objects = append(s.Objects, planner.Object{Addr: r.Addr, Kind: r.Kind, Schema: planner.Schema, Digest: r.Digest,
			Declared: r.Fields, Observed: r.Fields, DependsOn: r.DependsOn})
	}
	return s
}

// renames says that invocations are compared by their addresses, where that may surprise.
func renames(c comparison) []string {
	was, is := map[planner.Address]bool{}, map[planner.Address]bool{}
	for _, s := range sets(c.base) {
		was[s.Invocation] = true
	}
	var added, gone []string
	for _, s := range sets(c.now) {
		if is[s.Invocation] = true; !was[s.Invocation] {
			added = append(added, string(s.Invocation))
		}
	}
	for _, s := range sets(c.base) {
		if !is[s.Invocation] {
			gone = append(gone, string(s.Invocation))
		}
	}
	if len(added) == 0 || len(gone) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Invocations are compared by address only. %s is gone and %s is new: if that is a new name, all that it may do counts as more than before.",
		strings.Join(gone, ", "), strings.Join(added, ", "))}
}

// baseSpec is the configuration to compare with: a directory, a file, or a saved plan. It is nil for a
// directory that holds none: before the first one was checked in, there was nothing.
func (a *app) baseSpec(u *ui, f planFlags) (*hclspec.Spec, error) {
	path := f.base
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.cwd, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("look for -base=%s: %w; it takes a directory, a file or a saved plan", f.base, plainPathError(err))
	}
	if info.Mode().IsRegular() && isGzip(path) {
		return a.basePlan(path)
	}
	if info.IsDir() && holdsNone(path) {
		return nil, nil
	}
	src := a.source()
	src.Path = f.base
	spec, diags := hclspec.Load(src, hclspec.Vars{Env: a.environ, Args: a.declaredArgs(src, f.vars)}, policy.Catalog())
	// Under names of their own: the files of both sides may have the same.
	if !diags.HasErrors() {
		diags = append(diags, policy.Check(spec)...)
	}
	errs, _ := render.Split(diags)
	for _, d := range errs {
		d.Detail = strings.TrimSpace(d.Detail + fmt.Sprintf(" This is in -base=%s. Values of variables that only one side declares are given as SANDPLAN_VAR_NAME.", f.base))
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return spec, nil
}

// declaredArgs are the values that the base declares a variable for. One that is new, or gone, is no mistake.
func (a *app) declaredArgs(src hclspec.Source, vars varFlags) []hclspec.VarArg {
	known, _ := hclspec.Load(src, hclspec.Vars{Unknown: true}, policy.Catalog())
	return slices.DeleteFunc(slices.Clone(vars.args), func(v hclspec.VarArg) bool {
		name, _, _ := strings.Cut(v.Assign, "=")
		return v.File == "" && !slices.ContainsFunc(known.Variables, func(d hclspec.Variable) bool { return d.Name == name })
	})
}

// basePlan is the configuration in a saved plan. Nothing else of it counts.
func (a *app) basePlan(path string) (*hclspec.Spec, error) {
	saved, err := planner.ReadPlan(path)
	if err == nil {
		err = saved.VerifyVersion(a.version)
	}
	if err != nil {
		return nil, err
	}
	spec := &hclspec.Spec{}
	if err := json.Unmarshal(saved.Spec, spec); err != nil {
		return nil, fmt.Errorf("read the configuration in the plan: %w", err)
	}
	if diags := policy.Check(spec); diags.HasErrors() {
		return nil, diags
	}
	return spec, nil
}

func isGzip(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, 2)
	_, err = io.ReadFull(file, head)
	return err == nil && bytes.Equal(head, []byte{0x1f, 0x8b})
}

// holdsNone reports whether a directory has no configuration at all.
func holdsNone(dir string) bool {
	one, _ := filepath.Glob(filepath.Join(dir, "sandplan.hcl"))
	more, _ := filepath.Glob(filepath.Join(dir, "*.sandplan.hcl"))
	return len(one)+len(more) == 0
}

func plainPathError(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// baseRoot is the repository of the base. A checkout may lie anywhere, and may be an export without .git, even
// within the other one's repository: then it is what is left of its path without the way to the configuration.
func baseRoot(nowDir, nowRoot, baseDir string) string {
	if root := repositoryOf(baseDir); root != nowRoot && root != baseDir {
		return root
	}
	rel, err := filepath.Rel(nowRoot, nowDir)
	if err != nil || rel == "." {
		return baseDir
	}
	if root, ok := strings.CutSuffix(baseDir, "/"+rel); ok {
		return root
	}
	if strings.HasPrefix(baseDir, nowRoot+"/") { // another directory of the one checkout
		return nowRoot
	}
	return baseDir
}
