package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"sort"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/network"
	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

const testInv = planner.Address("invocation.login[\"äß/..\"]")

func TestNetworkRowsCoverTheSDK(t *testing.T) {
	tab := networkKind().table
	requireCovered(t, tab, "", network.Inspect{}, nil)
	requireCovered(t, tab, "", network.CreateOptions{}, nil)
}

// created makes a wanted object on the engine and fails unless the engine made exactly that.
func created(t testing.TB, e *Engine, s planner.Scope, r planner.Resource, d desired) planner.Object {
	t.Helper()
	o, err := e.create(t.Context(), s, r, d, nil)
	if err != nil {
		t.Fatalf("create %s: %v", r.Addr, err)
	}
	return o
}

func TestNetworkIsWhatWasAskedFor(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	a := testInv.With(planner.PartNetwork)
	net, up := testNetwork(s, a, 0), testUplink(s, 1)
	wantNet := resourceOf(t, e, planner.KindNetwork, a, net)
	wantUp := resourceOf(t, e, planner.KindUplink, planner.AddrUplink, up)
	created(t, e, s, wantNet, net)
	created(t, e, s, wantUp, up)

	for _, look := range []struct {
		depth string
		at    func() (planner.Snapshot, error)
	}{
		{"plan", func() (planner.Snapshot, error) { return e.Observe(t.Context(), s) }},
		{"gate", func() (planner.Snapshot, error) {
			return e.Recheck(t.Context(), s, []planner.Address{testInv, planner.AddrUplink})
		}},
	} {
		snap, err := look.at()
		if err != nil {
			t.Fatal(err)
		}
		objects := scoped(snap)
		if len(objects) != 2 || len(snap.Duplicates) != 0 {
			t.Fatalf("%s: %d objects and %d duplicates, want 2 and 0", look.depth, len(objects), len(snap.Duplicates))
		}
		for i, want := range []planner.Resource{wantUp, wantNet} {
			o := objects[i]
			if m := planner.Compare(want.Fields, o.Observed); len(m) != 0 || len(o.Extra) != 0 || o.Addr != want.Addr {
				t.Errorf("%s: %s (%s) differs from what was asked for: %+v %+v", look.depth, o.Addr, o.Kind, m, o.Extra)
			}
			if m := planner.Compare(o.Declared, o.Observed); o.Declared == nil || len(m) != 0 {
				t.Errorf("%s: %s differs from its own label: %+v", look.depth, o.Addr, m)
			}
			if o.Digest != want.Digest || o.Origin != "test:/here" || o.Schema != planner.Schema {
				t.Errorf("%s: labels digest %q origin %q schema %q", look.depth, o.Digest, o.Origin, o.Schema)
			}
		}
	}
}

// TestNetworkRowsSeeEveryChange makes a network that differs from the wanted one in one property at a
// time, with our labels on it, and expects the look to name that property.
func TestNetworkRowsSeeEveryChange(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 8)
	want := resourceOf(t, e, planner.KindNetwork, a, d)
	other := testNetwork(s, a, 9)
	yes := true
	option := func(name, value string) networkChange {
		return networkChange{optionPath(name), func(r *network.CreateOptions, _ *string) { r.Options[name] = value }}
	}
	unnamed := "Bridge.arp_ignore Bridge.rp_filter " + pathBridge
	seeEveryChange(t, e, s, want, d.Name, d.request, []networkChange{
		{"Name", func(_ *network.CreateOptions, name *string) { *name += "0" }},
		{"EnableIPv6 IPAM.Config[1]", func(r *network.CreateOptions, _ *string) {
			r.EnableIPv6 = &yes
			r.IPAM.Config = append(r.IPAM.Config, network.IPAMConfig{Subnet: "fd00:dc::/64", Gateway: "fd00:dc::1"})
		}},
		{"Internal", func(r *network.CreateOptions, _ *string) { r.Internal = false }},
		{"Attachable", func(r *network.CreateOptions, _ *string) { r.Attachable = true }},
		{"IPAM.Options", func(r *network.CreateOptions, _ *string) { r.IPAM.Options["a"] = "b" }},
		{"IPAM.Config[0].Gateway IPAM.Config[0].Subnet", func(r *network.CreateOptions, _ *string) { r.IPAM = other.request().IPAM }},
		{"IPAM.Config[0].Gateway", func(r *network.CreateOptions, _ *string) { r.IPAM.Config[0].Gateway = d.Gateway.Next().String() }},
		{"IPAM.Config[0].IPRange", func(r *network.CreateOptions, _ *string) {
			r.IPAM.Config[0].IPRange = netip.PrefixFrom(d.Subnet.Addr(), 30).String()
		}},
		{"IPAM.Config[0].AuxiliaryAddresses", func(r *network.CreateOptions, _ *string) {
			r.IPAM.Config[0].AuxAddress = map[string]string{"host": d.Gateway.Next().String()}
		}},
		{unnamed, func(r *network.CreateOptions, _ *string) { r.Options[optionBridge] = "dc-other0" }},
		{unnamed, func(r *network.CreateOptions, _ *string) { delete(r.Options, optionBridge) }},
		option(optionInhibitIPv4, "false"),
		option(optionICC, "false"),
		option(optionMasquerade, "true"),
		option(optionMTU, "1400"),
		option("com.docker.network.bridge.host_binding_ipv4", "0.0.0.0"),
		{"Labels", func(r *network.CreateOptions, _ *string) { r.Labels["somebody"] = "else" }},
	})
}

