package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
)

// builder is one compilation.
type builder struct {
	ctx    context.Context
	engine *Engine
	seal   Seal
	spec   *hclspec.Spec // a copy, whose lock file knows what images on the engine hold
	diags  hcl.Diagnostics
	out    *Compiled

	tool   *ownImage
	shim   desiredShim
	images map[imageUse]foundImage
	trees  map[string]foundTree // by path
	inner  map[string][]string  // nested repositories of writable worktrees, by path
	// overlays are what is mounted read-only over writable worktrees, by path.
	overlays map[string][]string
	rows     rows // of what was added
	// hardened are what the containers of a kind share.
	hardened struct{ agent, runner, proxy container.HostConfig }
}

// imageUse is a reference, and whether an agent or a runner is made from it.
type imageUse struct {
	ref   string
	agent bool
}

type foundImage struct {
	image pinnedImage
	err   error
}

type foundTree struct {
	tree worktree
	err  error
}

// build goes through the configuration: what all invocations share, then what each refers to, then
// each by itself. A mistake in one does not hide those in another.
func (b *builder) build(snap planner.Snapshot) {
	e, s := b.engine, b.spec
	var err error
	if b.tool, err = e.own(); err != nil {
		b.report(s.Range, "", err)
		return
	}
	var addrs []planner.Address
	for _, inv := range s.Invocations {
		addrs = append(addrs, planner.Address(inv.Address))
	}
	if b.out.allocation, err = allocation(s.Provider.SubnetPool.V, addrs, snap); err != nil {
		b.report(s.Provider.SubnetPool.Range, "", &refusal{summarySubnets, sentence(err)})
		return
	}
	if len(e.apart.names) > 0 {
		b.report(s.Range, "", fmt.Errorf("the engine at %s runs in another %s namespace than sandplan, so that a worktree seen from here may not be "+
			"what the engine mounts; run sandplan where the engine runs", e.host, strings.Join(e.apart.names, " and ")))
		return
	}
	h, err := readHost(e.options.Home, e.info)
	if err != nil {
		b.report(s.Range, "", err)
		return
	}
	b.shared()
	b.findImages()
	found := b.findTrees(h)
	x := e.exposureOf(s, found)
	for _, inv := range s.Invocations {
		b.invocation(inv, x)
	}
	b.out.resources = b.rows.all()
}

// shared adds what all invocations of the scope use.
func (b *builder) shared() {
	b.hardened.agent, b.hardened.runner, b.hardened.proxy = hardened(AgentSeccomp()), hardened(RunnerSeccomp()), proxyHost()
	e, scope, up := b.engine, b.out.scope, b.out.allocation.Uplink
	at := b.spec.Range
	b.shim = desiredShim{scope: scope, image: b.tool.ID, content: shimContent(b.tool.binary)}
	b.add(planner.KindImage, planner.AddrImage, "", at, nil, desiredTool{b.tool}, nil)
	b.add(planner.KindShim, planner.AddrShim, "", at, nil, b.shim, []planner.Address{planner.AddrImage})
	b.add(planner.KindUplink, planner.AddrUplink, "", at, e.decl(b.spec), desiredUplink{
		Name: objectName(scope, planner.AddrUplink), Bridge: bridgeName(scope, planner.AddrUplink), Subnet: up.Prefix, Gateway: up.Gateway}, nil)
}

// decl is where the attributes of the provider are written.
func (e *Engine) decl(s *hclspec.Spec) map[string]*hcl.Range {
	return map[string]*hcl.Range{"subnet_pool": &s.Provider.SubnetPool.Range, "dns": &s.Provider.DNS.Range}
}

// findImages looks up every image that an invocation uses, each once, and adds it.
func (b *builder) findImages() {
	for _, inv := range b.spec.Invocations {
		if v := b.vendor(inv); v != nil {
			b.image(planner.VendorImage(v.Name), v.Image, true)
		}
		if p := b.phase(inv); p != nil {
			for _, r := range p.Runners {
				b.image(planner.RunnerImage(p.Name, r.Name), r.Image, false)
			}
		}
	}
}

