package main

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/hclspec"
)

func TestNameservers(t *testing.T) {
	for _, tt := range []struct{ text, want, reason string }{
		{"nameserver 10.0.0.2\nnameserver 10.0.0.3\n", "10.0.0.2 10.0.0.3", "in their order"},
		{"nameserver 127.0.0.53\noptions edns0\n", "", "a loopback address is the container itself in there"},
		{"nameserver ::1\nnameserver 0.0.0.0\n", "", "nor is any other of that kind of use"},
		{"nameserver fe80::1%eth0\nnameserver 2001:db8::1\n", "2001:db8::1", "a zone is an interface of the host"},
		{"# nameserver 1.1.1.1\n;nameserver 1.1.1.1\nnameserver\nnameserver x\n", "", "comments and rubbish"},
		{"nameserver ::ffff:10.0.0.2\n", "10.0.0.2", "a mapped address is an IPv4 one"},
	} {
		var got []string
		for _, a := range nameservers(tt.text) {
			got = append(got, a.String())
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%q: %v, want %s: %s", tt.text, got, tt.want, tt.reason)
		}
	}
}

func image(ref, id string) hclspec.LockImage {
	return hclspec.LockImage{Ref: ref, IDs: []string{id}}
}

func specWith(refs ...string) *hclspec.Spec {
	spec := &hclspec.Spec{}
	for _, ref := range refs {
		spec.Vendors = append(spec.Vendors, hclspec.Vendor{Name: ref, Image: hclspec.Val[string]{V: ref, Set: true},
			Hosts: []hclspec.Host{{Name: "api.example.com"}}})
	}
	return spec
}

// TestPinning: what is pinned stays pinned until -upgrade, what is missing is looked up once, and
// -lockfile=readonly never looks anything up.
func TestPinning(t *testing.T) {
	dns := []netip.Addr{netip.MustParseAddr("10.0.0.2")}
	old := hclspec.Lock{Exists: true, DNS: dns, Images: []hclspec.LockImage{image("a:1", "sha256:aa"), image("z:1", "sha256:zz")}}
	for _, tt := range []struct {
		flags  initFlags
		refs   []string
		want   string // REF=ID of the new lock
		asked  string
		change bool
		fault  string
		reason string
	}{
		{initFlags{}, []string{"z:1", "a:1"}, "a:1=sha256:aa z:1=sha256:zz", "", false, "", "again: nothing is asked and nothing changes"},
		{initFlags{}, []string{"a:1", "b:1", "z:1"}, "a:1=sha256:aa b:1=now z:1=sha256:zz", "b:1", true, "", "only what is missing is looked up"},
		{initFlags{}, []string{"a:1"}, "a:1=sha256:aa", "", true, "", "what nothing uses any more goes"},
		{initFlags{upgrade: true}, []string{"a:1", "z:1"}, "a:1=now z:1=now", "a:1 z:1", true, "", "upgrade moves every pin"},
		{initFlags{lockfile: "readonly"}, []string{"a:1"}, "a:1=sha256:aa z:1=sha256:zz", "", false, "", "readonly is content with more than it needs"},
		{initFlags{lockfile: "readonly"}, []string{"b:1"}, "", "", false, `pins no image "b:1"`, "readonly refuses what is missing"},
	} {
		var asked []string
		p := pinning{flags: tt.flags, old: old, pin: func(_ context.Context, ref string, agent bool) (hclspec.LockImage, error) {
			if asked = append(asked, ref); !agent {
				t.Errorf("%s: %s was not looked into as an agent's image", tt.reason, ref)
			}
			return image(ref, "now"), nil
		}, missing: func(_ context.Context, l hclspec.LockImage) (string, error) {
			if l.Ref == "z:1" {
				return "Load it.", nil
			}
			return "", nil
		}}
		spec := specWith(tt.refs...)
		err := p.images(context.Background(), spec)
		if err == nil {
			err = p.servers(spec, func() ([]netip.Addr, error) { return dns, nil })
		}
		if tt.fault != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fault) || asked != nil {
				t.Errorf("%s: error %v, asked %v; want an error with %q", tt.reason, err, asked, tt.fault)
			}
			continue
		}
		var got []string
		for _, i := range p.lock.Images {
			got = append(got, i.Ref+"="+i.IDs[0])
		}
		if err != nil || strings.Join(got, " ") != tt.want || strings.Join(asked, " ") != tt.asked || p.changed() != tt.change {
			t.Errorf("%s: %v, asked %v, changed %v, error %v", tt.reason, got, asked, p.changed(), err)
		}
		for _, i := range p.told {
			if lost := i.What == "kept; not on this engine"; lost != (i.Ref == "z:1" && !tt.flags.upgrade && tt.flags.lockfile == "") {
				t.Errorf("%s: a pin stays although its image is gone, and that is to be said: %+v", tt.reason, i)
			} else if lost && (!p.lacking || len(p.lost) != 1 || p.lost[0].Detail != "Load it." || p.lost[0].Subject == nil) {
				t.Errorf("%s: what to do is not said: %v", tt.reason, p.lost)
			}
		}
	}
}

