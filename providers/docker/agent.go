package docker

import (
	"net/netip"
	"slices"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/egress"
	"github.com/sandplan/sandplan/providers/docker/shim"
)

// desiredAgent is the container of an invocation's agent: created and not started, on its invocation's
// network and on nothing else.
type desiredAgent struct {
	sandbox
	subnet planner.Subnet
	uplink planner.Subnet
}

// refusedHost is what the shim asks the proxy for and must not get. The name cannot exist (RFC 6761).
const refusedHost = "sandplan-refused.invalid:443"

func (d desiredAgent) container() (containerSpec, error) {
	s, err := d.spec(d.network())
	if err != nil {
		return containerSpec{}, err
	}
	inner := d.addr.Invocation().With(planner.PartNetwork)
	s.host.NetworkMode = networkMode(inner)
	s.endpoints = []endpointSpec{newEndpoint(roleNetwork, inner, d.subnet.Agent)}
	return s, nil
}

// network is what the shim is to find: the proxy, the hosts that it lets through and one that it does
// not, and addresses that must not be reachable past it.
func (d desiredAgent) network() *shim.Network {
	n := &shim.Network{
		Address: netip.PrefixFrom(d.subnet.Agent, d.subnet.Prefix.Bits()).String(),
		Proxy:   netip.AddrPortFrom(d.subnet.Proxy, egress.Port).String(),
		Refused: refusedHost,
		// Two addresses that answer everywhere, and the host as proxies see it.
		Direct: []string{"1.1.1.1:443", "[2606:4700:4700::1111]:443", netip.AddrPortFrom(d.uplink.Gateway, 22).String()},
	}
	for _, h := range d.command.Hosts() {
		n.Hosts = append(n.Hosts, hostPort(h.Name, h.Port))
		for _, a := range h.Addresses {
			if direct := hostPort(a, h.Port); !slices.Contains(n.Direct, direct) {
				n.Direct = append(n.Direct, direct)
			}
		}
	}
	return n
}

func agentRows() []row {
	at := "Config.Cmd[1].network."
	rows := append(sandboxRows(), endpointRows(roleNetwork)...)
	return append(rows,
		row{path: at + "address", norm: text, label: "address", show: planner.Headline},
		row{path: at + "proxy", norm: text, label: "proxy", show: planner.Headline},
		row{path: at + "hosts", norm: list, label: "hosts"},
		row{path: at + "refused", norm: text},
		row{path: at + "direct", norm: list},
	)
}

func agentKind() kind {
	k := containerKind(planner.KindAgent, agentRows())
	k.needs = func(a planner.Address) []planner.Address {
		inv := a.Invocation()
		return []planner.Address{planner.AddrShim, inv.With(planner.PartNetwork), inv.With(planner.PartProxy)}
	}
	return k
}
