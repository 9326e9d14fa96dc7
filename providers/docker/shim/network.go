//go:build linux

package shim

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// proveNetwork compares interfaces, addresses and routes, tries every way out, and looks at who
// answered: whatever a filter on the host lets through or drops, a packet leaves only through a
// neighbour that has answered.
func proveNetwork(cfg *Config, ch wire.Challenge, p *proof) checks {
	var c checks
	links, err := readLinks()
	if err != nil {
		c.fail("net.interfaces", err)
		return c
	}
	p.links = links
	for _, l := range links {
		for _, a := range l.addresses {
			p.report.Addresses = append(p.report.Addresses, wire.Address{Interface: l.name, Prefix: a.String()})
		}
	}
	c.add("net.interfaces", wrongLinks(links, cfg.Network) == "", "%s", wrongLinks(links, cfg.Network))
	routes, err := readRoutes(links)
	if err != nil {
		c.fail("net.routes", err)
	} else {
		for _, r := range routes {
			p.report.Routes = append(p.report.Routes, r.report())
		}
		wrong := wrongRoutes(routes, cfg.Network)
		c.add("net.routes", len(wrong) == 0, "%s", strings.Join(wrong, "; "))
	}
	var ways, proxy checks
	var wg sync.WaitGroup
	wg.Go(func() { ways = proveNoWayOut(cfg.Network, ch.HostAddresses, links) })
	wg.Go(func() { proxy = proveProxy(cfg.Network) })
	wg.Wait()
	c = append(append(c, ways...), proxy...)
	neighbours, err := readNeighbours(links)
	if err != nil {
		c.fail("net.neighbours", err)
		return c
	}
	for _, n := range neighbours {
		p.report.Neighbours = append(p.report.Neighbours, n.report())
	}
	wrong := wrongNeighbours(neighbours, cfg.Network)
	c.add("net.neighbours", len(wrong) == 0, "%s", strings.Join(wrong, "; "))
	return c
}

// wrongLinks says what is not as declared about the interfaces: lo, and for an agent one more with
// exactly its address.
func wrongLinks(links []link, n *Network) string {
	var others []string
	for _, l := range links {
		if l.name == "lo" {
			for _, a := range l.addresses {
				if !a.Addr().IsLoopback() {
					return fmt.Sprintf("lo has the address %s", a)
				}
			}
			continue
		}
		others = append(others, fmt.Sprintf("%s %v", l.name, l.addresses))
	}
	if n == nil {
		if len(others) > 0 {
			return fmt.Sprintf("there is %s, declared no network", strings.Join(others, ", "))
		}
		return ""
	}
	i := slices.IndexFunc(links, func(l link) bool { return l.name != "lo" })
	if len(others) != 1 || len(links[i].addresses) != 1 || links[i].addresses[0].String() != n.Address {
		return fmt.Sprintf("there is %s, declared one with %s", strings.Join(others, ", "), n.Address)
	}
	return ""
}

// wrongRoutes lists the routes that are not declared. A default route may be there: Docker 20.10 makes
// one to the first address of an internal network. It must lead to nobody, which the neighbours show.
func wrongRoutes(routes []route, n *Network) []string {
	var wrong []string
	for _, r := range routes {
		if r.dest.Addr().IsLoopback() && r.link == "lo" {
			continue
		}
		if n != nil {
			own := netip.MustParsePrefix(n.Address).Masked()
			proxy := netip.MustParseAddrPort(n.Proxy).Addr()
			connected := r.dest == own && !r.gateway.IsValid()
			dead := r.dest.Bits() == 0 && own.Contains(r.gateway) && r.gateway != proxy
			if connected || dead {
				continue
			}
		}
		text := r.dest.String()
		if r.gateway.IsValid() {
			text += " via " + r.gateway.String()
		}
		wrong = append(wrong, fmt.Sprintf("route %s on %s is not declared", text, r.link))
	}
	return wrong
}

// wrongNeighbours lists those that answered, the proxy apart.
func wrongNeighbours(neighbours []neighbour, n *Network) []string {
	var wrong []string
	for _, nb := range neighbours {
		if n != nil && nb.addr == netip.MustParseAddrPort(n.Proxy).Addr() {
			continue
		}
		if nb.answers() {
			// Stale is also who was heard without having been asked.
			wrong = append(wrong, fmt.Sprintf("%s answers on %s with %s (%s)", nb.addr, nb.link, nb.mac, nb.report().State))
		}
	}
	return wrong
}