func TestUplinkRowsSeeEveryChange(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	d := testUplink(s, 5)
	want := resourceOf(t, e, planner.KindUplink, planner.AddrUplink, d)
	option := func(name, value string) networkChange {
		return networkChange{optionPath(name), func(r *network.CreateOptions, _ *string) { r.Options[name] = value }}
	}
	seeEveryChange(t, e, s, want, d.Name, d.request, []networkChange{
		{"Internal", func(r *network.CreateOptions, _ *string) { r.Internal = true }},
		option(optionInhibitIPv4, "true"),
		option(optionICC, "true"),
		option(optionMasquerade, "false"),
	})
	v := d.tree()
	put(t, v, "Bridge.netfilter", "0")
	k, err := e.kind(planner.KindUplink)
	if err != nil {
		t.Fatal(err)
	}
	if m := planner.Compare(want.Fields, k.table.observed(v, nil)); len(m) != 1 || m[0].Field.Path != "Bridge.netfilter" {
		t.Errorf("bridge netfilter off is seen at %+v", m)
	}
}

// networkChange is one thing wrong with a network, and the paths at which it must be seen.
type networkChange struct {
	paths  string
	change func(r *network.CreateOptions, name *string)
}

func seeEveryChange(t *testing.T, e *Engine, s planner.Scope, want planner.Resource, name string, request func() network.CreateOptions, changes []networkChange) {
	t.Helper()
	bridge := request().Options[optionBridge]
	for _, tc := range changes {
		r, name := request(), name
		r.Labels = labelsFor(s, "test:/here", want)
		tc.change(&r, &name)
		made, err := e.cli.NetworkCreate(t.Context(), name, r)
		if err != nil {
			t.Errorf("%s: the engine refuses the change, so it cannot happen this way: %v", tc.paths, err)
			continue
		}
		if r.Options[optionBridge] == bridge {
			if err := e.setBridge(t.Context(), bridge, identity{scope: s, address: want.Addr}); err != nil {
				t.Error(err)
			}
		}
		if got := differsAt(t, e, s, want); got != sorted(tc.paths) {
			t.Errorf("changed %s, seen %q", tc.paths, got)
		}
		if err := e.Delete(t.Context(), planner.Object{Kind: want.Kind, ID: made.ID, Name: name}); err != nil {
			t.Fatal(err)
		}
	}
}

// differsAt are the paths at which the one object of a scope differs from what is wanted.
func differsAt(t *testing.T, e *Engine, s planner.Scope, want planner.Resource) string {
	t.Helper()
	snap, err := e.Observe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	o, ok := snap.Object(want.Addr)
	if !ok {
		t.Fatalf("%s is not among the %d objects seen", want.Addr, len(snap.Objects))
	}
	var paths []string
	for _, m := range planner.Compare(want.Fields, o.Observed) {
		paths = append(paths, m.Field.Path)
	}
	for _, x := range o.Extra {
		paths = append(paths, x.Path)
	}
	return sorted(strings.Join(paths, " "))
}

func sorted(words string) string {
	out := strings.Fields(words)
	sort.Strings(out)
	return strings.Join(out, " ")
}

