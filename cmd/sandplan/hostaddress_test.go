package main

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/hclspec"
)

func TestHostAddresses(t *testing.T) {
	ip := func(text string) net.Addr { return &net.IPNet{IP: net.ParseIP(text), Mask: net.CIDRMask(24, 32)} }
	all := []net.Addr{ip("127.0.0.1"), ip("10.0.0.7"), ip("169.254.3.4"), ip("2001:db8::7"), ip("fe80::1"), &net.UnixAddr{Name: "x"}}
	a := newTestApp(t).app
	a.interfaces = func() ([]net.Addr, error) { return all, nil }
	for _, c := range []struct {
		reason string
		got    func() ([]string, error)
		want   []string
	}{
		{"an address of one link needs that link to be named", a.hostAddresses, []string{"10.0.0.7", "2001:db8::7"}},
		{"a probe knows its links", a.everyHostAddress, []string{"10.0.0.7", "169.254.3.4", "2001:db8::7", "fe80::1"}},
	} {
		if got, err := c.got(); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v", c.reason, got, err)
		}
	}
}

// TestUnknownHostAddresses: a proof that knows no address of the host would try none and hold.
func TestUnknownHostAddresses(t *testing.T) {
	a := newTestApp(t).app
	a.interfaces = func() ([]net.Addr, error) { return nil, errors.New("netlink: no buffer space") }
	for _, f := range []func() ([]string, error){a.hostAddresses, a.everyHostAddress} {
		if got, err := f(); err == nil || !strings.Contains(err.Error(), "no buffer space") || got != nil {
			t.Errorf("an error of the kernel passes for a host without addresses: %v, %v", got, err)
		}
	}
	_, err := a.params(interrupts{}, a.ui(), runFlags{}, &hclspec.Spec{}, nil, hclspec.Invocation{}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "no buffer space") {
		t.Errorf("a run goes on without the addresses of its host: %v", err)
	}
}
