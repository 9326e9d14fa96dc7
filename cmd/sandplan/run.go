package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker"
)

type runFlags struct {
	vars        varFlags
	apply       bool
	prompt      string
	lockTimeout time.Duration
	input       bool
	runner      string // dispatch only
	parallelism int    // run only
}

// runLockTimeout is how long a run waits for others to finish an apply.
const runLockTimeout = 5 * time.Minute

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [options] ADDRESS…",
		Short: "Run an agent, if nothing differs from its declaration",
		Long: `
Compares the whole scope with the configuration and refuses when anything differs. Then it starts the proxy and
the agent's first process, lets that prove the sandbox from the inside, and only then hands over the prompt
and the credentials. What the agent prints goes to stdout, what sandplan says to stderr.

An ADDRESS like invocation.login means all its instances. Several run at once, each line with the address of
the one that prints it; one that fails does not disturb the others, and the exit code is the first that is not 0.

Exit code: the agent's own, or 119 bound on output, upload or download, 120 stopped for drift, 121 sandbox not proven,
122 engine lost, 123 proxy lost, 124 timed out, 125 refused, 126 not executable, 127 not found,
130 cancelled, 137 killed. When sandplan decided, the last line of stderr begins with "sandplan:".`,
		Example: "sandplan run 'invocation.login[\"auth\"]'\necho 'Review the last commit' | sandplan run -prompt=- invocation.review",
		RunE: a.action(func(cmd *cobra.Command, args []string) int {
			return a.run(cmd.Context(), f, args)
		}),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return misuse(name(cmd), "run needs the address of an invocation, such as invocation.review")
			}
			if f.parallelism < 1 {
				return misuse(name(cmd), "-parallelism=%d: at least 1 has to run at once", f.parallelism)
			}
			return nil
		},
	}
	f.register(a, cmd)
	cmd.Flags().BoolVar(&f.apply, "apply", false, "apply what differs first; refused when a declaration has changed")
	cmd.Flags().IntVar(&f.parallelism, "parallelism", runParallelism, "how many of several invocations run at once, a `number`")
	cmd.Flags().StringVar(&f.prompt, "prompt", "", "the prompt, a `file` or - for stdin, where the configuration gives none")
	return cmd
}

func (f *runFlags) register(a *app, cmd *cobra.Command) {
	f.vars.register(cmd.Flags())
	a.inputFlag(cmd, &f.input)
	a.jsonFlag(cmd)
	cmd.Flags().DurationVar(&f.lockTimeout, "lock-timeout", runLockTimeout, "how long to wait for the lock of the scope, a `duration`")
}

func (a *app) dispatchCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "dispatch [options] ADDRESS RUNNER",
		Short: "Run an approved command on an invocation's worktree, under the same gate",
		Long: `
Runs one command that the invocation's phase declares (a runner block), in a sandbox of its own without any
network. It takes the invocation's lease: while an agent runs there, it is refused. Exit codes as for run.`,
		Example: "sandplan dispatch 'invocation.login[\"auth\"]' test",
		RunE: a.action(func(cmd *cobra.Command, args []string) int {
			f.runner = args[1]
			return a.run(cmd.Context(), f, args[:1])
		}),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return misuse(name(cmd), "dispatch needs the address of an invocation and the name of a runner")
			}
			return nil
		},
	}
	f.register(a, cmd)
	return cmd
}

func (a *app) run(ctx context.Context, f runFlags, args []string) int {
	u := a.ui()
	u.quiet = true
	spec, ok := a.load(ctx, u, f.vars, f.input)
	if !ok {
		return a.refused(u, "the configuration is not valid")
	}
	invocations, diags := chosen(spec, args)
	if u.report(diags) {
		return a.refused(u, "the address names nothing to run")
	}
	prompt, err := a.readPrompt(u, f.prompt)
	if err != nil {
		u.fail(err)
		return a.refused(u, "the prompt cannot be used")
	}
	in := a.watch(ctx, true, func(n int) { u.printErr(u.err.RunInterrupted(n)) })
	defer in.done()
	engine, err := a.open(in.ctx, spec.Provider.Host.V, spec.Dir)
	if err != nil {
		u.fail(err)
		return a.refused(u, "the engine cannot be used")
	}
	defer engine.Close()
	u.runs = a.runProgress(u)
	defer u.runs.end()
	return a.runAll(in, u, f, spec, engine, invocations, prompt)
}

