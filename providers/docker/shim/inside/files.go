package inside

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// ResolvConf returns the servers that a resolv.conf names, and what besides them could lead a lookup elsewhere.
func ResolvConf(text string) (servers, wrong []string) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || f[0][0] == '#' || f[0][0] == ';':
		case f[0] == "nameserver" && len(f) > 1:
			servers = append(servers, f[1])
		case f[0] == "options":
		case f[0] == "search" && (len(f) == 1 || len(f) == 2 && f[1] == "."): // none
		default:
			wrong = append(wrong, fmt.Sprintf("line %q is not declared", strings.TrimSpace(line)))
		}
	}
	return servers, wrong
}

// Nameservers says what is wrong with a resolv.conf that must name these servers, in this order, and nothing else.
func Nameservers(text string, declared []string) (wrong []string) {
	servers, wrong := ResolvConf(text)
	if !slices.Equal(servers, declared) {
		wrong = append(wrong, fmt.Sprintf("name servers are %v, declared %v", servers, declared))
	}
	return wrong
}

// engineNames are what engines write into every hosts file: fe00::0 and ff00::0 until 26.1, fe00:: and ff00:: in 28.5.
var engineNames = map[netip.Addr][]string{
	netip.MustParseAddr("127.0.0.1"): {"localhost"},
	netip.MustParseAddr("::1"):       {"localhost", "ip6-localhost", "ip6-loopback"},
	netip.MustParseAddr("fe00::"):    {"ip6-localnet"},
	netip.MustParseAddr("ff00::"):    {"ip6-mcastprefix"},
	netip.MustParseAddr("ff02::1"):   {"ip6-allnodes"},
	netip.MustParseAddr("ff02::2"):   {"ip6-allrouters"},
}

// Hosts returns the lines of a hosts file that no engine writes by itself: besides those of every container
// it has one with the hostname for each address of the container's own, in any order.
func Hosts(text, hostname string, own ...netip.Addr) (wrong []string) {
	for line := range strings.Lines(text) {
		said, _, _ := strings.Cut(line, "#")
		f := strings.Fields(said)
		if len(f) == 0 {
			continue
		}
		a, err := netip.ParseAddr(f[0])
		names := engineNames[a]
		if slices.Contains(own, a) {
			names = []string{hostname}
		}
		undeclared := func(name string) bool { return !slices.Contains(names, name) }
		if err != nil || len(names) == 0 || slices.ContainsFunc(f[1:], undeclared) {
			wrong = append(wrong, fmt.Sprintf("line %q is not declared", strings.TrimSpace(line)))
		}
	}
	return wrong
}
