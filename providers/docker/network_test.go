package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
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
	v6 := fmt.Sprintf("fd00:dc:%x:%x::", os.Getpid()>>16, os.Getpid()&0xffff)
	option := func(name, value string) networkChange {
		return networkChange{optionPath(name), func(r *network.CreateOptions, _ *string) { r.Options[name] = value }}
	}
	unnamed := pathBridge
	for _, set := range bridgeSettings() {
		unnamed += " Bridge." + set.name
	}
	seeEveryChange(t, e, s, want, d.Name, d.request, []networkChange{
		{"Name", func(_ *network.CreateOptions, name *string) { *name += "0" }},
		{"EnableIPv6 IPAM.Config[1]", func(r *network.CreateOptions, _ *string) {
			r.EnableIPv6 = &yes
			r.IPAM.Config = append(r.IPAM.Config, network.IPAMConfig{Subnet: v6 + "/64", Gateway: v6 + "1"})
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
		{unnamed, func(r *network.CreateOptions, _ *string) { r.Options[optionBridge] = unique("dco") }},
		{unnamed + " Bridge.mtu Bridge.up", func(r *network.CreateOptions, _ *string) { delete(r.Options, optionBridge) }},
		{"Bridge.addresses " + optionPath(optionInhibitIPv4), func(r *network.CreateOptions, _ *string) { r.Options[optionInhibitIPv4] = "false" }},
		option(optionICC, "false"),
		option(optionMasquerade, "true"),
		option(optionMTU, "1400"),
		option(optionBinding, "0.0.0.0"),
		{optionPath(optionBinding), func(r *network.CreateOptions, _ *string) { delete(r.Options, optionBinding) }},
		option("com.docker.network.container_iface_prefix", "dc"),
		{"Labels", func(r *network.CreateOptions, _ *string) { r.Labels["somebody"] = "else" }},
	})
}

func TestUplinkRowsSeeEveryChange(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	d := testUplink(s, 2)
	want := resourceOf(t, e, planner.KindUplink, planner.AddrUplink, d)
	option := func(name, value string) networkChange {
		return networkChange{optionPath(name), func(r *network.CreateOptions, _ *string) { r.Options[name] = value }}
	}
	seeEveryChange(t, e, s, want, d.Name, d.request, []networkChange{
		{"Internal", func(r *network.CreateOptions, _ *string) { r.Internal = true }},
		{"Bridge.addresses " + optionPath(optionInhibitIPv4), func(r *network.CreateOptions, _ *string) { r.Options[optionInhibitIPv4] = "true" }},
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
	want := tab.wanted(d.tree(), func(string) *hcl.Range { return nil })
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

// TestMiscountedEndpoints: what an engine does not remove although nobody is on it is told as the engine's failure.
func TestMiscountedEndpoints(t *testing.T) {
	t.Parallel()
	direct := openEngine(t)
	s := testScope(t, direct)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 120)
	o := created(t, direct, s, resourceOf(t, direct, planner.KindNetwork, a, d), d)
	p := dockertest.NewProxy(t, dockertest.Socket(t), dockertest.Fault{Call: "^DELETE /networks/", Status: 403,
		Message: "error while removing network: network x id y has active endpoints"})
	if err := openSocket(t, p.Socket).Delete(t.Context(), o); !errors.Is(err, errMiscounted) {
		t.Errorf("%v, want that the engine has lost count", err)
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
