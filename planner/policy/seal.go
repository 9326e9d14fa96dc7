package policy

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/sandplan/sandplan/hclspec"
)

// agent is what a builder of a command line gets to know.
type agent struct {
	kind    string   // of the vendor that it is made for
	tools   []string // in the user's words, in the order of the ceiling
	model   string
	version string // of the CLI
}

// build is what a builder makes of it.
type build struct {
	argv     []string
	env      []Env
	files    []File
	preamble string
	tools    []string // those of agent.tools that the CLI really gets
	offered  []string
}

// isFor makes sure that a builder gets what was decided for its own kind of vendor: tools, models and versions of
// another one mean something else to it, or nothing.
func (a agent) isFor(kind string) error {
	if a.kind != kind {
		return fmt.Errorf("the command line of %s was asked for what was decided for %s", kind, orNone(a.kind))
	}
	return nil
}

// defaultPath is the PATH of commands whose image declares none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Seal makes the command of an invocation's agent. It fails for everything that Check reports of the
// invocation, its vendor and its phase.
func Seal(s *hclspec.Spec, addr string) (Command, error) {
	p, err := partsOf(s, addr)
	if err != nil {
		return Command{}, err
	}
	c := p.command()
	var b build
	if prof, ok := profileOf(p.vendor.Kind.V); ok {
		if c.version = p.vendor.Version.V; c.version == "" {
			c.version = prof.versions[0]
		}
		b, err = prof.build(agent{kind: p.vendor.Kind.V, tools: effectiveTools(p.phase), model: p.vendor.Model.V, version: c.version})
		if err != nil {
			return Command{}, fmt.Errorf("%s cannot be sealed: %w", addr, err)
		}
		b.env = append(b.env, testEnv(p.vendor.Kind.V)...)
	} else {
		b = build{argv: slices.Clone(p.vendor.Command.V)}
	}
	c.kind = p.vendor.Kind.V
	c.argv = b.argv
	// What the builder sets stands last: a declared variable never replaces a switch.
	c.env = joinEnv(base(s, p.vendor.Image.V), declared(p.vendor.Env), declared(p.invocation.Env), b.env)
	c.files = b.files
	sort.Slice(c.files, func(i, j int) bool { return c.files[i].Path < c.files[j].Path })
	c.stdin, c.preamble = true, b.preamble
	c.tools, c.offered = b.tools, b.offered
	c.hosts = hostsOf(p.vendor)
	c.creds = credentialsOf(p.vendor)
	c.digest = c.sum()
	return c, nil
}

// SealRunner makes the command of one of the approved commands of an invocation's phase. It reaches
// no host and gets no credential.
func SealRunner(s *hclspec.Spec, addr, runner string) (Command, error) {
	p, err := partsOf(s, addr)
	if err != nil {
		return Command{}, err
	}
	i := slices.IndexFunc(p.phase.Runners, func(r hclspec.Runner) bool { return r.Name == runner })
	if i < 0 {
		return Command{}, fmt.Errorf("phase.%s has no runner %q; %s", p.phase.Name, runner, runnersOf(p.phase))
	}
	r := p.phase.Runners[i]
	c := p.command()
	c.kind, c.runner = "runner", r.Name
	c.argv = slices.Clone(r.Argv.V)
	c.env = joinEnv(base(s, r.Image.V), declared(p.invocation.Env))
	c.digest = c.sum()
	return c, nil
}

// runnersOf says which runners a phase has, for somebody who named another one.
func runnersOf(p hclspec.Phase) string {
	if len(p.Runners) == 0 {
		return "a phase block of its own can declare runners"
	}
	var names []string
	for _, r := range p.Runners {
		names = append(names, r.Name)
	}
	return "it has " + strings.Join(names, ", ")
}

// parts are one invocation with what it refers to.
type parts struct {
	invocation hclspec.Invocation
	vendor     hclspec.Vendor
	phase      hclspec.Phase
}

