package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
)

// Compiled is a configuration as objects of one engine: what is wanted, field by field, and how to make
// it. It holds what the host showed at the time of compiling, and is no longer used than one command.
type Compiled struct {
	engine     *Engine
	scope      planner.Scope
	resources  []planner.Resource
	desired    map[planner.Address]desired
	pinned     map[planner.Address]pinnedImage
	lost       hcl.Diagnostics // of pinned images that have to be brought back
	binds      map[planner.Address][]bind
	declared   map[planner.Address]hcl.Range // where the worktrees of invocations are written
	allocation planner.Allocation
	facts      *facts // what a recording keeps
}

// Seal makes the command of an invocation's agent, or of one of its runners where that is named.
type Seal func(s *hclspec.Spec, invocation, runner string) (policy.Command, error)

// sealed is what the configuration declares.
func sealed(s *hclspec.Spec, invocation, runner string) (policy.Command, error) {
	if runner != "" {
		return policy.SealRunner(s, invocation, runner)
	}
	return policy.Seal(s, invocation)
}

// Compile turns a configuration into objects. All mistakes that the engine and the host show are
// reported in one run; Compiled is complete only when none is an error.
func (e *Engine) Compile(ctx context.Context, s *hclspec.Spec, snap planner.Snapshot) (*Compiled, hcl.Diagnostics) {
	return e.CompileSealed(ctx, s, snap, sealed)
}

// CompileSealed is Compile with the commands of agents and runners sealed by the caller's choice. Only policy can seal.
func (e *Engine) CompileSealed(ctx context.Context, s *hclspec.Spec, snap planner.Snapshot, seal Seal) (*Compiled, hcl.Diagnostics) {
	b := e.builder(ctx, s, seal)
	if e.paper != nil {
		return b.compileOnPaper(snap)
	}
	if len(s.Invocations) > 0 {
		b.build(snap)
	}
	return b.finish()
}

func (e *Engine) builder(ctx context.Context, s *hclspec.Spec, seal Seal) *builder {
	return &builder{ctx: ctx, seal: seal, engine: e, spec: withImages(s), images: map[imageUse]foundImage{}, trees: map[string]foundTree{}, inner: map[string][]string{},
		overlays: map[string][]string{},
		out: &Compiled{engine: e, scope: planner.Scope{Project: s.Project.V, Workspace: s.Workspace},
			desired: map[planner.Address]desired{}, pinned: map[planner.Address]pinnedImage{}, binds: map[planner.Address][]bind{}, declared: map[planner.Address]hcl.Range{}}}
}

// finish brings what was built into the order of plans.
func (b *builder) finish() (*Compiled, hcl.Diagnostics) {
	sort.Slice(b.out.resources, func(i, j int) bool { return b.out.resources[i].Addr.Less(b.out.resources[j].Addr) })
	b.out.facts = b.gather()
	return b.out, once(b.diags)
}

// Resources are the wanted objects in the order of plans.
func (c *Compiled) Resources() []planner.Resource { return slices.Clone(c.resources) }

// Allocation is the addressing that was chosen.
func (c *Compiled) Allocation() planner.Allocation { return c.allocation }

// Complete adds to a look at the engine what only the configuration can tell: the images that it pins,
// which carry no label, and which foreign objects are in the way of what is wanted.
func (c *Compiled) Complete(s planner.Snapshot) planner.Snapshot {
	s.Objects = slices.DeleteFunc(slices.Clone(s.Objects), func(o planner.Object) bool { return o.Kind == planner.KindPinned })
	k, err := c.engine.kind(planner.KindPinned)
	if err != nil {
		panic(err) // kinds() has it
	}
	for _, a := range sortedAddresses(c.pinned) {
		if p := c.pinned[a]; p.present {
			s.Objects = append(s.Objects, p.object(k, a))
		}
	}
	arrange(s.Objects)
	s.Conflicts = c.engine.conflictsFor(s.Foreign, c.resources)
	return s
}

// Create makes one wanted object. ids are the engine IDs of what it depends on. When the engine made
// something else than it was asked for, the object is returned beside the error.
func (c *Compiled) Create(ctx context.Context, r planner.Resource, ids planner.IDs) (planner.Object, error) {
	d := c.desired[r.Addr]
	if d == nil {
		return planner.Object{}, fmt.Errorf("%s is not in the configuration that was compiled", r.Addr)
	}
	o, err := c.engine.create(ctx, c.scope, r, d, ids)
	if o.ID != "" {
		o.Addr = r.Addr // images carry no label that says so
	}
	return o, err
}

