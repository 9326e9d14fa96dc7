package main

import (
	"bytes"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
)

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "A script that completes commands, options and addresses in a shell",
		Long: `
Prints a script for one shell. It asks sandplan itself, which completes addresses from the configuration.

bash: sandplan completion bash > /etc/bash_completion.d/sandplan

zsh: sandplan completion zsh > "${fpath[1]}/_sandplan"

fish: sandplan completion fish > ~/.config/fish/completions/sandplan.fish`,
		Example: "source <(sandplan completion bash)",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse(name(cmd), "completion needs the name of one shell: bash, zsh or fish")
			}
			return nil
		},
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			}
			return misuse(name(cmd), "completion knows bash, zsh and fish, and not %q", args[0])
		},
	}
}

// asksCompletion reports whether a command line is a shell's question what could come next.
func asksCompletion(args []string) bool {
	return len(args) > 1 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// complete answers such a question. The flag library completes --long, and people type -long.
func (a *app) complete(args []string) int {
	var out bytes.Buffer
	root := a.rootCommand()
	line := args[1:]
	typed := line[len(line)-1]
	if dir, rest, err := takeChdir(line); err == nil {
		if dir != "" && a.chdir(dir) == nil {
			if cwd, err := a.getwd(); err == nil {
				a.cwd = cwd
			}
		}
		line = rest
	}
	line = doubleDashes(line)
	// A dash and at most one letter are the beginning of a long option, too.
	single := strings.HasPrefix(typed, "-") && !strings.HasPrefix(typed, "--")
	if single && len(line) > 0 && len(typed) <= 2 {
		line[len(line)-1] = "-" + typed
	}
	root.SetArgs(append([]string{args[0]}, line...))
	root.SetOut(&out)
	root.SetErr(io.Discard)
	if err := root.Execute(); err != nil {
		return exitError
	}
	for l := range strings.Lines(out.String()) {
		if single && strings.HasPrefix(l, "--") {
			l = l[1:]
		}
		io.WriteString(a.stdout, l)
	}
	return exitOK
}

// completes attaches what the configuration knows to the arguments and options of all commands.
func (a *app) completes(root *cobra.Command) {
	words := func(list func() []string) cobra.CompletionFunc {
		return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			var out []string
			for _, w := range list() {
				if strings.HasPrefix(w, typed) {
					out = append(out, w)
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		}
	}
	fixed := func(list ...string) cobra.CompletionFunc { return words(func() []string { return list }) }
	invocations, objects := words(a.invocationAddresses), words(a.objectAddresses)
	byCommand := map[string]cobra.CompletionFunc{
		"run": invocations, "state list": objects, "state show": objects, "output": words(a.outputNames),
		"dispatch": func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return invocations(cmd, args, typed)
			}
			return words(func() []string { return a.runnersOf(args[0]) })(cmd, args, typed)
		},
	}
	for _, takesNoFile := range []string{"init", "validate", "plan", "drift", "destroy", "version", "graph", "force-unlock"} {
		byCommand[takesNoFile] = fixed()
	}
	byFlag := map[string]cobra.CompletionFunc{
		"target": objects, "replace": objects, "ignore": objects, "format": fixed(sortedNames(graphFormats)...), "lockfile": fixed("readonly"),
		"var": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return a.variableNames(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		},
		"var-file": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"hcl"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	eachCommand(root, func(c *cobra.Command) {
		if f, known := byCommand[name(c)]; known {
			c.ValidArgsFunction = f
		}
		for flag, f := range byFlag {
			if c.Flags().Lookup(flag) != nil {
				// It fails only for a flag that is not there, or that has a function already.
				_ = c.RegisterFlagCompletionFunc(flag, f)
			}
		}
	})
}

// eachCommand calls f for a command and all below it.
func eachCommand(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		eachCommand(sub, f)
	}
}

// known is the configuration as far as it can be read: with the values that there are, or else without any.
func (a *app) known() *hclspec.Spec {
	spec, diags := hclspec.Load(a.source(), hclspec.Vars{Env: a.environ}, policy.Catalog())
	if diags.HasErrors() {
		spec, _ = hclspec.Load(a.source(), hclspec.Vars{Unknown: true}, policy.Catalog())
	}
	return spec
}

func (a *app) invocationAddresses() []string {
	var out []string
	for _, inv := range a.known().Invocations {
		out = append(out, inv.Address+"\tvendor."+inv.Vendor.V+", phase."+inv.Phase.V)
	}
	return out
}

// objectAddresses are the addresses of everything that the configuration declares.
func (a *app) objectAddresses() []string {
	spec := a.known()
	var out []string
	for _, inv := range spec.Invocations {
		addr := planner.Address(inv.Address)
		for _, part := range []planner.Address{addr, addr.With(planner.PartNetwork), addr.With(planner.PartProxy), addr.With(planner.PartAgent)} {
			out = append(out, string(part))
		}
		for _, r := range runnersIn(spec, inv.Phase.V) {
			out = append(out, string(addr.Runner(r)))
		}
	}
	for _, v := range spec.Vendors {
		out = append(out, string(planner.VendorImage(v.Name)))
	}
	return append(out, string(planner.AddrImage), string(planner.AddrShim), string(planner.AddrUplink))
}

func (a *app) runnersOf(address string) []string {
	spec := a.known()
	for _, inv := range spec.Invocations {
		if inv.Address == address {
			return runnersIn(spec, inv.Phase.V)
		}
	}
	return nil
}

// runnersIn are the names of a phase's approved commands.
func runnersIn(spec *hclspec.Spec, phase string) []string {
	var out []string
	for _, p := range spec.Phases {
		if p.Name != phase {
			continue
		}
		for _, r := range p.Runners {
			out = append(out, r.Name)
		}
	}
	return out
}

func (a *app) variableNames() []string {
	var out []string
	for _, v := range a.known().Variables {
		out = append(out, v.Name+"="+"\t"+v.Description)
	}
	return out
}

func (a *app) outputNames() []string {
	spec := a.known()
	outs, _ := spec.EvalOutputs(nil)
	return sortedNames(outs)
}
