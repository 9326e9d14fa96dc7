package main

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker"
)

// applyFlags say how to carry a plan out. destroy shares them.
type applyFlags struct {
	planFlags
	approve     bool
	parallelism int
	lockTimeout time.Duration
}

func (f *applyFlags) register(a *app, cmd *cobra.Command) {
	f.planFlags.register(a, cmd)
	f.registerApply(a, cmd)
}

func (f *applyFlags) registerApply(a *app, cmd *cobra.Command) {
	a.jsonFlag(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&f.approve, "auto-approve", false, "do not ask")
	fs.IntVar(&f.parallelism, "parallelism", applier.DefaultParallelism, "operations at a time, `n`")
	fs.DurationVar(&f.lockTimeout, "lock-timeout", 0, "how long to wait for the lock of the scope, a `duration`")
	fs.Lookup("lock-timeout").DefValue = ""
}

func (a *app) applyCommand() *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply [options] [PLANFILE]",
		Short: "Make the engine what the configuration declares",
		Long: `
Plans, shows the plan, asks, and carries it out. With a PLANFILE from "sandplan plan -out", exactly that plan
is carried out, without a question; it is refused when anything has changed since.

Ctrl-C lets what is under way finish; a second one breaks it off. Either way the next plan tells the truth.`,
		Example: "sandplan apply\nsandplan apply -auto-approve -lock-timeout=1m",
		Args:    onePlan,
		RunE: a.action(func(cmd *cobra.Command, args []string) int {
			if len(args) == 1 {
				return a.applyFile(cmd, f, args[0])
			}
			return a.apply(cmd.Context(), f)
		}),
	}
	f.register(a, cmd)
	cmd.Flags().BoolVar(&f.destroy, "destroy", false, "destroy everything of the scope")
	cmd.Flags().BoolVar(&f.takeover, "takeover", false, "replace every object of a scope that another directory uses")
	return cmd
}

func (a *app) apply(ctx context.Context, f applyFlags) int {
	u := a.ui()
	u.compact = f.compact
	if err := f.check("apply", a.global.json); err != nil {
		return a.fail(err)
	}
	if f.destroy {
		return a.destroy(ctx, destroyFlags{applyFlags: f})
	}
	in := a.watchWork(ctx, u)
	defer in.done()
	spec, ok := a.load(in.firstContext(), u, f.vars, f.input)
	if !ok {
		return exitError
	}
	if err := a.keeps(spec.Dir); err != nil {
		u.fail(err)
		return exitError
	}
	engine, err := a.open(in.ctx, spec.Provider.Host.V, spec.Dir)
	if err != nil {
		u.fail(err)
		return exitError
	}
	defer engine.Close()
	t := &target{spec: spec, engine: engine}
	held, err := a.lockScope(in, u, engine, scopeOf(spec), "apply", f.lockTimeout)
	if err != nil {
		u.fail(err)
		return exitError
	}
	defer a.release(u, held)
	if u.report(t.look(in.ctx)) {
		return exitError
	}
	_, pl, ok := a.diff(u, t, f.planFlags)
	if !ok {
		return exitError
	}
	u.print(u.out.Plan(pl, a.planView(t, pl, len(f.targets) > 0)))
	a.planWarnings(u, pl, f.planFlags)
	if len(pl.Conflicts()) > 0 {
		u.report(conflicts(pl))
		return exitError
	}
	if !pl.Empty() && !a.approved(in, u, f, pl) {
		return exitError
	}
	return a.carryOut(in, u, t, pl, held, f.parallelism)
}

