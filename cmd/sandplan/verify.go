package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/applier/verify"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/proof"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker"
)

type verifyFlags struct {
	vars   varFlags
	input  bool
	format string
}

// verifyFormats are what -format takes.
var verifyFormats = []string{"text", "json", "junit", "sarif"}

func (a *app) verifyCommand() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify [options] [ADDRESS…]",
		Short: "Try to get out of the sandboxes, and say whether they hold",
		Long: `
Makes the sandboxes of each invocation once more, its runners' included, in a scope of its own, with a probe in the
place of each command and a canary in the place of the vendor, and tries to get out in every way that is known: to the host, to
the internet, past the proxy, to another invocation, through the kernel. What gets out is seen from outside. Every
attempt is made without the boundary as well: one that fails there proves nothing, and is "not proven". Nothing
outside this machine is contacted, no run is disturbed, and everything is removed afterwards.

Without an ADDRESS all invocations are verified, each with its runners; one like invocation.login means all its instances.

Exit code: 0 everything held, 121 something escaped, 1 something is not proven; otherwise as for run: 125 refused,
130 cancelled, and the others when a probe did not come to its end.`,
		Example: "sandplan verify\nsandplan verify -format=junit 'invocation.login[\"auth\"]' > verify.xml",
		RunE: a.action(func(cmd *cobra.Command, args []string) int {
			return a.verify(cmd.Context(), f, args)
		}),
		Args: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(verifyFormats, f.format) {
				return misuse(name(cmd), "-format=%s: it is one of %s", f.format, strings.Join(verifyFormats, ", "))
			}
			return nil
		},
	}
	f.vars.register(cmd.Flags())
	a.inputFlag(cmd, &f.input)
	cmd.Flags().StringVar(&f.format, "format", "text", "text, json, junit or sarif, a `name`; docs/schema says what JSON holds")
	cmd.Flags().BoolVar(&a.global.verbose, "verbose", false, "say of every attempt what came of it, and how it is known to work")
	return cmd
}

func (a *app) verify(ctx context.Context, f verifyFlags, args []string) int {
	u := a.ui()
	u.quiet = true
	in := a.watch(ctx, true, func(n int) { u.printErr(u.err.RunInterrupted(n)) })
	defer in.done()
	spec, ok := a.load(in.firstContext(), u, f.vars, f.input)
	if !ok {
		return a.refused(u, "the configuration is not valid")
	}
	subjects := spec.Invocations
	if len(args) > 0 {
		chosen, diags := chosen(spec, args)
		if u.report(diags) {
			return a.refused(u, "the address names nothing to verify")
		}
		subjects = chosen
	}
	if len(subjects) == 0 {
		return a.refused(u, "the configuration has no invocation to verify")
	}
	engine, err := a.open(in.ctx, spec.Provider.Host.V, spec.Dir)
	if err != nil {
		u.fail(err)
		return a.refused(u, "the engine cannot be used")
	}
	defer engine.Close()
	report := verify.Run(in.firstContext(), a.verification(in, u, spec, engine, subjects))
	return a.verified(u, f, spec, report)
}

// verified prints a report.
func (a *app) verified(u *ui, f verifyFlags, spec *hclspec.Spec, report verify.Report) int {
	if report.Unsettled != nil {
		u.fail(report.Unsettled)
	}
	if d := report.Decision; d != nil && d.Err != nil && errorHasPlace(d.Err) {
		u.fail(d.Err)
	}
	switch f.format {
	case "json":
		u.print(proof.JSON(a.version, report))
	case "junit":
		u.print(proof.JUnit(report))
	case "sarif":
		text, err := proof.SARIF(a.version, report, proof.Places{URI: a.uriOf(spec), Block: func(addr planner.Address) hcl.Range { return blockOf(spec, addr) }})
		if err != nil {
			u.fail(err)
		}
		u.print(text)
	default:
		u.print(u.human.Verification(report))
	}
	for _, s := range report.Subjects {
		if s.Decision != nil && len(s.Decision.Findings) > 0 {
			u.printErr(u.err.Stopped(s.Addr, s.Decision.Findings))
		}
	}
	if d := report.Decision; d != nil {
		u.printErr(u.err.Ended("", launch.Result{Code: report.Code(), By: launch.BySandplan, Decision: d, RecordDir: ""}))
	}
	return report.Code()
}

// sessionBytes make the random name of a verification.
const sessionBytes = 6

func (a *app) verification(in interrupts, u *ui, spec *hclspec.Spec, engine *docker.Engine, subjects []hclspec.Invocation) verify.Params {
	var b [sessionBytes]byte
	_, _ = rand.Read(b[:]) // it never fails: it ends the program instead
	return verify.Params{
		Spec: spec, Subjects: subjects, Session: hex.EncodeToString(b[:]), Origin: a.origin(spec.Dir), Version: a.version,
		EngineVersion: engine.Info().Version, EngineSocket: engine.Info().Socket, Engine: engine, Launch: launch.Run,
		HostAddresses: a.everyHostAddress, PID: os.Getpid(), TempDir: os.TempDir(), Now: a.now, Kill: in.second,
		Tell: func(text string) { u.printErr(u.human.Line("verify: " + text)) },
		Compile: func(ctx context.Context, s *hclspec.Spec, snap planner.Snapshot, seal func(*hclspec.Spec, string, string) (policy.Command, error)) (verify.Compiled, error) {
			c, diags := engine.CompileSealed(ctx, s, snap, seal)
			if diags.HasErrors() {
				return nil, diags
			}
			return c, nil
		},
		Canary: func(ctx context.Context, scope planner.Scope, stdout, stderr io.Writer) (verify.Probe, error) {
			return plainProbe(engine.StartProbe(ctx, scope, docker.ProbePlace{Name: "canary", Canary: true}, stdout, stderr))
		},
		Control: func(ctx context.Context, scope planner.Scope, o verify.Open, stdout, stderr io.Writer) (verify.Probe, error) {
			place := docker.ProbePlace{Name: "open", Network: o.Network, DNS: o.DNS, Tree: o.Tree, ReadOnly: o.ReadOnly, Shown: o.Shown}
			return plainProbe(engine.StartProbe(ctx, scope, place, stdout, stderr))
		},
		LockScope: func(ctx context.Context, scope planner.Scope, op string) (launch.Lock, error) {
			wait := lockWait{limit: verifyLockTimeout, gone: engine.AwaitUnlock}
			return waitForLock(ctx, wait, func(ctx context.Context) (launch.Lock, error) {
				return plainLock(engine.LockScope(ctx, scope, op))
			})
		},
		LockLease: func(ctx context.Context, scope planner.Scope, inv planner.Address) (launch.Lock, error) {
			return plainLock(engine.LockInvocation(ctx, scope, inv, "verify"))
		},
		Apply: func(ctx context.Context, c verify.Compiled, pl *planner.Plan, l launch.Lock) error {
			var p applier.Provider = remover{engine}
			if c != nil {
				p = provider{c.(*docker.Compiled), engine}
			}
			_, err := applier.Apply(ctx, pl, p, l, applier.Options{Now: a.now})
			return err
		},
	}
}

// verifyLockTimeout is how long its own scope may be held: nobody else knows of it.
const verifyLockTimeout = time.Minute

// plainProbe is a probe, or nil and the error: a nil pointer in an interface would pass for one.
func plainProbe(p *docker.Probe, err error) (verify.Probe, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}