// Restore puts the settings of a change back in place.
func (c *Compiled) Restore(ctx context.Context, change planner.Change, _ planner.IDs) error {
	k, err := c.engine.kind(change.Kind)
	if err != nil {
		return err
	}
	if k.restore == nil {
		return fmt.Errorf("nothing of %s can be put back in place", change.Addr)
	}
	return k.restore(ctx, c.engine, c.scope, change.Object)
}

// Sources are the files and directories of the host that a container mounts, resolved anew, and refused
// anew when they are no longer what was compiled.
func (c *Compiled) Sources(a planner.Address) ([]planner.Source, error) {
	h, err := readHost(c.engine.options.Home, c.engine.info)
	if err != nil {
		return nil, err
	}
	var out []planner.Source
	for _, b := range c.binds[a] {
		if b.target == policy.Worktree {
			if _, err := h.findWorktree(b.source); err != nil {
				return nil, fmt.Errorf("the worktree of %s: %w", a.Invocation(), err)
			}
		}
		p, err := findPlace(b.source)
		if err != nil {
			return nil, fmt.Errorf("what %s mounts at %s: %w", a, b.target, err)
		}
		out = append(out, planner.Source{Path: b.target, Host: p.path, Dev: p.dev, Inode: p.inode})
	}
	return out, nil
}

// Unmoved makes sure that what a container has mounted is still what the host has at those paths. A mount
// stays on what it was made of: whoever renames that and puts something else there has the agent work in
// one place, and everybody who looks over its worktree look in another.
func (c *Compiled) Unmoved(sources []planner.Source) error {
	for _, s := range sources {
		now, err := findPlace(s.Host)
		if err != nil {
			return fmt.Errorf("what is mounted at %s is not at its path any more: %w", s.Path, err)
		}
		if now.dev != s.Dev || now.inode != s.Inode {
			return fmt.Errorf("%s is something else than what is mounted at %s: device %d inode %d is there now, device %d inode %d was mounted",
				s.Host, s.Path, now.dev, now.inode, s.Dev, s.Inode)
		}
	}
	return nil
}

// Live are the attributes of invocations that outputs may use: names and addresses as planned, and IDs
// as far as they are known.
func (c *Compiled) Live(ids planner.IDs) map[string]hclspec.Live {
	out := map[string]hclspec.Live{}
	for inv, subnet := range c.allocation.Networks {
		network, proxy, agent := inv.With(planner.PartNetwork), inv.With(planner.PartProxy), inv.With(planner.PartAgent)
		out[string(inv)] = hclspec.Live{
			NetworkName:  objectName(c.scope, network),
			Subnet:       subnet.Prefix.String(),
			ProxyAddress: subnet.Proxy.String(),
			ProxyName:    objectName(c.scope, proxy),
			AgentName:    objectName(c.scope, agent),
			NetworkID:    ids[network],
			ProxyID:      ids[proxy],
			AgentID:      ids[agent],
		}
	}
	return out
}

// withImages is a copy of the spec whose lock may be completed without touching the caller's.
func withImages(s *hclspec.Spec) *hclspec.Spec {
	copied := *s
	copied.Lock.Images = slices.Clone(s.Lock.Images)
	return &copied
}

// once drops diagnostics that say the same of the same place: the instances of one block share it.
func once(diags hcl.Diagnostics) hcl.Diagnostics {
	var out hcl.Diagnostics
	seen := map[string]bool{}
	for _, d := range diags {
		key := d.Summary + "\x00" + d.Detail
		if d.Subject != nil {
			key += "\x00" + d.Subject.String()
		}
		if !seen[key] {
			seen[key] = true
			out = append(out, d)
		}
	}
	return out
}

// report adds a mistake. One that the host or the engine shows has its own summary; anything else is
// something that could not be found out.
func (b *builder) report(at hcl.Range, context string, err error) {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summaryEngine, Detail: context + sentence(err), Subject: &at}
	var r *refusal
	if errors.As(err, &r) {
		d.Summary, d.Detail = r.summary, r.detail
	}
	b.diags = append(b.diags, d)
}

func (b *builder) warn(at hcl.Range, summary, detail string) {
	b.diags = append(b.diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: summary, Detail: detail, Subject: &at})
}