// check refuses flags that contradict each other.
func (f applyFlags) check(command string, json bool) error {
	saved := ", or apply a saved plan"
	if command == "destroy" {
		saved = ""
	}
	if err := f.planFlags.check(command); err != nil {
		return err
	}
	switch {
	case f.parallelism < 1:
		return misuse(command, "-parallelism=%d: at least one operation has to run at a time", f.parallelism)
	case f.lockTimeout < 0:
		return misuse(command, "-lock-timeout=%s: nobody can wait for less than nothing", f.lockTimeout)
	case json && !f.approve:
		return misuse(command, "-json leaves nobody to ask: add -auto-approve%s", saved)
	case !f.input && !f.approve:
		return misuse(command, "-input=false leaves nobody to ask: add -auto-approve%s", saved)
	}
	return nil
}

// approved asks. Only the literal yes counts, and Ctrl-C is a no.
func (a *app) approved(in interrupts, u *ui, f applyFlags, pl *planner.Plan) bool {
	if f.approve && !f.takeover && u.report(inUse(pl)) {
		return false
	}
	if f.approve {
		u.print(u.out.Gap())
		return true
	}
	if u.ask(in.firstContext(), u.human.Approval(pl)) == "yes" {
		return true
	}
	u.printErr(u.err.Cancelled(pl))
	return false
}

// inUse refuses a scope that another directory uses, where nobody is there to be asked.
func inUse(pl *planner.Plan) hcl.Diagnostics {
	if len(pl.ForeignOrigins) == 0 {
		return nil
	}
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "The scope is in use by another directory",
		Detail: fmt.Sprintf("Objects of %s come from %s. With -takeover every one of them is replaced; with -workspace=NAME "+
			"this directory gets a scope of its own.", pl.Scope, render.Clean(pl.ForeignOrigins[0]))}}
}

// carryOut applies a plan, tells what happens, and ends with the summary and the outputs.
func (a *app) carryOut(in interrupts, u *ui, t *target, pl *planner.Plan, held *docker.Lock, parallelism int) int {
	result, err := a.walk(in, u, pl, provider{t.compiled, t.engine}, held, parallelism)
	if err != nil {
		u.printErr(u.err.Gap())
		u.fail(err)
		return exitError
	}
	if !pl.Empty() {
		u.print(u.out.Applied(result.Added, result.Changed, result.Destroyed))
	}
	ids := result.IDs
	live := t.compiled.Live(ids)
	outs, diags := t.spec.EvalOutputs(live)
	diags = append(diags, t.spec.EvalChecks(live)...)
	if u.report(diags) {
		return exitError
	}
	if len(outs) > 0 {
		u.print(u.out.Gap() + u.out.Outputs(outputs(outs)))
	}
	return exitOK
}

// walk carries a plan out under a lock.
func (a *app) walk(in interrupts, u *ui, pl *planner.Plan, p applier.Provider, held applier.Lock, parallelism int) (applier.Result, error) {
	progress := a.progress(u)
	defer progress.end()
	return applier.Apply(in.ctx, pl, p, held, applier.Options{
		Parallelism: parallelism, Events: progress.event, Now: a.now, Stop: in.first,
	})
}

// lockScope takes the lock of the scope.
func (a *app) lockScope(in interrupts, u *ui, e *docker.Engine, s planner.Scope, op string, limit time.Duration) (*docker.Lock, error) {
	wait := lockWait{limit: limit, gone: e.AwaitUnlock, waiting: func(i planner.LockInfo) { u.print(u.out.Waiting("the scope "+s.String(), i)) }}
	return waitForLock(in.firstContext(), wait, func(ctx context.Context) (*docker.Lock, error) { return e.LockScope(ctx, s, op) })
}

// release gives a lock back, whatever has happened: the command may be on its way out because of Ctrl-C.
func (a *app) release(u *ui, held *docker.Lock) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := held.Release(ctx); err != nil {
		u.fail(fmt.Errorf("the lock could not be given back: %w", err))
	}
}

// outputs are in the order of their names.
func outputs(m map[string]hclspec.Output) []render.Output {
	var out []render.Output
	for _, name := range sortedNames(m) {
		o := m[name]
		out = append(out, render.Output{Name: name, Sensitive: o.Sensitive, Value: o.Value})
	}
	return out
}
