package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner/policy"
)

type initFlags struct {
	vars     varFlags
	upgrade  bool
	lockfile string
	input    bool
}

func (a *app) initCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init [options]",
		Short: "Write a first configuration, or pin the images of the one that is there",
		Long: `
In a directory without a configuration it writes a first one. Otherwise it pins images and the proxies' name
servers in the lock file, which belongs into version control. It is always safe to run again.`,
		Example: "sandplan init\nsandplan init -upgrade\nsandplan init -lockfile=readonly",
		Args:    noArguments,
		RunE:    a.action(func(cmd *cobra.Command, _ []string) int { return a.init(cmd.Context(), f) }),
	}
	f.vars.register(cmd.Flags())
	a.inputFlag(cmd, &f.input)
	cmd.Flags().BoolVar(&f.upgrade, "upgrade", false, "move pins to what the references name now")
	cmd.Flags().StringVar(&f.lockfile, "lockfile", "", "the `mode` readonly fails where the lock file lacks something")
	return cmd
}

func (a *app) init(ctx context.Context, f initFlags) int {
	u := a.ui()
	switch {
	case f.lockfile != "" && f.lockfile != "readonly":
		return a.fail(misuse("init", "-lockfile=%s: the only value is readonly", f.lockfile))
	case f.lockfile != "" && f.upgrade:
		return a.fail(misuse("init", "-upgrade moves pins, and -lockfile=readonly forbids that"))
	}
	if dir, none := a.noConfiguration(); none && f.lockfile == "" {
		return a.writeStarter(u, dir)
	}
	in := a.watch(ctx, false, nil)
	defer in.done()
	spec, ok := a.loadForInit(in.ctx, u, f)
	if !ok {
		return exitError
	}
	engine, err := a.open(in.ctx, spec.Provider.Host.V, spec.Dir)
	if err != nil {
		u.fail(err)
		return exitError
	}
	defer engine.Close()
	p := pinning{flags: f, old: spec.Lock, pin: engine.Pin, missing: engine.Missing}
	if err := p.images(in.ctx, spec); err != nil {
		u.fail(err)
		return exitError
	}
	if err := p.servers(spec, hostNameservers); err != nil {
		u.fail(err)
		return exitError
	}
	if err := p.write(); err != nil {
		u.fail(err)
		return exitError
	}
	info := engine.Info()
	first, asks := firstInvocation(spec)
	u.print(u.human.Pinned(render.Pinned{
		Engine: info.Version, API: info.API, File: a.short(spec.Lock.Path), Written: p.changed(),
		Images: p.told, DNS: p.lock.DNS, Invocation: first, Prompt: asks, Lost: p.lacking,
	}))
	if len(p.lost) > 0 {
		u.print(u.out.Gap())
		u.warn(p.lost, false)
	}
	return exitOK
}

// noConfiguration reports whether the place holds no configuration, nor anything that could be meant as one.
func (a *app) noConfiguration() (dir string, none bool) {
	dir = a.cwd
	if a.global.config != "" {
		if dir = a.global.config; !filepath.IsAbs(dir) {
			dir = filepath.Join(a.cwd, dir)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return dir, false
	}
	return dir, !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), ".hcl") })
}

func (a *app) writeStarter(u *ui, dir string) int {
	path := filepath.Join(dir, hclspec.StarterName)
	// O_EXCL: what is there already, or appears just now, is never overwritten.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		_, err = file.WriteString(hclspec.Starter)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		u.fail(fmt.Errorf("write a first configuration: %w", err))
		return exitError
	}
	u.print(u.human.Started(a.short(path)))
	return exitOK
}

// loadForInit reads the configuration as far as init needs it. Images rarely depend on variables, so
// these are asked for only when they do.
func (a *app) loadForInit(ctx context.Context, u *ui, f initFlags) (*hclspec.Spec, bool) {
	spec, diags := hclspec.Load(a.source(), hclspec.Vars{Unknown: true, Env: a.environ, Args: f.vars.args}, policy.Catalog())
	u.sources(spec.Sources)
	if u.report(diags) {
		return nil, false
	}
	unknown := slices.ContainsFunc(needed(spec), func(n need) bool { return n.ref == "" })
	if !unknown {
		return spec, true
	}
	values := hclspec.Vars{Env: a.environ, Args: f.vars.args}
	if f.input && a.interactive {
		values.Ask = func(v hclspec.Variable) (string, bool) { return u.askVariable(ctx, v) }
	}
	spec, diags = hclspec.Load(a.source(), values, policy.Catalog())
	u.sources(spec.Sources)
	return spec, !u.report(diags)
}

// need is one image that containers are made from.
type need struct {
	ref   string // "" when it depends on a variable
	agent bool
	at    hcl.Range
}

// needed are the images of vendors and runners, sorted by reference; one that is both is an agent's.
func needed(spec *hclspec.Spec) []need {
	var out []need
	add := func(v hclspec.Val[string], agent bool) {
		n := need{ref: v.V, agent: agent, at: v.Range}
		if v.Unknown {
			n.ref = ""
		}
		for i := range out {
			if out[i].ref == n.ref && n.ref != "" {
				out[i].agent = out[i].agent || agent
				return
			}
		}
		out = append(out, n)
	}
	for _, v := range spec.Vendors {
		add(v.Image, true)
	}
	for _, p := range spec.Phases {
		for _, r := range p.Runners {
			add(r.Image, false)
		}
	}
	slices.SortFunc(out, func(a, b need) int { return strings.Compare(a.ref, b.ref) })
	return out
}

