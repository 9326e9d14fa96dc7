// Package addrclass says whether an address is a public one. Everything is refused that a name must
// not lead a proxy to: the machine itself, its networks, its cloud's metadata, and every range that
// the IANA special-purpose registries set apart, whether they call it globally reachable or not.
package addrclass

import (
	"net/netip"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

type block struct {
	prefix netip.Prefix
	reason reason.Reason
}

// blocks returns the table; the first that contains an address says what it is. IPv4 is the IANA IPv4
// Special-Purpose Address Registry, IPv6 its counterpart, both with what clouds use for metadata in
// front: some of that lies in ranges that are public otherwise.
func blocks(v6 bool) []block {
	if v6 {
		return ipv6
	}
	return ipv4
}

var ipv4 = []block{
	{netip.MustParsePrefix("169.254.169.254/32"), reason.Metadata}, // AWS, Azure, Google, OpenStack, …
	{netip.MustParsePrefix("169.254.170.2/32"), reason.Metadata},   // AWS ECS credentials
	{netip.MustParsePrefix("169.254.170.23/32"), reason.Metadata},  // AWS EKS credentials
	{netip.MustParsePrefix("168.63.129.16/32"), reason.Metadata},   // Azure's host; public by its number
	{netip.MustParsePrefix("100.100.100.200/32"), reason.Metadata}, // Alibaba
	{netip.MustParsePrefix("192.0.0.192/32"), reason.Metadata},     // Oracle
	{netip.MustParsePrefix("0.0.0.0/8"), reason.Unspecified},       // "this network"; Linux takes 0.0.0.0 for itself
	{netip.MustParsePrefix("10.0.0.0/8"), reason.Private},
	{netip.MustParsePrefix("100.64.0.0/10"), reason.CGNAT},
	{netip.MustParsePrefix("127.0.0.0/8"), reason.Loopback},
	{netip.MustParsePrefix("169.254.0.0/16"), reason.LinkLocal},
	{netip.MustParsePrefix("172.16.0.0/12"), reason.Private},
	{netip.MustParsePrefix("192.0.0.0/24"), reason.Reserved},
	{netip.MustParsePrefix("192.0.2.0/24"), reason.Documentation},
	{netip.MustParsePrefix("192.31.196.0/24"), reason.Reserved}, // AS112
	{netip.MustParsePrefix("192.52.193.0/24"), reason.Reserved}, // AMT
	{netip.MustParsePrefix("192.88.99.0/24"), reason.SixToFour}, // relays
	{netip.MustParsePrefix("192.168.0.0/16"), reason.Private},
	{netip.MustParsePrefix("192.175.48.0/24"), reason.Reserved}, // AS112
	{netip.MustParsePrefix("198.18.0.0/15"), reason.Benchmarking},
	{netip.MustParsePrefix("198.51.100.0/24"), reason.Documentation},
	{netip.MustParsePrefix("203.0.113.0/24"), reason.Documentation},
	{netip.MustParsePrefix("224.0.0.0/4"), reason.Multicast},
	{netip.MustParsePrefix("255.255.255.255/32"), reason.Broadcast},
	{netip.MustParsePrefix("240.0.0.0/4"), reason.Reserved},
}

var ipv6 = []block{
	{netip.MustParsePrefix("fd00:ec2::/32"), reason.Metadata},       // AWS
	{netip.MustParsePrefix("fd20:ce::254/128"), reason.Metadata},    // Google
	{netip.MustParsePrefix("fd00:42::42/128"), reason.Metadata},     // Scaleway
	{netip.MustParsePrefix("fe80::a9fe:a9fe/128"), reason.Metadata}, // OpenStack
	{netip.MustParsePrefix("::/128"), reason.Unspecified},
	{netip.MustParsePrefix("::1/128"), reason.Loopback},
	{netip.MustParsePrefix("::ffff:0:0/96"), reason.Mapped},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), reason.Mapped}, // IPv4-translated, RFC 2765
	{netip.MustParsePrefix("::/96"), reason.Mapped},           // IPv4-compatible, deprecated
	{netip.MustParsePrefix("64:ff9b::/96"), reason.NAT64},
	{netip.MustParsePrefix("64:ff9b:1::/48"), reason.NAT64},
	{netip.MustParsePrefix("100::/64"), reason.Reserved},       // discard
	{netip.MustParsePrefix("100:0:0:1::/64"), reason.Reserved}, // dummy
	{netip.MustParsePrefix("2001::/32"), reason.Teredo},
	{netip.MustParsePrefix("2001:2::/48"), reason.Benchmarking},
	{netip.MustParsePrefix("2001:db8::/32"), reason.Documentation},
	{netip.MustParsePrefix("2001::/23"), reason.Reserved}, // IETF protocol assignments, ORCHID among them
	{netip.MustParsePrefix("2002::/16"), reason.SixToFour},
	{netip.MustParsePrefix("2620:4f:8000::/48"), reason.Reserved}, // AS112
	{netip.MustParsePrefix("3fff::/20"), reason.Documentation},
	{netip.MustParsePrefix("5f00::/16"), reason.Reserved}, // segment routing
	{netip.MustParsePrefix("fc00::/7"), reason.Private},
	{netip.MustParsePrefix("fe80::/10"), reason.LinkLocal},
	{netip.MustParsePrefix("fec0::/10"), reason.Private}, // site-local, deprecated
	{netip.MustParsePrefix("ff00::/8"), reason.Multicast},
}

// globalUnicast is all of IPv6 that has been given out.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// Classifier knows the networks of the proxy besides what is in the registries.
type Classifier struct {
	// Own are the networks that the proxy is on: its own addresses and its neighbours'. A private network
	// that uses public numbers is not reachable by name either.
	Own []netip.Prefix
}

// Check is reason.None for a public address, else what it is instead.
func (c Classifier) Check(a netip.Addr) reason.Reason {
	if !a.IsValid() {
		return reason.Unspecified
	}
	if a.Zone() != "" { // only link-local addresses have one, and a prefix contains none that has
		return reason.LinkLocal
	}
	for _, p := range c.Own {
		if p.Contains(a) || p.Contains(a.Unmap()) {
			return reason.OwnNetwork
		}
	}
	for _, b := range blocks(a.Is6()) {
		if b.prefix.Contains(a) {
			return b.reason
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return reason.Reserved
	}
	return reason.None
}