// partsOf finds and checks them: nobody can seal what was not checked.
func partsOf(s *hclspec.Spec, addr string) (parts, error) {
	var p parts
	i := slices.IndexFunc(s.Invocations, func(v hclspec.Invocation) bool { return v.Address == addr })
	if i < 0 {
		return p, fmt.Errorf("the configuration has no %s", addr)
	}
	p.invocation = s.Invocations[i]
	v := slices.IndexFunc(s.Vendors, func(v hclspec.Vendor) bool { return v.Name == p.invocation.Vendor.V })
	if v < 0 {
		return p, fmt.Errorf("%s: there is no vendor.%s", addr, p.invocation.Vendor.V)
	}
	p.vendor = s.Vendors[v]
	h := slices.IndexFunc(s.Phases, func(h hclspec.Phase) bool { return h.Name == p.invocation.Phase.V })
	if h < 0 {
		return p, fmt.Errorf("%s: there is no phase.%s", addr, p.invocation.Phase.V)
	}
	p.phase = s.Phases[h]

	diags := checkVendor(p.vendor, s.Lock)
	diags = append(diags, checkPhase(p.phase)...)
	diags = append(diags, checkInvocation(p)...)
	if diags.HasErrors() {
		return p, fmt.Errorf("%s cannot be sealed: %w", addr, diags)
	}
	return p, nil
}

// command holds what agent and runner have in common.
func (p parts) command() Command {
	return Command{
		invocation: p.invocation.Address,
		vendor:     p.vendor.Name,
		phase:      p.phase.Name,
		base:       baseOf(p.phase),
		writable:   isWritable(p.phase),
	}
}

// base is the environment that every command has. PATH is the image's own, so that `npm` means what
// it means there; spelled out, it is compared like everything else.
func base(s *hclspec.Spec, image string) []Env {
	path := defaultPath
	for _, l := range s.Lock.Images {
		if p := l.Config.Env["PATH"]; l.Ref == image && p != "" {
			path = p
		}
	}
	return []Env{{"HOME", Home}, {"PATH", path}}
}

// baseOf is the built-in phase whose ceiling holds for a phase.
func baseOf(p hclspec.Phase) string {
	if _, builtin := ceilingOf(p.Name); builtin {
		return p.Name
	}
	return p.Base.V
}

// isWritable: a phase may only narrow, so `writable = true` says nothing that the ceiling does not.
func isWritable(p hclspec.Phase) bool {
	c, _ := ceilingOf(baseOf(p))
	return c.writable && (!p.Writable.Set || p.Writable.V)
}

// effectiveTools are the ceiling's tools that the phase leaves, in the ceiling's order.
func effectiveTools(p hclspec.Phase) []string {
	c, _ := ceilingOf(baseOf(p))
	out := []string{}
	for _, t := range c.tools {
		if p.Tools.Set && !slices.Contains(p.Tools.V, t) {
			continue
		}
		if !isWritable(p) && (t == ToolEdit || t == ToolWrite) {
			continue
		}
		out = append(out, t)
	}
	return out
}

// hostsOf: built-in kinds reach pinned hosts on port 443 with TLS, whatever else the spec may say.
func hostsOf(v hclspec.Vendor) []Host {
	_, builtin := profileOf(v.Kind.V)
	var out []Host
	for _, h := range v.Hosts {
		host := Host{Name: h.Name, Port: 443, TLS: true, Decl: "vendor." + v.Name}
		if builtin {
			testPin(&host)
		} else {
			host.Port, host.TLS = h.Port.V, h.TLS.V
			host.Decl += ".host[" + strconv.Quote(h.Name) + "]"
			for _, a := range h.Addresses.V {
				host.Addresses = append(host.Addresses, a.String())
			}
		}
		out = append(out, host)
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Name != out[j].Name {
			return out[i].Name < out[j].Name
		}
		return out[i].Port < out[j].Port
	})
	return out
}

func credentialsOf(v hclspec.Vendor) []Credential {
	var out []Credential
	for _, c := range v.Credentials {
		one := Credential{Name: c.Name, Path: CredentialDir + "/" + c.Name}
		switch v.Kind.V {
		case KindClaude:
			one = claudeCredential(c.Name)
		case KindCodex:
			one = codexCredential(c.Name)
		}
		one.SourceEnv, one.SourceFile = c.SourceEnv.V, c.SourceFile.V
		out = append(out, one)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}
