package inside

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// Proxy is what a proxy must find in its container, and nothing besides.
type Proxy struct {
	Listen   string // address and port
	Hostname string
	UID, GID int
	// Addresses are its own, each on an interface of its own, with the length of the network's prefix.
	Addresses []string
	// Gateway is where the one default route leads, in one of those networks.
	Gateway string
	// Nameservers are those that resolv.conf must name, and the only ones.
	Nameservers []string
	// Sysctls are settings below /proc/sys, by their dotted names.
	Sysctls map[string]string
}

// Checks are all that a proxy makes: of its process, of its settings, and of what its ready line says.
func (p Proxy) Checks(st Status, sysctls map[string]string, r wire.Ready) []wire.Check {
	f := findings(st.Checks(p.UID, p.GID))
	for _, name := range slices.Sorted(maps.Keys(p.Sysctls)) {
		f.add("sysctl."+name, sysctls[name] == p.Sysctls[name], "%s, declared %s", sysctls[name], p.Sysctls[name])
	}
	return append(f, p.compare(r)...)
}

// Judge returns what is wrong with a ready line. What it says is compared again: the proxy has been told by its
// command line what is declared, and this by the declaration. For what it does not say its own checks stand,
// and all of them must be there.
func (p Proxy) Judge(r wire.Ready) []wire.Check {
	wrong := r.Failed()
	has := func(list []wire.Check, name string) bool {
		return slices.ContainsFunc(list, func(c wire.Check) bool { return c.Name == name })
	}
	for _, c := range p.compare(r) {
		if !c.OK && !has(wrong, c.Name) {
			wrong = append(wrong, c)
		}
	}
	for _, c := range p.Checks(Status{}, nil, wire.Ready{}) {
		if !has(r.Checks, c.Name) {
			wrong = append(wrong, wire.Check{Name: c.Name, Detail: "the ready line lacks this check"})
		}
	}
	return wrong
}

// compare holds what a ready line says against the declaration.
func (p Proxy) compare(r wire.Ready) []wire.Check {
	var f findings
	f.add("net.listen", r.Listen == p.Listen, "it listens on %q, declared %s", r.Listen, p.Listen)
	f.wrong("net.addresses", p.wrongAddresses(r.Addresses))
	f.wrong("net.routes", p.wrongRoutes(r))
	f.wrong("dns.resolv_conf", Nameservers(r.ResolvConf, p.Nameservers))
	var own []netip.Addr
	for _, a := range p.Addresses {
		if prefix, err := netip.ParsePrefix(a); err == nil {
			own = append(own, prefix.Addr())
		}
	}
	f.wrong("dns.hosts", Hosts(r.Hosts, p.Hostname, own...))
	return f
}

// wrongAddresses says which addresses are not declared, and which are missing. Interfaces come in any order:
// 28.5 puts the uplink second, the others first.
func (p Proxy) wrongAddresses(found []wire.Address) (wrong []string) {
	left, taken := slices.Clone(p.Addresses), map[string]bool{}
	for _, a := range found {
		if prefix, err := netip.ParsePrefix(a.Prefix); a.Interface == "lo" && err == nil && prefix.Addr().IsLoopback() {
			continue
		}
		i := slices.Index(left, a.Prefix)
		if i < 0 || a.Interface == "lo" || taken[a.Interface] {
			wrong = append(wrong, fmt.Sprintf("%s has the address %q", a.Interface, a.Prefix))
			continue
		}
		left, taken[a.Interface] = slices.Delete(left, i, i+1), true
	}
	for _, a := range left {
		wrong = append(wrong, "no interface has "+a)
	}
	if len(wrong) > 0 || len(p.Addresses) == 0 {
		wrong = append(wrong, fmt.Sprintf("declared is one interface for each of [%s]", strings.Join(p.Addresses, " ")))
	}
	return wrong
}

// wrongRoutes says which routes are not declared, and which are missing: there is one to each network that the
// proxy is on, and the default route by the gateway.
func (p Proxy) wrongRoutes(r wire.Ready) (wrong []string) {
	left := p.routes(r.Addresses)
	for _, got := range r.Routes {
		if i := slices.Index(left, got); i >= 0 {
			left = slices.Delete(left, i, i+1)
			continue
		}
		wrong = append(wrong, routeText(got)+" is not declared")
	}
	for _, lost := range left {
		wrong = append(wrong, routeText(lost)+" is declared and missing")
	}
	return wrong
}

// routes are those that are declared, on the interfaces that have the addresses.
func (p Proxy) routes(found []wire.Address) (out []wire.Route) {
	gateway, _ := netip.ParseAddr(p.Gateway)
	for _, text := range p.Addresses {
		own, err := netip.ParsePrefix(text)
		if err != nil {
			continue
		}
		link := ""
		if i := slices.IndexFunc(found, func(a wire.Address) bool { return a.Prefix == text }); i >= 0 {
			link = found[i].Interface
		}
		out = append(out, wire.Route{Interface: link, Dest: own.Masked().String()})
		if own.Contains(gateway) {
			out = append(out, wire.Route{Interface: link, Dest: "0.0.0.0/0", Gateway: p.Gateway})
		}
	}
	return out
}

func routeText(r wire.Route) string {
	text := "route " + r.Dest
	if r.Gateway != "" {
		text += " via " + r.Gateway
	}
	return text + " on " + r.Interface
}
