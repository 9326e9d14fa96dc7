package docker

import (
	"fmt"
	"net/netip"
	"sort"

	"github.com/vishvananda/netlink"

	"github.com/sandplan/sandplan/planner"
)

// taken are the addresses that subnets of the scope must stay clear of: the engine's other networks,
// and this machine's routes in every table (a VPN keeps its own in one that "ip route" does not show).
func (l *look) taken() ([]planner.Taken, error) {
	var out []planner.Taken
	// The route of a network's bridge would make a scope's own uplink look taken, and others' twice.
	engines := map[string]bool{"docker0": true}
	for _, v := range l.listed[listNetworks] {
		engines[bridgeOf(v)] = true
		if l.refs[treeID(v)] != "" {
			continue
		}
		for _, p := range subnetsOf(v) {
			out = append(out, planner.Taken{Prefix: p, By: fmt.Sprintf("network %q", treeName(v))})
		}
	}
	onHost, err := hostRoutes(l.engine.options.Kernel, engines)
	if err != nil {
		return nil, err
	}
	out = append(out, onHost...)
	sort.SliceStable(out, func(i, j int) bool {
		if c := out[i].Prefix.Addr().Compare(out[j].Prefix.Addr()); c != 0 {
			return c < 0
		}
		if out[i].Prefix.Bits() != out[j].Prefix.Bits() {
			return out[i].Prefix.Bits() < out[j].Prefix.Bits()
		}
		return out[i].By < out[j].By
	})
	return out, nil
}

// bridgeOf is the interface of a network: named by an option, or by the engine after the ID.
func bridgeOf(v tree) string {
	if name, _ := lookup(v, mustParsePath(pathBridge)).(string); name != "" {
		return name
	}
	return "br-" + shortID(treeID(v))
}

func subnetsOf(v tree) []netip.Prefix {
	var out []netip.Prefix
	ipam, _ := v["IPAM"].(map[string]any)
	configs, _ := ipam["Config"].([]any)
	for _, c := range configs {
		config, _ := c.(map[string]any)
		s, _ := config["Subnet"].(string)
		if p, err := netip.ParsePrefix(s); err == nil && p.Addr().Is4() {
			out = append(out, p.Masked())
		}
	}
	return out
}

// mainTable is the routing table that "ip route" shows.
const mainTable = 254

// hostRoutes are the IPv4 routes of all tables, without default routes and those of the given bridges.
func hostRoutes(kernel Kernel, bridges map[string]bool) ([]planner.Taken, error) {
	all, err := kernel.Routes()
	if err != nil {
		return nil, err
	}
	interfaces, err := kernel.Links()
	if err != nil {
		return nil, err
	}
	names := map[int]string{}
	for _, link := range interfaces {
		names[link.Attrs().Index] = link.Attrs().Name
	}
	seen := map[planner.Taken]bool{}
	var out []planner.Taken
	for _, r := range all {
		t, ok := takenBy(r, names[r.LinkIndex])
		if !ok || bridges[names[r.LinkIndex]] || seen[t] {
			continue
		}
		seen[t] = true
		out = append(out, t)
	}
	return out, nil
}

func takenBy(r netlink.Route, dev string) (planner.Taken, bool) {
	if r.Dst == nil {
		return planner.Taken{}, false
	}
	ip, ok := netip.AddrFromSlice(r.Dst.IP)
	bits, _ := r.Dst.Mask.Size()
	// Halves of the whole address space are how VPNs write a default route.
	if !ok || bits <= 1 || ip.Unmap().IsMulticast() {
		return planner.Taken{}, false
	}
	p := netip.PrefixFrom(ip.Unmap(), bits).Masked()
	by := fmt.Sprintf("the route %s", p)
	if dev != "" {
		by += " dev " + dev
	}
	if r.Table != mainTable {
		by += fmt.Sprintf(" table %d", r.Table)
	}
	return planner.Taken{Prefix: p, By: by}, true
}