// pinning builds the new lock file from the old one.
type pinning struct {
	flags initFlags
	old   hclspec.Lock
	pin   func(ctx context.Context, ref string, agent bool) (hclspec.LockImage, error)
	// missing says what to do about an image that the engine does not have.
	missing func(ctx context.Context, l hclspec.LockImage) (string, error)

	lock hclspec.Lock
	told []render.PinnedImage
	why  []string        // what makes the new lock file differ
	lost hcl.Diagnostics // pins of images that the engine does not have
	// lacking says that apply cannot pull one of them.
	lacking bool
}

func (p *pinning) changed() bool { return len(p.why) > 0 }

// images keeps the pins that there are, looks up those that are missing, and with -upgrade all of them.
func (p *pinning) images(ctx context.Context, spec *hclspec.Spec) error {
	p.lock = p.old
	p.lock.Images = nil
	known := map[string]hclspec.LockImage{}
	for _, i := range p.old.Images {
		known[i.Ref] = i
	}
	for _, n := range needed(spec) {
		old, have := known[n.ref]
		delete(known, n.ref)
		if have && !p.flags.upgrade {
			what, err := p.kept(ctx, n, old)
			if err != nil {
				return err
			}
			p.keep(old, what)
			continue
		}
		if p.flags.lockfile == "readonly" {
			return fmt.Errorf("the lock file pins no image %q, and -lockfile=readonly forbids to add it; run sandplan init and commit the lock file", n.ref)
		}
		image, err := p.pin(ctx, n.ref, n.agent)
		switch {
		case err != nil:
			return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Could not pin the image " + n.ref, Detail: fullSentence(err.Error()), Subject: &n.at}
		case !have:
			p.why = append(p.why, n.ref)
			p.keep(image, "new")
		case samePin(old, image):
			p.keep(image, "kept")
		default:
			p.why = append(p.why, n.ref)
			p.keep(image, "moved")
		}
	}
	for ref, i := range known {
		if p.flags.lockfile == "readonly" {
			p.keep(i, "not used")
			continue
		}
		p.why = append(p.why, ref)
	}
	slices.SortFunc(p.lock.Images, func(a, b hclspec.LockImage) int { return strings.Compare(a.Ref, b.Ref) })
	return nil
}

// kept looks whether the image of a pin that stays is still there. A machine may get its images later, so that its
// absence is no error here.
func (p *pinning) kept(ctx context.Context, n need, old hclspec.LockImage) (string, error) {
	todo, err := p.missing(ctx, old)
	if err != nil || todo == "" {
		return "kept", err
	}
	p.lacking = p.lacking || old.Digest == ""
	p.lost = append(p.lost, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "The image " + n.ref + " is not on the engine", Detail: todo, Subject: &n.at})
	return "kept; not on this engine", nil
}

func samePin(a, b hclspec.LockImage) bool {
	return a.Digest == b.Digest && slices.Equal(a.IDs, b.IDs) && a.CLI == b.CLI && a.Shell == b.Shell
}

func (p *pinning) keep(i hclspec.LockImage, what string) {
	p.lock.Images = append(p.lock.Images, i)
	id := i.Digest
	if id == "" && len(i.IDs) > 0 {
		id = i.IDs[0]
	}
	p.told = append(p.told, render.PinnedImage{Ref: i.Ref, ID: id, CLI: i.CLI, Shell: i.Shell, What: what})
}

// servers pins the name servers of the proxies, if any host's name has to be resolved at all.
func (p *pinning) servers(spec *hclspec.Spec, host func() ([]netip.Addr, error)) error {
	resolves := slices.ContainsFunc(spec.Vendors, func(v hclspec.Vendor) bool {
		return slices.ContainsFunc(v.Hosts, func(h hclspec.Host) bool { return len(h.Addresses.V) == 0 })
	})
	switch {
	case spec.Provider.DNS.Set || !resolves:
		p.lock.DNS = nil
	case len(p.old.DNS) > 0 && !p.flags.upgrade:
		p.lock.DNS = p.old.DNS
	case p.flags.lockfile == "readonly":
		return errors.New("the lock file names no name servers, and -lockfile=readonly forbids to add them; run sandplan init and commit the lock file")
	default:
		found, err := host()
		if err != nil {
			return err
		}
		p.lock.DNS = found
	}
	if !slices.Equal(p.lock.DNS, p.old.DNS) && p.flags.lockfile != "readonly" {
		p.why = append(p.why, "dns")
	}
	return nil
}

func (p *pinning) write() error {
	if p.flags.lockfile == "readonly" || p.old.Exists && !p.changed() {
		return nil
	}
	if len(p.lock.Images) == 0 && len(p.lock.DNS) == 0 && !p.old.Exists {
		return nil
	}
	return hclspec.WriteLock(p.lock)
}

// firstInvocation is what the last of the next three commands runs, and whether a prompt has to be given there:
// a vendor's CLI does nothing without one.
func firstInvocation(spec *hclspec.Spec) (address string, asks bool) {
	if len(spec.Invocations) == 0 {
		return "", false
	}
	first := spec.Invocations[0]
	for _, v := range spec.Vendors {
		asks = asks || v.Name == first.Vendor.V && v.Kind.V != policy.KindCustom && !first.Prompt.Set
	}
	return first.Address, asks
}

// short is a path as seen from the working directory, where that is shorter.
func (a *app) short(path string) string {
	if rel, err := filepath.Rel(a.cwd, path); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}