func (b *builder) image(a planner.Address, ref hclspec.Val[string], agent bool) {
	if _, done := b.out.desired[a]; done {
		return
	}
	key := imageUse{ref.V, agent}
	f, looked := b.images[key]
	if !looked {
		f.image, f.err = b.engine.findPinned(b.ctx, ref.V, agent, b.spec.Lock)
		b.images[key] = f
		if f.err == nil {
			b.learn(f.image)
		}
	}
	if f.err != nil {
		b.report(ref.Range, "", f.err)
		return
	}
	b.out.pinned[a] = f.image
	if f.image.missing != "" {
		b.out.lost = append(b.out.lost, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summaryImage, Detail: f.image.missing, Subject: ref.Range.Ptr()})
	}
	b.add(planner.KindPinned, a, ref.V, ref.Range, nil, f.image, nil)
}

// learn lets the sealing know what an image holds: an ID is content, so what the engine shows of it is
// what any lock file that names it should say.
func (b *builder) learn(p pinnedImage) {
	images := b.spec.Lock.Images
	i := slices.IndexFunc(images, func(l hclspec.LockImage) bool { return l.Ref == p.ref })
	if i < 0 {
		b.spec.Lock.Images = append(images, hclspec.LockImage{Ref: p.ref, IDs: []string{p.id}, Config: p.config})
		return
	}
	images[i].Config = p.config
}

// findTrees resolves the worktrees, each once.
func (b *builder) findTrees(h *host) map[string]worktree {
	out := map[string]worktree{}
	for _, inv := range b.spec.Invocations {
		f, looked := b.trees[inv.Worktree.V]
		if !looked {
			f.tree, f.err = h.findWorktree(inv.Worktree.V)
			b.trees[inv.Worktree.V] = f
		}
		if f.err != nil {
			b.report(inv.Worktree.Range, "", f.err)
			continue
		}
		out[inv.Address] = f.tree
	}
	return out
}

// invocation adds an invocation's objects, if everything that it refers to was found.
func (b *builder) invocation(inv hclspec.Invocation, x exposure) {
	vendor, phase := b.vendor(inv), b.phase(inv)
	tree := b.trees[inv.Worktree.V]
	if vendor == nil || phase == nil || tree.err != nil {
		return
	}
	command, err := b.seal(b.spec, inv.Address, "")
	if err != nil {
		b.report(inv.Range, "", &refusal{summarySeal, sentence(err)})
		return
	}
	p := part{inv: inv, vendor: *vendor, phase: *phase, command: command}
	if p.user, err = tree.tree.user(inv.User.V, command.Writable()); err != nil {
		b.report(either(inv.User, inv.Worktree), "", err)
		return
	}
	var readOnly []string
	if command.Writable() {
		if readOnly, err = x.confine(tree.tree); err != nil {
			b.report(inv.Worktree.Range, "", err)
			return
		}
		b.overlays[tree.tree.path] = readOnly
		if nested := b.nested(tree.tree.path); len(nested) > 0 {
			b.warn(inv.Worktree.Range, summaryNested, fmt.Sprintf("Below the worktree %s there are repositories of their own: %s. The agent can change their .git, "+
				"hooks included; look at them before you use git there.", tree.tree.path, strings.Join(nested, ", ")))
		}
	}
	withGit := inv.Git.V != "none"
	if p.binds, err = tree.tree.binds(command.Writable(), withGit, readOnly); err != nil {
		b.report(either(inv.Git, inv.Worktree), "", err)
		return
	}
	p.hideGit = !withGit && tree.tree.git.kind == gitOwn
	if err := b.objects(p); err != nil {
		b.report(inv.Range, "", err)
	}
}

