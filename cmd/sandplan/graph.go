package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/topology"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner/policy"
)

type graphFlags struct {
	vars   varFlags
	format string
	out    string
	plan   string
	input  bool
}

// graphFormats are what graph draws, and the endings of files that mean it.
var graphFormats = map[string][]string{
	"svg": {".svg"}, "dot": {".dot", ".gv"}, "mermaid": {".mmd", ".mermaid"},
}

func (a *app) graphCommand() *cobra.Command {
	var f graphFlags
	cmd := &cobra.Command{
		Use:   "graph [options]",
		Short: "Draw who can reach what: host, worktrees, agents, proxies, vendors",
		Long: `
Draws the declaration as a picture: every worktree with its mode, every agent and proxy on their network, the
uplink, and the hosts that each vendor's agents reach. It needs no engine, and no values of variables but those
that decide who may do what. SVG needs no other program either; DOT and Mermaid are for those who have one.`,
		Example: "sandplan graph -out=sandboxes.svg\nsandplan graph -format=mermaid",
		Args:    noArguments,
		RunE:    a.action(func(cmd *cobra.Command, _ []string) int { return a.graph(cmd.Context(), f) }),
	}
	f.vars.register(cmd.Flags())
	a.inputFlag(cmd, &f.input)
	cmd.Flags().StringVar(&f.format, "format", "", "svg (the default), dot or mermaid, a `name`")
	cmd.Flags().StringVar(&f.out, "out", "", "write this `file`; its ending says the format")
	cmd.Flags().StringVar(&f.plan, "plan", "", "draw the configuration of a saved plan, a `file`")
	return cmd
}

func (a *app) graph(ctx context.Context, f graphFlags) int {
	u := a.ui()
	format, err := f.chosen()
	if err != nil {
		return a.fail(err)
	}
	if f.plan != "" && len(f.vars.args) > 0 {
		return a.fail(misuse("graph", "-plan and variables exclude each other: the plan says it all"))
	}
	u.quiet = true // stdout is the picture's
	spec, ok := a.drawn(ctx, u, f)
	if !ok {
		return exitError
	}
	m := model(spec)
	u.warn(leftOpen(spec), false)
	text := m.SVG()
	switch format {
	case "dot":
		text = m.DOT()
	case "mermaid":
		text = m.Mermaid()
	}
	if f.out == "" {
		u.print(text)
		return exitOK
	}
	path := f.out
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.cwd, path)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		u.fail(fmt.Errorf("write the picture: %w", err))
		return exitError
	}
	return exitOK
}

// chosen is the format that the flags say, or the file's ending.
func (f graphFlags) chosen() (string, error) {
	if f.format != "" {
		if _, known := graphFormats[f.format]; !known {
			return "", misuse("graph", "-format=%s: there are svg, dot and mermaid", f.format)
		}
		return f.format, nil
	}
	if f.out == "" {
		return "svg", nil
	}
	for format, endings := range graphFormats {
		if slices.Contains(endings, strings.ToLower(filepath.Ext(f.out))) {
			return format, nil
		}
	}
	return "", misuse("graph", "-out=%s: its ending says no format (.svg, .dot, .gv, .mmd); give one with -format", f.out)
}

// drawn is the configuration of the picture. Values are asked for only where nothing could be drawn without them.
func (a *app) drawn(ctx context.Context, u *ui, f graphFlags) (*hclspec.Spec, bool) {
	if f.plan != "" {
		_, spec, ok := a.readSaved(u, f.plan)
		return spec, ok
	}
	spec, diags := hclspec.Load(a.source(), hclspec.Vars{Partial: true, Env: a.environ, Args: f.vars.args}, policy.Catalog())
	if !diags.HasErrors() && !drawable(spec) {
		return a.load(ctx, u, f.vars, f.input)
	}
	u.sources(spec.Sources)
	if !diags.HasErrors() {
		diags = append(diags, policy.Check(spec)...)
	}
	return spec, !u.report(diags)
}

// drawable reports whether it is known who may do what. A picture that leaves that open would be a wrong one.
func drawable(spec *hclspec.Spec) bool {
	for _, i := range spec.Invocations {
		if i.Vendor.Unknown || i.Phase.Unknown {
			return false
		}
	}
	for _, p := range spec.Phases {
		if p.Tools.Unknown || p.Writable.Unknown {
			return false
		}
	}
	return !slices.ContainsFunc(spec.Vendors, func(v hclspec.Vendor) bool { return v.Kind.Unknown })
}

// open stands for what depends on a variable without a value.
const open = "depends on a variable"

func known(v hclspec.Val[string]) string {
	if v.Unknown {
		return open
	}
	return v.V
}

// leftOpen says which variables would have made the picture whole.
func leftOpen(spec *hclspec.Spec) hcl.Diagnostics {
	missing := slices.ContainsFunc(spec.Invocations, func(i hclspec.Invocation) bool { return i.ForAll || i.Worktree.Unknown })
	for _, v := range spec.Vendors {
		missing = missing || v.Image.Unknown || slices.ContainsFunc(v.Hosts, func(h hclspec.Host) bool { return h.Port.Unknown })
	}
	var names []string
	for _, v := range spec.Variables {
		if v.From == "" {
			names = append(names, "var."+v.Name)
		}
	}
	if !missing || len(names) == 0 {
		return nil
	}
	return hcl.Diagnostics{{Severity: hcl.DiagWarning, Summary: "The picture leaves something open",
		Detail: fmt.Sprintf("Without a value: %s. What depends on that is drawn once, and says so. Give values with -var, or in sandplan.spvars.hcl.", strings.Join(names, ", "))}}
}

// every marks an address that stands for all instances of its block.
func every(inv hclspec.Invocation) string {
	if inv.ForAll {
		return "[…]"
	}
	return ""
}

// model is what a picture shows of a configuration.
func model(spec *hclspec.Spec) topology.Model {
	var invocations []topology.Invocation
	for _, inv := range spec.Invocations {
		one := topology.Invocation{Address: inv.Address + every(inv), Vendor: inv.Vendor.V, Phase: inv.Phase.V, Worktree: known(inv.Worktree), Runners: runnersIn(spec, inv.Phase.V)}
		if c, err := policy.Seal(spec, inv.Address); err == nil {
			one.Tools, one.Writable = c.Tools(), c.Writable()
		}
		invocations = append(invocations, one)
	}
	var vendors []topology.Vendor
	for _, v := range spec.Vendors {
		one := topology.Vendor{Name: v.Name, Kind: known(v.Image)}
		for _, h := range v.Hosts {
			port := fmt.Sprint(h.Port.V)
			if h.Port.Unknown {
				port = "…"
			}
			one.Hosts = append(one.Hosts, h.Name+":"+port)
		}
		vendors = append(vendors, one)
	}
	return topology.New(spec.Project.V+"/"+spec.Workspace, invocations, vendors)
}