// TestNetworkRowsSeeWhatNobodyCanProvoke is for properties that this engine cannot be made to show.
func TestNetworkRowsSeeWhatNobodyCanProvoke(t *testing.T) {
	s := planner.Scope{Project: "dc", Workspace: "w"}
	d := testNetwork(s, testInv.With(planner.PartNetwork), 0)
	tab := networkKind().table
	want := tab.wanted(d.tree(), func(string) hcl.Range { return hcl.Range{} })
	for _, tc := range []struct{ path, value string }{
		{"Driver", `"macvlan"`},
		{"Scope", `"swarm"`},
		{"Ingress", "true"},
		{"ConfigOnly", "true"},
		{"ConfigFrom.Network", `"template"`},
		{"IPAM.Driver", `"other"`},
		{"EnableIPv4", "false"},
		{`Options["com.docker.network.enable_ipv4"]`, `"false"`},
		{`Options["com.docker.network.enable_ipv6"]`, `"true"`},
		{"Peers", `[{"Name":"x"}]`},
		{"Services", `{"x":{"VIP":"1.2.3.4"}}`},
		{"Containers", `{"cafe":{"Name":"evil"}}`},
		{"Bridge.arp_ignore", "0"},
		{"Bridge.rp_filter", "null"},
		{"Bridge.foreign_ports", "1"},
		{"FieldOfTomorrow", `"on"`},
	} {
		v := d.tree()
		put(t, v, tc.path, tc.value)
		var got []string
		for _, m := range planner.Compare(want, tab.observed(v, nil)) {
			got = append(got, m.Field.Path)
		}
		extra, _ := tab.extras(v)
		for _, x := range extra {
			got = append(got, x.Path)
		}
		if strings.Join(got, " ") != tc.path {
			t.Errorf("%s set to %s is seen at %q", tc.path, tc.value, got)
		}
	}
}

// put sets one value in a tree.
func put(t *testing.T, v tree, path, value string) {
	t.Helper()
	segs := mustParsePath(path)
	var into any = v
	for _, s := range segs[:len(segs)-1] {
		next := into.(map[string]any)[s.key]
		if next == nil {
			next = map[string]any{}
			into.(map[string]any)[s.key] = next
		}
		into = next
	}
	var x any
	dec := json.NewDecoder(strings.NewReader(value))
	dec.UseNumber()
	if err := dec.Decode(&x); err != nil {
		t.Fatal(err)
	}
	into.(map[string]any)[segs[len(segs)-1].key] = x
}

func TestNetworkConflicts(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 16)
	want := resourceOf(t, e, planner.KindNetwork, a, d)

	t.Run("a foreign network has the name", func(t *testing.T) {
		made, err := e.cli.NetworkCreate(t.Context(), d.Name, network.CreateOptions{Driver: "bridge", Internal: true})
		if err != nil {
			t.Fatal(err)
		}
		defer removeByID(t, e, made.ID)
		expectConflict(t, e, s, want, d, planner.Conflict{Name: d.Name, ID: made.ID}, "another one of this name")
	})
	t.Run("a foreign network has the bridge", func(t *testing.T) {
		made, err := e.cli.NetworkCreate(t.Context(), "dc-other", network.CreateOptions{Driver: "bridge", Internal: true,
			Options: map[string]string{optionBridge: d.Bridge}})
		if err != nil {
			t.Fatal(err)
		}
		defer removeByID(t, e, made.ID)
		expectConflict(t, e, s, want, d, planner.Conflict{Name: d.Bridge, ID: made.ID}, "an interface named "+d.Bridge)
	})
	t.Run("an interface without a network has the name of the bridge", func(t *testing.T) {
		ip(t, "link", "add", d.Bridge, "type", "bridge")
		defer ip(t, "link", "delete", d.Bridge)
		expectConflict(t, e, s, want, d, planner.Conflict{Name: d.Bridge}, "an interface named "+d.Bridge)
	})
	// And nothing of ours was left behind, nothing foreign was touched.
	if snap, err := e.Observe(t.Context(), s); err != nil || len(scoped(snap))+len(e.conflictsFor(snap.Foreign, []planner.Resource{want})) != 0 {
		t.Errorf("left behind: %+v %+v (%v)", snap.Objects, snap.Foreign, err)
	}
}

func expectConflict(t *testing.T, e *Engine, s planner.Scope, want planner.Resource, d desired, c planner.Conflict, refusal string) {
	t.Helper()
	snap, err := e.Observe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	got := e.conflictsFor(snap.Foreign, []planner.Resource{want})
	if len(got) != 1 || got[0].Addr != want.Addr || got[0].Name != c.Name || got[0].ID != c.ID || got[0].Detail == "" {
		t.Errorf("conflicts %+v, want one at %s with %s %s", got, want.Addr, c.Name, c.ID)
	}
	if len(scoped(snap)) != 0 {
		t.Errorf("the foreign object is taken for ours: %+v", snap.Objects)
	}
	if other := want; len(e.conflictsFor(snap.Foreign, []planner.Resource{withName(other, "sandplan-other-00000000")})) != 0 {
		t.Error("the foreign object is in the way of an object with another name and bridge")
	}
	if o, err := e.create(t.Context(), s, want, d, nil); err == nil || !strings.Contains(err.Error(), refusal) || o.ID != "" {
		t.Errorf("create went on to %q with %v, want a refusal that says %q", o.ID, err, refusal)
	}
}

