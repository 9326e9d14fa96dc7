package docker

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
)

// paper is an engine that nobody asks: either a recording of one, or none at all. What only an engine or the
// host can tell, and no recording does, stands in a compiled configuration as planner.Unknown.
type paper struct {
	// recording is nil where there is no engine at all.
	recording *Recording
	// root is the repository of the configuration; worktrees in it are named relative to it.
	root string
}

// NoEngine is an engine for comparing two configurations with each other. root is the repository that the
// configuration lies in, so that two checkouts of one repository declare the same; "" leaves paths as they are.
func NoEngine(root string) *Engine {
	return onPaper(Info{API: maxAPI}, &paper{root: root})
}

// Recorded is the engine that a recording was made of. Nothing can be changed on it.
func Recorded(r *Recording) *Engine {
	return onPaper(r.Engine, &paper{recording: r})
}

func onPaper(info Info, p *paper) *Engine {
	return &Engine{info: info, kinds: kinds(), paper: p, http: &http.Client{Transport: readOnly{unplugged{}}},
		own: func() (*ownImage, error) { return p.tool(), nil }}
}

// unplugged answers no call.
type unplugged struct{}

func (unplugged) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("%s %s: there is no engine to ask", r.Method, r.URL.Path)
}

// look is the snapshot of a scope, if the recording is of that one.
func (p *paper) look(scope planner.Scope) (planner.Snapshot, error) {
	if p.recording == nil {
		return planner.Snapshot{Scope: scope}, nil
	}
	s, err := p.recording.snapshot()
	if err == nil && s.Scope != scope {
		err = fmt.Errorf("the snapshot is of %s, and this is about %s; -workspace chooses the workspace", s.Scope, scope)
	}
	return s, err
}

// Stand-ins for what is not known when a configuration is compiled on paper. Each is of the form that the
// real value has, so that all goes through the same code, and none can be anybody's: the addresses are
// reserved (RFC 1112), no system has such a user, and the characters are for private use.
const (
	standInUser = 4294900000
	standInMark = "\ue001"
)

var (
	standInUplink  = netip.MustParsePrefix("240.0.4.0/22")
	standInNetwork = netip.MustParsePrefix("240.0.0.0/29")
	standInDNS     = netip.MustParseAddr("240.0.8.53")
)

// standIn is a text that stands for something unknown.
func standIn(what string) string { return standInMark + what + standInMark }

const (
	unknownTool  = "this sandplan"
	unknownOwner = "the worktree's owner"
)

func (p *paper) tool() *ownImage {
	if f := p.facts(); f != nil {
		return &ownImage{ID: f.Tool, binary: &binary{sha256: f.ToolSHA256}}
	}
	return &ownImage{ID: standIn(unknownTool), binary: &binary{sha256: standIn(unknownTool)}}
}

func (p *paper) facts() *facts {
	if p.recording == nil {
		return nil
	}
	return p.recording.Facts
}

// buildOnPaper is build with what is known without an engine.
func (b *builder) buildOnPaper(snap planner.Snapshot) {
	p := b.engine.paper
	b.tool = p.tool()
	var addrs []planner.Address
	for _, inv := range b.spec.Invocations {
		addrs = append(addrs, planner.Address(inv.Address))
	}
	found, err := allocation(b.spec.Provider.SubnetPool.V, addrs, snap)
	if err != nil {
		b.report(b.spec.Provider.SubnetPool.Range, "", &refusal{summarySubnets, sentence(err)})
		return
	}
	if p.recording == nil { // which addresses they get depends on those that are taken
		for inv := range found.Networks {
			found.Networks[inv] = standInSubnet(standInNetwork, standInUplink.Addr().Next().Next())
		}
		found.Uplink = standInSubnet(standInUplink, netip.Addr{})
	}
	b.out.allocation = found
	if !b.spec.Provider.DNS.Set && len(b.spec.Lock.DNS) == 0 && b.resolves() {
		b.spec.Lock.DNS = []netip.Addr{standInDNS}
	}
	b.shared()
	b.imagesOnPaper()
	b.findImages()
	x := exposure{onPaper: b.treesOnPaper()}
	for _, inv := range b.spec.Invocations {
		b.invocation(inv, x)
	}
	b.out.resources = b.rows.all()
}

func standInSubnet(p netip.Prefix, uplink netip.Addr) planner.Subnet {
	gateway := p.Addr().Next()
	return planner.Subnet{Prefix: p, Gateway: gateway, Proxy: gateway.Next(), Agent: gateway.Next().Next(), Uplink: uplink}
}

