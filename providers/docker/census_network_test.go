package docker

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/sandplan/sandplan/planner"
)

// networkMutant is a network that was made, with the request that made it.
func networkMutant(t *testing.T, e *Engine, s planner.Scope, want planner.Resource, name string, asked network.CreateOptions) *mutant {
	t.Helper()
	k, err := e.kind(want.Kind)
	if err != nil {
		t.Fatal(err)
	}
	asked.Labels = labelsFor(s, "test:/here", want)
	m := &mutant{engine: e, kind: k, want: want, all: []planner.Resource{want}, replaced: []planner.Address{want.Addr},
		request: treeOf(network.CreateRequest{CreateOptions: asked, Name: name}), shape: reflect.TypeFor[network.CreateRequest]()}
	if m.run = want.Addr.Invocation(); m.run == "" {
		m.run = testInv
	}
	m.remake = func(t *testing.T, request tree) error {
		t.Helper()
		if m.id != "" {
			if err := e.Delete(t.Context(), planner.Object{Kind: want.Kind, ID: m.id}); err != nil {
				t.Fatal(err)
			}
		}
		m.id = ""
		made, err := e.post(t.Context(), "/networks/create", nil, request)
		if err != nil {
			return err
		}
		m.id = treeID(made)
		if options, _ := request["Options"].(map[string]any); options[optionBridge] == asked.Options[optionBridge] {
			return e.setBridge(t.Context(), asked.Options[optionBridge], identity{scope: s, address: want.Addr})
		}
		return nil
	}
	m.look = func(t *testing.T) planner.Object {
		t.Helper()
		snap, err := e.Recheck(t.Context(), s, []planner.Address{want.Addr})
		if err != nil {
			t.Fatal(err)
		}
		o, ok := snap.Object(want.Addr)
		if !ok {
			t.Fatalf("%s is not seen", want.Addr)
		}
		return o
	}
	// What the engine shows goes through the rows after the bridge was added, which is where it is edited.
	m.show = func(t *testing.T, edit func(tree) tree) planner.Object {
		t.Helper()
		raw, err := inspectNetwork(t.Context(), e, m.id)
		if err != nil {
			t.Fatal(err)
		}
		l := &look{engine: e, scope: s, gate: true, refs: map[string]planner.Address{m.id: want.Addr}}
		if err := k.complete(t.Context(), l, raw); err != nil {
			t.Fatal(err)
		}
		raw = edit(raw)
		o := planner.Object{Addr: want.Addr, Kind: k.name, ID: m.id, Observed: k.table.observed(raw, l.refs)}
		o.Extra, _ = k.table.extras(raw)
		return o
	}
	if err := m.remake(t, m.request); err != nil {
		t.Fatal(err)
	}
	if m.base, err = e.Observe(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	m.base.Conflicts = nil
	return m
}

// networkRecipes are for networks; d is the wanted one.
func networkRecipes(bridge string, subnet netip.Prefix, gateway netip.Addr) map[string]recipe {
	const swarm = "only a swarm has it, and the driver bridge ignores it"
	v6 := fmt.Sprintf("fd00:dc:%x:%x::", os.Getpid()>>16, os.Getpid()&0xffff)
	next := gateway.Next().String()
	unnamed := `Options["` + optionBridge + `"] Bridge.*`
	r := map[string]recipe{
		"Driver":                            {to: as(`"macvlan"`), also: map[string]string{"Options": `{"parent":"lo"}`}, fields: "Options* Bridge.*", refused: "macvlan"},
		"Scope":                             {to: as(`"swarm"`), refused: "swarm"},
		"EnableIPv4":                        {to: as("false"), refused: "IPv4", unheeded: "engines before 28 know no network without IPv4"},
		"EnableIPv6":                        {also: map[string]string{"IPAM.Config[1]": fmt.Sprintf(`{"Subnet":%q,"Gateway":%q}`, v6+"/64", v6+"1")}, fields: "IPAM.Config[1] " + optionPath(optionEnableIPv6)},
		"Ingress":                           {to: as("true"), refused: "ngress", unheeded: swarm},
		"ConfigOnly":                        {to: as("true"), refused: "onfiguration", fields: "* "},
		"ConfigFrom.Network":                {to: as(`"template"`), refused: "onfig"},
		"IPAM.Driver":                       {to: as(`"other"`), refused: "not found"},
		"IPAM.Options":                      {to: as(`{"a":"b"}`)},
		pathSubnet:                          {to: as(fmt.Sprintf("%q", netip.PrefixFrom(subnet.Addr(), subnet.Bits()-1).Masked())), fields: "IPAM.Config[0].Gateway Bridge.addresses"},
		"IPAM.Config[0].Gateway":            {to: as(fmt.Sprintf("%q", next)), fields: "Bridge.addresses"},
		"IPAM.Config[0].IPRange":            {to: as(fmt.Sprintf("%q", netip.PrefixFrom(subnet.Addr(), 30)))},
		"IPAM.Config[0].AuxiliaryAddresses": {to: as(fmt.Sprintf(`{"host":%q}`, next))},
		pathBridge:                          {to: as(`"` + unique("dcc") + `"`), fields: unnamed},
		optionPath(optionInhibitIPv4):       {to: otherBool, fields: "Bridge.addresses"},
		optionPath(optionICC):               {to: otherBool},
		optionPath(optionMasquerade):        {to: otherBool},
		optionPath(optionMTU):               {to: as(`"1400"`)},
		optionPath(optionBinding):           {to: as(`"0.0.0.0"`)},
		optionPath(optionEnableIPv4):        {to: as(`"false"`), refused: "enable_ipv4", unheeded: "the engine writes it after EnableIPv4"},
		optionPath(optionEnableIPv6):        {to: as(`"true"`), refused: "enable_ipv6", unheeded: "the engine writes it after EnableIPv6"},
		"Bridge.addresses":                  {after: func(t *testing.T, _ *mutant) { ip(t, "address", "add", "192.0.2.77/32", "dev", bridge) }},
		"Bridge.up":                         {after: func(t *testing.T, _ *mutant) { ip(t, "link", "set", bridge, "down") }},
		"Bridge.mtu":                        {after: func(t *testing.T, _ *mutant) { ip(t, "link", "set", bridge, "mtu", "9000") }},
		"Bridge.group_fwd_mask":             {after: func(t *testing.T, _ *mutant) { ip(t, "link", "set", bridge, "type", "bridge", "group_fwd_mask", "8") }},
		"Bridge.foreign_ports":              {after: func(t *testing.T, _ *mutant) { foreignPort(t, bridge) }},
		"Bridge.joined": {after: func(t *testing.T, _ *mutant) { // goes with the bridge
			ip(t, "link", "add", "link", bridge, "name", unique("cem"), "type", "macvlan")
		}},
		"Bridge.answers_for": {after: func(t *testing.T, _ *mutant) { ip(t, "neighbour", "add", "proxy", "192.0.2.78", "dev", bridge) }},
		"Containers":         {after: joinForeign},
		"Labels":             {to: with(`{"somebody":"else"}`)},
		"Peers":              {to: as(`[{"Name":"x"}]`), unheeded: swarm},
		"Services":           {to: as(`{"x":{"VIP":"192.0.2.1"}}`), unheeded: swarm},
		"Bridge.netfilter":   {unheeded: "it is the machine's, and every container on it would be without", shown: "0"},
	}
	for _, set := range bridgeSettings() {
		other := map[string]string{"0": "1", "1": "0"}[set.value]
		r["Bridge."+set.name] = recipe{after: func(t *testing.T, _ *mutant) { sysctl(t, bridge, set.family, set.name, other) }}
	}
	return r
}

func otherBool(old any) any { return map[any]string{"true": "false", "false": "true"}[old] }

// foreignPort puts an interface on a bridge that is no container's.
func foreignPort(t *testing.T, bridge string) {
	t.Helper()
	ip(t, "link", "add", unique("cep"), "type", "veth", "peer", "name", unique("ceq"))
	t.Cleanup(func() { ip(t, "link", "delete", unique("cep")) })
	ip(t, "link", "set", unique("cep"), "master", bridge)
}

// joinForeign starts somebody's container on the network.
func joinForeign(t *testing.T, m *mutant) {
	t.Helper()
	made, err := m.engine.cli.ContainerCreate(t.Context(), &container.Config{Image: stepsImage(t, m.engine), Cmd: []string{"sleep=1m"}},
		&container.HostConfig{NetworkMode: container.NetworkMode(m.id)}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.engine.cli.ContainerRemove(context.Background(), made.ID, container.RemoveOptions{Force: true})
	})
	if err := m.engine.Start(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
}

func TestCensusOfNetworks(t *testing.T) {
	t.Parallel()
	e := openEngine(t)
	var all tally
	s := testScope(t, e)
	net, up := testNetwork(s, testInv.With(planner.PartNetwork), 48), testUplink(s, 3)
	for _, what := range []struct {
		kind    planner.Kind
		addr    planner.Address
		wanted  desired
		name    string
		asked   network.CreateOptions
		recipes map[string]recipe
	}{
		{planner.KindNetwork, testInv.With(planner.PartNetwork), net, net.Name, net.request(), networkRecipes(net.Bridge, net.Subnet, net.Gateway)},
		{planner.KindUplink, planner.AddrUplink, up, up.Name, up.request(), networkRecipes(up.Bridge, up.Subnet, up.Gateway)},
	} {
		t.Run(string(what.kind), func(t *testing.T) {
			want := resourceOf(t, e, what.kind, what.addr, what.wanted)
			m := networkMutant(t, e, s, want, what.name, what.asked)
			defer func() { _ = e.Delete(context.Background(), planner.Object{Kind: want.Kind, ID: m.id}) }()
			if got := m.paths(m.look(t)); len(got) != 0 {
				t.Fatalf("made by hand, as it should be, it differs at %q", got)
			}
			n := m.census(t, what.recipes)
			all.add(n)
			t.Logf("%s: %s", what.kind, n)
		})
	}
	report(t, "networks", e, all)
}
