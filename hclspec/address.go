package hclspec

import (
	"fmt"
	"net/netip"

	"github.com/zclconf/go-cty/cty"
)

// privateRanges are those that a pool may lie in (RFC 1918).
var privateRanges = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"),
}

// pool is a private IPv4 prefix: the scope's uplink takes its first /22, each invocation a /29.
var pool = format[netip.Prefix]{summary: InvalidPrefix, want: cty.String, parse: func(v cty.Value) (netip.Prefix, error) {
	return parsePool(v.AsString())
}}

func parsePool(s string) (netip.Prefix, error) {
	const allowed = `write a private IPv4 network, as in "10.213.0.0/16"`
	p, err := netip.ParsePrefix(s)
	if err != nil || !p.Addr().Is4() {
		return p, fmt.Errorf("%q is not an IPv4 network; %s", clip(s), allowed)
	}
	if m := p.Masked(); m != p || m.String() != s {
		return p, fmt.Errorf("%q has bits set behind its length; did you mean %q?", s, m)
	}
	if p.Bits() < 8 || p.Bits() > 21 {
		return p, fmt.Errorf("%q has a length of %d, and 8 to 21 are allowed: the uplink takes a /22, and each invocation a /29", s, p.Bits())
	}
	for _, r := range privateRanges {
		if r.Bits() <= p.Bits() && r.Contains(p.Addr()) {
			return p, nil
		}
	}
	return p, fmt.Errorf("%q is not private: it lies in none of 10.0.0.0/8, 172.16.0.0/12 and 192.168.0.0/16", s)
}

// addresses is a list of IPv4 addresses that a packet can be sent to.
var addresses = format[[]netip.Addr]{summary: InvalidAddress, want: cty.List(cty.String), parse: func(v cty.Value) ([]netip.Addr, error) {
	list, err := stringList(v)
	if err != nil {
		return nil, err
	}
	out := []netip.Addr{}
	seen := map[netip.Addr]bool{}
	for i, s := range list {
		a, err := parseAddress(s)
		if err == nil && seen[a] {
			err = fmt.Errorf("%q is there twice", s)
		}
		if err != nil {
			return nil, cty.IndexIntPath(i).NewError(err)
		}
		seen[a] = true
		out = append(out, a)
	}
	return out, nil
}}

func parseAddress(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	switch {
	case err != nil:
		return a, fmt.Errorf(`%q is not an address; write an IPv4 address, as in "10.1.2.3"`, clip(s))
	case !a.Is4():
		return a, fmt.Errorf("%q is not an IPv4 address, and a sandbox has no IPv6", clip(s))
	case a.IsLoopback():
		return a, fmt.Errorf("%q is a loopback address: inside the proxy that is the proxy itself", s)
	case a.IsUnspecified(), a.IsMulticast(), a.As4()[0] == 0, a.As4()[0] >= 240:
		return a, fmt.Errorf("%q is no single machine's address", s)
	}
	return a, nil
}
