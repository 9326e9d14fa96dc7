package hclspec

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

var (
	hostLabel  = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$`)
	numberLike = regexp.MustCompile(`^(?:0x[0-9a-f]*|[0-9]+)$`)
)

// checkHostname accepts a host name in the one form that the proxy compares: lower-case ASCII, at least
// two labels, no trailing dot. Whatever some resolver or URL parser reads as another name or as an
// address is refused.
func checkHostname(s string) error {
	const allowed = `write it as in "api.example.com"`
	if s == "" {
		return errors.New("the host name is empty; " + allowed)
	}
	switch {
	case len(s) > 253:
		return errors.New("a host name has at most 253 characters")
	case strings.Contains(s, "://") || strings.ContainsAny(s, "/@?#"):
		return fmt.Errorf("%q is a URL; only the host name belongs here, %s", clip(s), allowed)
	case strings.Contains(s, "*"):
		return fmt.Errorf("%q has a wildcard; every host is named by itself", s)
	}
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return fmt.Errorf("%q is an address; name the host, and give the address in its addresses attribute", s)
	}
	if i := strings.IndexByte(s, ':'); i >= 0 {
		return fmt.Errorf("%q has a port; use the port attribute of the host block", clip(s))
	}
	for _, r := range s {
		if r > 0x7f {
			return fmt.Errorf("%q has letters outside ASCII, which can look like others; only ASCII names are allowed", s)
		}
	}
	if strings.HasSuffix(s, ".") {
		return fmt.Errorf("%q ends in a dot; did you mean %q?", s, strings.ToLower(strings.TrimRight(s, ".")))
	}
	if l := strings.ToLower(s); l != s {
		return fmt.Errorf("%q has upper-case letters; did you mean %q?", s, l)
	}
	return checkLabels(s, allowed)
}

func checkLabels(s, allowed string) error {
	labels := strings.Split(s, ".")
	if len(labels) < 2 {
		return fmt.Errorf("%q has one label, which means a different machine everywhere; %s", s, allowed)
	}
	for _, l := range labels {
		switch {
		case !hostLabel.MatchString(l):
			return fmt.Errorf("%q is not a host name: between dots stand 1 to 63 letters, digits and hyphens, a hyphen not first or last; %s", s, allowed)
		case strings.HasPrefix(l, "xn--"):
			return fmt.Errorf("%q is an encoded international name, which can look like another; only plain ASCII names are allowed", s)
		}
	}
	if numberLike.MatchString(labels[len(labels)-1]) {
		return fmt.Errorf("%q ends in a number, which many programs read as an address; %s", s, allowed)
	}
	return nil
}
