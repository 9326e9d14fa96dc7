package main

import (
	"errors"
	"net/netip"
	"os"
	"strings"
)

// resolvConfs are where name servers are listed. The second is where systemd-resolved keeps the real
// ones when the first names only its own loopback address.
var resolvConfs = [...]string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"}

// hostNameservers are the host's name servers that a container can reach: none on a loopback address,
// which inside a container is the container itself.
func hostNameservers() ([]netip.Addr, error) {
	for _, path := range resolvConfs {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if found := nameservers(string(text)); len(found) > 0 {
			return found, nil
		}
	}
	return nil, errors.New(`no name server was found that a proxy could use: /etc/resolv.conf names none, or only loopback addresses; ` +
		`set dns = ["…"] in the provider "docker" block, or give every host fixed addresses`)
}

func nameservers(text string) []netip.Addr {
	var out []netip.Addr
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		// A zone (fe80::1%eth0) means an interface of the host, which the proxy does not have.
		if a, err := netip.ParseAddr(words[1]); err == nil && a.Zone() == "" && !a.IsLoopback() && !a.IsUnspecified() {
			out = append(out, a.Unmap())
		}
	}
	return out
}