// refused ends a run that never began, in the form of every end that sandplan decides.
func (a *app) refused(u *ui, why string) int {
	u.printErr(u.err.Ended("", launch.Result{Code: exitRefused, By: launch.BySandplan, Decision: &launch.Decision{Reason: why}}))
	return exitRefused
}

// chosen are the invocations that addresses name, each once, in the order given.
func chosen(spec *hclspec.Spec, args []string) ([]hclspec.Invocation, hcl.Diagnostics) {
	addrs, diags := addresses("the command line", args)
	var out []hclspec.Invocation
	var names []string
	for _, inv := range spec.Invocations {
		names = append(names, inv.Address)
	}
	seen := map[string]bool{}
	for _, addr := range addrs {
		found := false
		for _, inv := range spec.Invocations {
			if addr.Contains(planner.Address(inv.Address)) {
				found = true
				if !seen[inv.Address] {
					seen[inv.Address] = true
					out = append(out, inv)
				}
			}
		}
		if found {
			continue
		}
		detail := fmt.Sprintf("The configuration has no invocation %s.", addr)
		switch n := nearest(string(addr), names); {
		case n != "":
			detail += fmt.Sprintf(" Did you mean %s?", n)
		case len(names) > 0 && len(names) <= 10:
			detail += " It has: " + strings.Join(names, ", ") + "."
		}
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "No such invocation", Detail: detail})
	}
	return out, diags
}

// readPrompt reads the prompt of the command line.
func (a *app) readPrompt(u *ui, from string) ([]byte, error) {
	var b []byte
	var err error
	switch from {
	case "":
		return nil, nil
	case "-":
		b, err = io.ReadAll(io.LimitReader(u.lines, policy.MaxPrompt+1))
	default:
		b, err = readLimited(from, policy.MaxPrompt+1)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the prompt from %s: %w", from, plainPathError(err))
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, fmt.Errorf("the prompt from %s is empty", from)
	}
	return b, policy.CheckPrompt(string(b))
}

func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// runOne runs one invocation and returns its exit code. Those that run at once share the turn at the scope's
// lock; nil for one alone.
func (a *app) runOne(in interrupts, u *ui, f runFlags, spec *hclspec.Spec, engine *docker.Engine, inv hclspec.Invocation, prompt []byte, t turn) int {
	p, err := a.params(in, u, f, spec, engine, inv, prompt, t)
	if err != nil {
		u.fail(err)
		return a.refused(u, inv.Address+" cannot be run")
	}
	u.runs.begin(planner.Address(inv.Address))
	res := launch.Run(in.firstContext(), p)
	u.runs.over(planner.Address(inv.Address))
	for _, w := range []io.Writer{p.Stdout, p.Stderr} {
		if out, ok := w.(*agentOutput); ok {
			out.flush()
		}
	}
	if res.Unsettled != nil {
		u.fail(res.Unsettled)
	}
	addr, d := planner.Address(inv.Address), res.Decision
	switch {
	case d == nil:
	case len(d.Findings) > 0 && d.Code == launch.CodeRefused:
		u.printErr(u.err.Refusal(addr, d.Findings))
	case len(d.Findings) > 0:
		u.printErr(u.err.Stopped(addr, d.Findings))
	case d.Err != nil && errorHasPlace(d.Err):
		u.fail(d.Err)
	}
	ended := u.err.Ended(addr, res)
	if u.together && u.stream == nil {
		ended = prefixed(addr, []byte(ended))
	}
	u.printErr(ended)
	return res.Code
}

// errorHasPlace reports whether an error says more as a diagnostic than in one line.
func errorHasPlace(err error) bool {
	var object *planner.ObjectError
	var locked *planner.LockedError
	var diags hcl.Diagnostics
	return errors.As(err, &object) || errors.As(err, &locked) || errors.As(err, &diags)
}