func withName(r planner.Resource, name string) planner.Resource {
	r.Fields = append([]planner.Field(nil), r.Fields...)
	for i := range r.Fields {
		if p := r.Fields[i].Path; p == pathName || p == pathBridge {
			r.Fields[i].Value = planner.JSON(name)
		}
	}
	return r
}

func removeByID(t *testing.T, e *Engine, id string) {
	t.Helper()
	if err := e.cli.NetworkRemove(context.Background(), id); err != nil {
		t.Error(err)
	}
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func TestDuplicateIsNotTheObject(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 24)
	want := resourceOf(t, e, planner.KindNetwork, a, d)
	o := created(t, e, s, want, d)
	r := network.CreateOptions{Driver: "bridge", Labels: labelsFor(s, "test:/here", want)}
	made, err := e.cli.NetworkCreate(t.Context(), "a-copy", r)
	if err != nil {
		t.Fatal(err)
	}
	odd := network.CreateOptions{Driver: "bridge", Labels: labelsFor(s, "test:/here", planner.Resource{Addr: "\x1b[31mnonsense", Kind: "weird"})}
	nonsense, err := e.cli.NetworkCreate(t.Context(), "a-stray", odd)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := e.Observe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if objects := scoped(snap); len(objects) != 1 || objects[0].ID != o.ID {
		t.Errorf("objects %+v, want only %s", objects, o.ID)
	}
	var got []string
	for _, dup := range snap.Duplicates {
		got = append(got, fmt.Sprintf("%s %s", dup.Addr, dup.ID))
		if err := e.Delete(t.Context(), dup); err != nil {
			t.Errorf("a duplicate cannot be removed: %v", err)
		}
	}
	if want := fmt.Sprintf("sandplan.unknown %s, %s %s", nonsense.ID, a, made.ID); strings.Join(got, ", ") != want {
		t.Errorf("duplicates %q, want %q", got, want)
	}
}

func TestBridgeSettings(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 32)
	want := resourceOf(t, e, planner.KindNetwork, a, d)
	o := created(t, e, s, want, d)
	ip(t, "link", "set", "dev", d.Bridge, "down") // settings do not depend on the state of the link
	if out, err := exec.Command("sysctl", "-w", "net.ipv4.conf."+d.Bridge+".arp_ignore=0", "net.ipv4.conf."+d.Bridge+".rp_filter=2").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := differsAt(t, e, s, want); got != "Bridge.arp_ignore Bridge.rp_filter" {
		t.Errorf("tampered settings are seen at %q", got)
	}
	k, _ := e.kind(planner.KindNetwork)
	if err := k.restore(t.Context(), e, s, o); err != nil {
		t.Fatal(err)
	}
	if got := differsAt(t, e, s, want); got != "" {
		t.Errorf("after the restore it differs at %q", got)
	}
	ip(t, "link", "add", "dcport0", "type", "veth", "peer", "name", "dcport1")
	defer ip(t, "link", "delete", "dcport0")
	ip(t, "link", "set", "dcport0", "master", d.Bridge)
	if got := differsAt(t, e, s, want); got != "Bridge.foreign_ports" {
		t.Errorf("a port that belongs to no endpoint is seen at %q", got)
	}
}

func TestEngineThatDoesNotObey(t *testing.T) {
	socket := dockertest.Socket(t)
	p := dockertest.NewProxy(t, socket, dockertest.Fault{Call: "^GET /networks/[0-9a-f]{64}$", Edit: func(b any) any {
		b.(map[string]any)["Internal"] = false
		b.(map[string]any)["FieldOfTomorrow"] = "on"
		return b
	}})
	e := openSocket(t, p.Socket)
	s := testScope(t, e)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 40)
	o, err := e.create(t.Context(), s, resourceOf(t, e, planner.KindNetwork, a, d), d, nil)
	if err == nil || o.ID == "" {
		t.Fatalf("object %q, error %v", o.ID, err)
	}
	for _, part := range []string{"did not do what it was asked to", "Internal is false instead of true", "FieldOfTomorrow"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}
