package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker"
)

// params are what one run is made of: the declaration, the engine, and the ways to ask for more.
func (a *app) params(in interrupts, u *ui, f runFlags, spec *hclspec.Spec, engine *docker.Engine, inv hclspec.Invocation, prompt []byte, mine turn) (launch.Params, error) {
	scope, addr := scopeOf(spec), planner.Address(inv.Address)
	host, err := a.hostAddresses()
	if err != nil {
		return launch.Params{}, err
	}
	p := launch.Params{
		Scope: scope, Origin: a.origin(spec.Dir), Version: a.version, Invocation: inv, Runner: f.runner,
		Timeout: inv.Timeout.V, Output: inv.Limits.Output.V, Engine: engine, Prompt: prompt,
		Stdout: u.agentWriter(addr, "stdout"), Stderr: u.agentWriter(addr, "stderr"), DataDir: a.dataDir(spec.Dir), Now: a.now, Kill: in.second,
		Events:        u.runEvent,
		HostAddresses: host,
	}
	if f.runner == "" {
		p.Command, err = policy.Seal(spec, inv.Address)
	} else {
		p.Command, err = policy.SealRunner(spec, inv.Address, f.runner)
		p.Timeout = runnerTimeout(spec, inv.Phase.V, f.runner)
	}
	if err != nil {
		return p, err
	}
	p.Credentials = func() (map[string][]byte, error) { return a.secrets(u, spec, p.Command) }
	if p.Prompt, err = thePrompt(inv, p.Command, prompt); err != nil {
		return p, err
	}
	p.Compile = func(ctx context.Context, s planner.Snapshot) (launch.Compiled, error) {
		c, diags := engine.Compile(ctx, spec, s)
		if diags.HasErrors() {
			return nil, diags
		}
		return c, nil
	}
	wait := lockWait{limit: f.lockTimeout, turn: mine, gone: engine.AwaitUnlock, waiting: func(i planner.LockInfo) {
		if !a.isOurs(i) {
			u.printErr(u.err.Waiting("the scope "+scope.String(), i))
		}
	}}
	p.LockScope = func(ctx context.Context) (launch.Lock, error) {
		return waitForLock(ctx, wait, func(ctx context.Context) (launch.Lock, error) {
			return plainLock(engine.LockScope(ctx, scope, operation(f)))
		})
	}
	p.LockLease = func(ctx context.Context) (launch.Lock, error) {
		return plainLock(engine.LockInvocation(ctx, scope, addr, operation(f)))
	}
	p.Apply = func(ctx context.Context, c launch.Compiled, pl *planner.Plan, l launch.Lock) error {
		_, err := applier.Apply(ctx, pl, provider{c.(*docker.Compiled), engine}, l, applier.Options{Now: a.now})
		return err
	}
	if f.apply {
		p.Approve = func(_ context.Context, pl *planner.Plan) error { return approveForRun(spec, pl) }
	}
	return p, nil
}

// plainLock is a lock, or nil and the error: a nil pointer in an interface would pass for a lock.
func plainLock(l *docker.Lock, err error) (launch.Lock, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// isOurs reports whether a lock is of this very command: several runs at once have it one after the other, and
// nobody has to know.
func (a *app) isOurs(i planner.LockInfo) bool { return i.PID == os.Getpid() && i.Who == a.who }

func operation(f runFlags) string {
	if f.runner != "" {
		return planner.OperationDispatch
	}
	return "run"
}

// thePrompt is the declared prompt, or the command line's where none is declared.
func thePrompt(inv hclspec.Invocation, c policy.Command, given []byte) ([]byte, error) {
	switch {
	case c.Runner() != "":
		return nil, nil
	case inv.Prompt.Set && given != nil:
		return nil, fmt.Errorf("%s declares its prompt, so -prompt cannot give another one", inv.Address)
	case inv.Prompt.Set:
		return []byte(inv.Prompt.V), nil
	case given == nil && c.Kind() != policy.KindCustom:
		return nil, fmt.Errorf("%s declares no prompt: give one with -prompt=FILE, or -prompt=- for standard input", inv.Address)
	}
	return given, nil
}

func runnerTimeout(spec *hclspec.Spec, phase, runner string) time.Duration {
	for _, p := range spec.Phases {
		for _, r := range p.Runners {
			if p.Name == phase && r.Name == runner {
				return r.Timeout.V
			}
		}
	}
	return 0
}
