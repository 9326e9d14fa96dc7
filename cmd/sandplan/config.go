package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
)

// varFlags are -var and -var-file: two flags and one list, since their order on the command line counts.
type varFlags struct{ args []hclspec.VarArg }

func (v *varFlags) register(fs *pflag.FlagSet) {
	fs.Var(varFlag{v, false}, "var", "a variable's `name=value`, repeatable")
	fs.Var(varFlag{v, true}, "var-file", "a `file` of variables, repeatable")
}

type varFlag struct {
	all  *varFlags
	file bool
}

func (f varFlag) Set(s string) error {
	if f.file {
		f.all.args = append(f.all.args, hclspec.VarArg{File: s})
		return nil
	}
	if !strings.Contains(s, "=") {
		return fmt.Errorf("%q is not NAME=VALUE", s)
	}
	f.all.args = append(f.all.args, hclspec.VarArg{Assign: s})
	return nil
}

func (f varFlag) String() string { return "" }
func (f varFlag) Type() string   { return "string" }

// inputFlag is -input: whether questions may be asked. Approval may be read from a pipe; values of
// variables are asked for on a terminal only.
func (a *app) inputFlag(cmd *cobra.Command, into *bool) {
	given := a.getenv("SANDPLAN_INPUT")
	cmd.Flags().BoolVar(into, "input", given != "0" && given != "false", "never ask for variables or approval")
}

func (a *app) source() hclspec.Source {
	return hclspec.Source{Path: a.global.config, Cwd: a.cwd, Workspace: a.workspace(), Version: a.version}
}

func (a *app) workspace() string {
	if a.global.workspace == "" {
		return "default"
	}
	return a.global.workspace
}

// load reads, evaluates and checks the configuration. It prints what is wrong with it; the second result
// is false when that forbids to go on.
func (a *app) load(ctx context.Context, u *ui, vars varFlags, ask bool) (*hclspec.Spec, bool) {
	values := hclspec.Vars{Env: a.environ, Args: vars.args}
	if ask && a.interactive && !a.global.json {
		values.Ask = func(v hclspec.Variable) (string, bool) { return u.askVariable(ctx, v) }
	}
	spec, diags := hclspec.Load(a.source(), values, policy.Catalog())
	u.sources(spec.Sources)
	if ctx.Err() != nil { // pressed at a question, which then is no value, and no mistake
		u.fail(ctx.Err())
		return nil, false
	}
	if !diags.HasErrors() {
		diags = append(diags, policy.Check(spec)...)
	}
	return spec, !u.report(diags)
}

// askVariable asks for the value of a variable that has none. A sensitive one does not show while it is typed.
func (u *ui) askVariable(ctx context.Context, v hclspec.Variable) (string, bool) {
	if v.Sensitive && u.app.hide != nil {
		defer u.app.hide()()
	}
	answer := u.ask(ctx, u.human.AskVariable(v.Name, v.Description, v.Sensitive))
	return answer, answer != ""
}

func scopeOf(spec *hclspec.Spec) planner.Scope {
	return planner.Scope{Project: spec.Project.V, Workspace: spec.Workspace}
}

// blocks are the addresses of all invocation blocks, those without an instance included.
func blocks(spec *hclspec.Spec) []planner.Address {
	var out []planner.Address
	for _, name := range spec.Blocks {
		out = append(out, planner.InvocationAddress(name, nil))
	}
	return out
}

// dataDir is where runs and their records are kept.
func (a *app) dataDir(configDir string) string {
	if d := a.getenv("SANDPLAN_DATA_DIR"); d != "" {
		if filepath.IsAbs(d) {
			return filepath.Clean(d)
		}
		return filepath.Join(a.cwd, d)
	}
	return filepath.Join(configDir, ".sandplan")
}

// keeps fails where the data directory cannot be used: nothing is made without it, and half an apply would be
// done before that is noticed.
func (a *app) keeps(configDir string) error {
	dir := a.dataDir(configDir)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = unix.Access(dir, unix.W_OK)
	}
	if err == nil {
		return nil
	}
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Data directory not usable", Detail: fmt.Sprintf(
		"%s is where runs and their records are kept, and it cannot be written: %s. Make it writable, or set SANDPLAN_DATA_DIR to a directory that is.",
		dir, plainPathError(err))}
}

// addresses reads flags and arguments that name objects. All mistakes are reported at once.
func addresses(flag string, texts []string) ([]planner.Address, hcl.Diagnostics) {
	var out []planner.Address
	var diags hcl.Diagnostics
	for _, t := range texts {
		addr, err := planner.ParseAddress(t)
		if err != nil {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Not an address in " + flag, Detail: fullSentence(err.Error())})
			continue
		}
		out = append(out, addr)
	}
	return out, diags
}

// sortedNames are the keys of a map in order.
func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