// TestPinningNamesTheLine: a reference that cannot be pinned is shown where it is written.
func TestPinningNamesTheLine(t *testing.T) {
	spec := specWith("a:1")
	spec.Vendors[0].Image.Range = hcl.Range{Filename: "sandplan.hcl", Start: hcl.Pos{Line: 7}}
	p := pinning{pin: func(context.Context, string, bool) (hclspec.LockImage, error) {
		return hclspec.LockImage{}, errors.New("no such image")
	}}
	diags := asDiagnostics(p.images(context.Background(), spec))
	if len(diags) != 1 || diags[0].Subject == nil || diags[0].Subject.Start.Line != 7 || !strings.Contains(diags[0].Detail, "No such image") {
		t.Errorf("got %v", diags)
	}
}

func TestServers(t *testing.T) {
	found := []netip.Addr{netip.MustParseAddr("10.0.0.2")}
	other := []netip.Addr{netip.MustParseAddr("10.9.9.9")}
	fixed := specWith("a:1")
	fixed.Vendors[0].Hosts[0].Addresses.V = other
	declared := specWith("a:1")
	declared.Provider.DNS.Set = true
	for _, tt := range []struct {
		spec   *hclspec.Spec
		flags  initFlags
		old    []netip.Addr
		want   []netip.Addr
		fault  bool
		reason string
	}{
		{specWith("a:1"), initFlags{}, nil, found, false, "a name has to be resolved: the host's servers"},
		{specWith("a:1"), initFlags{}, other, other, false, "what is pinned stays"},
		{specWith("a:1"), initFlags{upgrade: true}, other, found, false, "upgrade moves it"},
		{specWith("a:1"), initFlags{lockfile: "readonly"}, nil, nil, true, "readonly cannot add it"},
		{fixed, initFlags{}, nil, nil, false, "fixed addresses need no server"},
		{declared, initFlags{}, other, nil, false, "declared servers stand in the configuration"},
	} {
		p := pinning{flags: tt.flags, old: hclspec.Lock{DNS: tt.old}}
		err := p.servers(tt.spec, func() ([]netip.Addr, error) { return found, nil })
		if (err != nil) != tt.fault || !slices.Equal(p.lock.DNS, tt.want) {
			t.Errorf("%s: %v, %v", tt.reason, p.lock.DNS, err)
		}
	}
}

// TestNextCommand: the last of the commands that init ends with works as it stands.
func TestNextCommand(t *testing.T) {
	inv := hclspec.Invocation{Address: "invocation.a", Vendor: hclspec.Val[string]{V: "v"}}
	declared := inv
	declared.Prompt = hclspec.Val[string]{V: "Look.", Set: true}
	vendor := func(kind string) []hclspec.Vendor {
		return []hclspec.Vendor{{Name: "w", Kind: hclspec.Val[string]{V: "codex"}}, {Name: "v", Kind: hclspec.Val[string]{V: kind}}}
	}
	for _, tt := range []struct {
		spec   hclspec.Spec
		want   string
		reason string
	}{
		{hclspec.Spec{Vendors: vendor("claude"), Invocations: []hclspec.Invocation{inv}}, "  sandplan run -prompt=FILE invocation.a\n", "a vendor's CLI needs a prompt"},
		{hclspec.Spec{Vendors: vendor("claude"), Invocations: []hclspec.Invocation{declared}}, "  sandplan run invocation.a\n", "one is declared"},
		{hclspec.Spec{Vendors: vendor("custom"), Invocations: []hclspec.Invocation{inv}}, "  sandplan run invocation.a\n", "a command of one's own needs none"},
		{hclspec.Spec{}, "  sandplan run ADDRESS\n", "nothing is declared yet"},
	} {
		first, asks := firstInvocation(&tt.spec)
		if got := (&render.Renderer{}).Pinned(render.Pinned{Invocation: first, Prompt: asks}); !strings.HasSuffix(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.reason, got, tt.want)
		}
	}
}
