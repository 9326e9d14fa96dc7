package main

import (
	"fmt"
	"net"
)

// hostAddresses are the addresses that must not answer from inside a sandbox. A host whose addresses nobody can
// tell is no host to start an agent on: the proof would leave out what it is for.
func (a *app) hostAddresses() ([]string, error) {
	return a.addressesWhere(func(ip net.IP) bool { return !ip.IsLinkLocalUnicast() })
}

// everyHostAddress is hostAddresses, with those that hold on one link.
func (a *app) everyHostAddress() ([]string, error) {
	return a.addressesWhere(func(net.IP) bool { return true })
}

func (a *app) addressesWhere(counts func(net.IP) bool) ([]string, error) {
	addrs, err := a.interfaces()
	if err != nil {
		return nil, fmt.Errorf("the kernel does not tell the addresses of this host, which a sandbox must not reach, so nothing can be proven: %w", err)
	}
	var out []string
	for _, addr := range addrs {
		if n, ok := addr.(*net.IPNet); ok && !n.IP.IsLoopback() && counts(n.IP) {
			out = append(out, n.IP.String())
		}
	}
	return out, nil
}
