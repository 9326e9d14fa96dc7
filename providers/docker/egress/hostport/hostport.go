// Package hostport reads the target of a CONNECT request. There is one spelling of each target, and
// every other is refused: nothing is trimmed, lowered, decoded or completed, so that what is decided
// about, looked up, logged and held against the TLS hello is one and the same string.
package hostport

import (
	"strconv"
	"strings"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// Target is one host and port.
type Target struct {
	Host string // a canonical DNS name: lower case, no final dot, never an address
	Port uint16
}

func (t Target) String() string { return t.Host + ":" + strconv.Itoa(int(t.Port)) }

// maxName and maxLabel are the bounds of RFC 1035, without the final dot.
const (
	maxName  = 253
	maxLabel = 63
)

// Parse reads HOST:PORT.
func Parse(s string) (Target, reason.Reason) {
	// An address in brackets has colons of its own; it is refused as what it is.
	if strings.HasPrefix(s, "[") {
		return Target{}, reason.AddressLiteral
	}
	host, port, ok := strings.Cut(s, ":")
	switch {
	case !ok && host != "":
		return Target{}, reason.BadPort
	case !ok || host == "":
		return Target{}, reason.BadTarget
	case strings.Contains(port, ":"):
		return Target{}, reason.BadTarget
	}
	if r := CheckName(host); r != reason.None {
		return Target{}, r
	}
	n, r := parsePort(port)
	if r != reason.None {
		return Target{}, r
	}
	return Target{Host: host, Port: n}, reason.None
}

// parsePort: no sign, no leading zero, no blank.
func parsePort(s string) (uint16, reason.Reason) {
	if len(s) == 0 || len(s) > 5 || s[0] == '0' {
		return 0, reason.BadPort
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, reason.BadPort
		}
		n = n*10 + int(s[i]-'0')
	}
	if n > 65535 {
		return 0, reason.BadPort
	}
	return uint16(n), reason.None
}

// CheckName says what keeps s from being a canonical name. Declared names are held to it too.
func CheckName(s string) reason.Reason {
	if s == "" || len(s) > maxName+1 {
		return reason.BadTarget
	}
	lowered := strings.ToLower(strings.TrimSuffix(s, "."))
	if len(lowered) > maxName {
		return reason.BadTarget
	}
	labels := strings.Split(lowered, ".")
	for _, l := range labels {
		if !isLabel(l) {
			return reason.BadTarget
		}
	}
	// What inet_aton and the WHATWG's URL parser take for an IPv4 address ends in a number: 127.1,
	// 2130706433, 0x7f.0.0.1, 10.0.0.010. No top-level domain does.
	if isNumber(labels[len(labels)-1]) {
		return reason.AddressLiteral
	}
	// The order matters for what is told: a name that is only written differently deserves to hear so.
	if lowered != s {
		return reason.NotCanonical
	}
	return reason.None
}

// isLabel: letters, digits and hyphens, none of these at an end. An underscore is no letter of a host's
// name, but names with one are resolved and served.
func isLabel(l string) bool {
	if l == "" || len(l) > maxLabel || l[0] == '-' || l[len(l)-1] == '-' {
		return false
	}
	for i := range len(l) {
		c := l[i]
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

func isNumber(l string) bool {
	digits := "0123456789"
	if strings.HasPrefix(l, "0x") {
		l, digits = l[2:], "0123456789abcdef" // "0x" alone is zero to a browser
	}
	return strings.Trim(l, digits) == ""
}

// Shown is what may be told of a target as it was asked for: its host and port. Whatever takes the proxy for one of
// the web sends whole URLs, with passwords, paths and queries that belong in no log. It is for people alone: nothing
// is decided by it.
func Shown(s string) string {
	const behind = `/?#\`
	url := false
	if i := strings.Index(s, "://"); i >= 0 && !strings.ContainsAny(s[:i], behind+"@") {
		s, url = s[i+len("://"):], true
	}
	if i := strings.IndexAny(s, behind); i >= 0 {
		s, url = s[:i], true
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		return s[i+1:]
	}
	// A password that holds a slash and is not encoded looks like a port with a path behind it, and one before an at
	// sign that is encoded like a port.
	if i := strings.LastIndexByte(s, ':'); i >= 0 && url && strings.Trim(s[i+1:], "0123456789") != "" {
		return ""
	}
	return s
}