// nested looks for nested repositories once for each worktree, however many invocations write it.
func (b *builder) nested(path string) []string {
	found, looked := b.inner[path]
	if !looked {
		found = nestedRepositories(path)
		b.inner[path] = found
	}
	return found
}

// part is one invocation with all that was found for it.
type part struct {
	inv     hclspec.Invocation
	vendor  hclspec.Vendor
	phase   hclspec.Phase
	command policy.Command
	user    policy.User
	binds   []bind
	hideGit bool
}

// objects adds network, proxy, agent and runners of an invocation.
func (b *builder) objects(p part) error {
	addr := planner.Address(p.inv.Address)
	network, proxy, agent := addr.With(planner.PartNetwork), addr.With(planner.PartProxy), addr.With(planner.PartAgent)
	scope, subnet, decl := b.out.scope, b.out.allocation.Networks[addr], declOf(p)
	title := "vendor." + p.vendor.Name + ", phase." + p.phase.Name
	b.add(planner.KindNetwork, network, title, p.inv.Range, decl, desiredNetwork{
		Name: objectName(scope, network), Bridge: bridgeName(scope, network), Subnet: subnet.Prefix, Gateway: subnet.Gateway}, nil)

	if err := p.command.Check(p.inv.Address, p.vendor.Name, p.phase.Name); err != nil {
		return err
	}
	dns := b.spec.Lock.DNS
	if b.spec.Provider.DNS.Set {
		dns = b.spec.Provider.DNS.V
	}
	ps, err := desiredProxy{scope: scope, addr: proxy, command: p.command, image: b.tool.ID, subnet: subnet, uplink: b.out.allocation.Uplink, dns: dns,
		hardened: b.hardened.proxy, limits: p.inv.Limits, priority: !lessVersion(b.engine.info.API, "1.48")}.container()
	if err != nil {
		return &refusal{summaryProxy, sentence(err) + " Run `sandplan init`, which writes the host's name servers down, or set dns in the provider block."}
	}
	b.add(planner.KindProxy, proxy, title, p.inv.Range, decl, ps, []planner.Address{planner.AddrImage, planner.AddrUplink, network})

	if f := b.images[imageUse{p.vendor.Image.V, true}]; f.err == nil {
		box := b.sandbox(p, agent, f.image, p.command, p.inv.Timeout.V.Milliseconds(), "agent", b.hardened.agent)
		if p.inv.Prompt.Set {
			sum := sha256.Sum256([]byte(p.command.Preamble() + p.inv.Prompt.V))
			box.promptSHA256 = hex.EncodeToString(sum[:])
		}
		as, err := desiredAgent{sandbox: box, subnet: subnet, uplink: b.out.allocation.Uplink}.container()
		if err != nil {
			return err
		}
		b.out.binds[agent], b.out.declared[addr] = p.binds, p.inv.Worktree.Range
		b.add(planner.KindAgent, agent, title, p.inv.Range, decl, as,
			[]planner.Address{planner.AddrShim, planner.VendorImage(p.vendor.Name), network, proxy})
	}
	for _, r := range p.phase.Runners {
		if err := b.runner(p, r, title, decl); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) runner(p part, r hclspec.Runner, title string, decl map[string]*hcl.Range) error {
	addr := planner.Address(p.inv.Address).Runner(r.Name)
	f := b.images[imageUse{r.Image.V, false}]
	if f.err != nil {
		return nil // reported where the image is named
	}
	command, err := b.seal(b.spec, p.inv.Address, r.Name)
	if err == nil {
		err = command.CheckRunner(p.inv.Address, p.vendor.Name, p.phase.Name, r.Name)
	}
	if err != nil {
		return &refusal{summarySeal, sentence(err)}
	}
	box := b.sandbox(p, addr, f.image, command, r.Timeout.V.Milliseconds(), "runner", b.hardened.runner)
	rs, err := desiredRunner{box}.container()
	if err != nil {
		return err
	}
	own := map[string]*hcl.Range{"image": &r.Image.Range, "argv": &r.Argv.Range, "timeout": &r.Timeout.Range}
	for attr, at := range decl {
		if _, ok := own[attr]; !ok {
			own[attr] = at
		}
	}
	b.out.binds[addr] = p.binds
	b.add(planner.KindRunner, addr, title, p.inv.Range, own, rs, []planner.Address{planner.AddrShim, planner.RunnerImage(p.phase.Name, r.Name)})
	return nil
}

func (b *builder) sandbox(p part, a planner.Address, img pinnedImage, c policy.Command, timeoutMS int64, hostname string, host container.HostConfig) sandbox {
	return sandbox{scope: b.out.scope, invocation: p.inv, addr: a, command: c, image: img, user: p.user, binds: p.binds, hideGit: p.hideGit,
		shimVolume: b.shim.name(), timeoutMS: timeoutMS, hostname: hostname, hardened: host, home: b.home()}
}

// add records one wanted object. decl says where attributes are written; what is not among them is
// declared where the object is.
func (b *builder) add(kind planner.Kind, a planner.Address, title string, at hcl.Range, decl map[string]*hcl.Range, d desired, needs []planner.Address) {
	pinned, _ := d.(pinnedImage)
	k, err := b.engine.kind(kind)
	if err != nil {
		panic(err) // kinds() has all that is compiled
	}
	b.out.desired[a] = d
	b.rows.add(planner.Resource{Addr: a, Kind: kind, Title: title, Decl: at, DependsOn: needs, Lost: pinned.missing != ""},
		func(own *bench) []planner.Field { return wantedFields(own, k.table, d, &at, decl) })
}

func (b *builder) vendor(inv hclspec.Invocation) *hclspec.Vendor {
	i := slices.IndexFunc(b.spec.Vendors, func(v hclspec.Vendor) bool { return v.Name == inv.Vendor.V })
	if i < 0 {
		return nil // reading the configuration reports it
	}
	return &b.spec.Vendors[i]
}

func (b *builder) phase(inv hclspec.Invocation) *hclspec.Phase {
	i := slices.IndexFunc(b.spec.Phases, func(p hclspec.Phase) bool { return p.Name == inv.Phase.V })
	if i < 0 {
		return nil
	}
	return &b.spec.Phases[i]
}

// declOf is where the attributes that make an invocation's objects are written.
func declOf(p part) map[string]*hcl.Range {
	user := either(p.inv.User, p.inv.Worktree)
	out := map[string]*hcl.Range{
		"image": &p.vendor.Image.Range, "command": &p.vendor.Command.Range, "hosts": &p.vendor.Range, "credential": &p.vendor.Range,
		"worktree": &p.inv.Worktree.Range, "phase": &p.inv.Phase.Range, "user": &user, "git": &p.inv.Git.Range,
		"prompt": &p.inv.Prompt.Range, "timeout": &p.inv.Timeout.Range,
		"limits.memory": &p.inv.Limits.Memory.Range, "limits.cpus": &p.inv.Limits.CPUs.Range, "limits.pids": &p.inv.Limits.PIDs.Range,
		"limits.output": &p.inv.Limits.Output.Range, "limits.upload": &p.inv.Limits.Upload.Range,
		"limits.download": &p.inv.Limits.Download.Range, "limits.tunnels": &p.inv.Limits.Tunnels.Range,
		"limits.tunnels_per_second": &p.inv.Limits.TunnelsPerSecond.Range,
	}
	for _, env := range [][]hclspec.EnvVar{p.vendor.Env, p.inv.Env} {
		if len(env) > 0 {
			out["env"] = &env[0].Value.Range
		}
	}
	return out
}

// either is where an attribute is written, or where the one stands from which it follows.
func either[A, B any](attr hclspec.Val[A], from hclspec.Val[B]) hcl.Range {
	if attr.Set {
		return attr.Range
	}
	return from.Range
}