// resolves reports whether any host is found by its name.
func (b *builder) resolves() bool {
	return slices.ContainsFunc(b.spec.Vendors, func(v hclspec.Vendor) bool {
		return slices.ContainsFunc(v.Hosts, func(h hclspec.Host) bool { return len(h.Addresses.V) == 0 })
	})
}

// imagesOnPaper fills in what is known of the images: by the recording, else by the lock file.
func (b *builder) imagesOnPaper() {
	known := func(ref hclspec.Val[string], agent bool) {
		key := imageUse{ref.V, agent}
		if _, done := b.images[key]; done {
			return
		}
		if f := b.engine.paper.facts(); f != nil {
			if i := slices.IndexFunc(f.Images, func(i factImage) bool { return i.Ref == ref.V }); i >= 0 {
				b.images[key] = foundImage{image: f.Images[i].image()}
				b.learn(f.Images[i].image())
				return
			}
		}
		b.images[key] = foundImage{image: b.lockedImage(ref)}
	}
	for _, inv := range b.spec.Invocations {
		if v := b.vendor(inv); v != nil {
			known(v.Image, true)
		}
		if p := b.phase(inv); p != nil {
			for _, r := range p.Runners {
				known(r.Image, false)
			}
		}
	}
}

// lockedImage is an image as far as the lock file, or its own name, says which one it is.
func (b *builder) lockedImage(ref hclspec.Val[string]) pinnedImage {
	p := pinnedImage{ref: ref.V, present: true}
	i := slices.IndexFunc(b.spec.Lock.Images, func(l hclspec.LockImage) bool { return l.Ref == ref.V })
	switch {
	case i >= 0:
		l := b.spec.Lock.Images[i]
		p.id, p.config = choiceOf(l), l.Config
	case imageID.MatchString(ref.V):
		p.id = "sha256:" + strings.TrimPrefix(ref.V, "sha256:")
	case digestRef.MatchString(ref.V):
		p.id = standIn(ref.V)
	default:
		// Two that nobody pinned are never the same, not even under one name.
		p.id = standIn("not pinned, in " + b.spec.Dir)
		b.warn(ref.Range, summaryImage, fmt.Sprintf("The image %s is not pinned: %s has no entry for it, so that nobody can tell whether it is another one. "+
			"Run `sandplan init`, which writes down what it is now.", ref.V, orElse("the lock file")(nonEmpty(b.spec.Lock.Path))))
	}
	return p
}

// choiceOf is the ID that a locked image has, where the lock file leaves no choice. An engine that has none of the
// IDs takes what the digest names, whatever ID that has there.
func choiceOf(l hclspec.LockImage) string {
	choices := slices.Clone(l.IDs)
	switch {
	case l.Digest != "":
		choices = append(choices, "the digest "+l.Digest)
	case len(choices) == 1:
		return choices[0]
	}
	return standIn(strings.Join(choices, " or "))
}

// treesOnPaper fills in what is known of the worktrees, and returns what is mounted over writable ones.
func (b *builder) treesOnPaper() map[string][]string {
	p, over := b.engine.paper, map[string][]string{}
	for _, inv := range b.spec.Invocations {
		given := inv.Worktree.V
		tree := worktree{place: place{path: relativeTo(p.root, given), uid: standInUser, gid: standInUser, mode: modeDir | 0o777}, git: gitDir{kind: gitOwn}}
		if f := p.facts(); f != nil {
			if i := slices.IndexFunc(f.Trees, func(t factTree) bool { return t.Given == given }); i >= 0 {
				tree = f.Trees[i].tree()
				over[tree.path] = f.Trees[i].ReadOnly
			}
		}
		b.trees[given] = foundTree{tree: tree}
		b.inner[tree.path] = nil // nested repositories are looked for on the disk
	}
	return over
}

// rootMark stands for the root of the repository.
const rootMark = "\ue002"

// relativeTo names a path within the repository relative to its root.
func relativeTo(root, path string) string {
	if root == "" || root == "/" || !within(root, path) {
		return path
	}
	return rootMark + strings.TrimPrefix(path, root)
}

// compileOnPaper compiles without an engine.
func (b *builder) compileOnPaper(snap planner.Snapshot) (*Compiled, hcl.Diagnostics) {
	if len(b.spec.Invocations) > 0 {
		b.buildOnPaper(snap)
	}
	c, diags := b.finish()
	unveil := veil{pool: b.spec.Provider.SubnetPool.V.String(), shim: b.shim.name(), tool: b.engine.paper.tool().ID}
	for i := range c.resources {
		r := &c.resources[i]
		for j := range r.Fields {
			r.Fields[j].Value = unveil.value(r.Fields[j].Value)
		}
		r.Digest = planner.Digest(r.Fields)
	}
	return c, diags
}
