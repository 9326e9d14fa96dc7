// Package head reads the head of an HTTP request as strictly as RFC 9112 allows, and gives one defined
// answer to everything else. Nothing is repaired: two programs that repair differently see two
// requests in the same bytes, and that is what smuggling is.
package head

import (
	"bytes"
	"strings"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// Request is what a proxy needs to know of a request.
type Request struct {
	Method string
	Target string
}

// maxFields bounds the header fields; a CONNECT has four or five.
const maxFields = 64

// notAuthority is what no HOST:PORT has (RFC 9112, 3.2.3), and what makes a parser of URLs read a user, a
// path or an encoded host: for it a.example:4@b is for b.
const notAuthority = `@/?#\%`

var end = []byte("\r\n\r\n")

// Scan looks at what has come of a request so far: n is the length of its head once it is complete,
// else 0, and a reason says that no continuation can make it a request. from is how much of b an
// earlier call has seen, so that a head that comes byte by byte is not looked at over and over.
func Scan(b []byte, from int) (n int, why reason.Reason) {
	for i := from; i < len(b); i++ {
		c := b[i]
		switch {
		case c == '\n':
			if i == 0 || b[i-1] != '\r' {
				return 0, reason.BadHeader
			}
			if bytes.HasSuffix(b[:i+1], end) {
				return i + 1, reason.None
			}
		case i > 0 && b[i-1] == '\r':
			return 0, reason.BadHeader // a carriage return that ends no line
		case c != '\r' && c != '\t' && (c < 0x20 || c == 0x7f):
			return 0, reason.NotHTTP // NUL, control characters, a TLS record
		}
	}
	return 0, reason.None
}

// Begin reads what a request begins with, however much of it has come and whatever is wrong behind that: its method
// when a blank stands behind it, and its target when that is whole.
func Begin(b []byte) (r Request) {
	line, _, ended := strings.Cut(strings.ReplaceAll(string(b), "\n", "\r"), "\r")
	words := strings.SplitN(line, " ", 3)
	if len(words) < 2 || !isToken(words[0]) {
		return r
	}
	r.Method = words[0]
	if (len(words) == 3 || ended) && isVisible(words[1]) {
		r.Target = words[1]
	}
	return r
}

// Parse reads a complete head, as long as Scan said. The method is looked at before anything else, so
// that whatever is no CONNECT is told so.
func Parse(b []byte) (Request, reason.Reason) {
	if n, why := Scan(b, 0); why != reason.None {
		return Request{}, why
	} else if n != len(b) || n == 0 {
		return Request{}, reason.HeadIncomplete
	}
	lines := strings.Split(strings.TrimSuffix(string(b), string(end)), "\r\n")
	r, version, why := parseRequestLine(lines[0])
	if why != reason.None {
		return r, why
	}
	if len(lines)-1 > maxFields {
		return r, reason.HeadTooLarge
	}
	if why := checkFields(lines[1:], r.Target, version); why != reason.None {
		return r, why
	}
	if strings.ContainsAny(r.Target, notAuthority) {
		return r, reason.BadTarget
	}
	return r, reason.None
}

func parseRequestLine(line string) (r Request, version string, why reason.Reason) {
	if method, _, ok := strings.Cut(line, " "); ok && isToken(method) && method != "CONNECT" {
		return Begin([]byte(line)), "", reason.NotConnect
	}
	parts := strings.Split(line, " ")
	if len(parts) != 3 || !isToken(parts[0]) || !isVisible(parts[1]) {
		return Request{}, "", reason.BadRequestLine
	}
	r = Request{Method: parts[0], Target: parts[1]}
	if parts[2] != "HTTP/1.1" && parts[2] != "HTTP/1.0" {
		return r, "", reason.BadVersion
	}
	return r, parts[2], reason.None
}

// checkFields refuses what could give the request a body, and a Host that says something else than
// the target; all other fields mean nothing here.
func checkFields(lines []string, target, version string) reason.Reason {
	hosts := 0
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		// A folded line begins with a blank, and a blank before the colon hides a field from some parsers:
		// neither is a token.
		if !ok || !isToken(name) || !isValue(value) {
			return reason.BadHeader
		}
		value = strings.Trim(value, " \t")
		switch strings.ToLower(name) {
		case "host":
			if hosts++; hosts > 1 {
				return reason.HostTwice
			}
			if !sameHost(value, target) {
				return reason.HostDiffers
			}
		case "content-length":
			if value != "0" {
				return reason.HasBody
			}
		case "transfer-encoding":
			return reason.HasBody
		}
	}
	if hosts == 0 && version == "HTTP/1.1" {
		return reason.HostMissing
	}
	return reason.None
}

// sameHost: Host repeats the target; Node leaves out the port where it is a scheme's own, that of https or of http.
func sameHost(host, target string) bool {
	name, port, _ := strings.Cut(target, ":")
	return host == target || host == name && (port == "443" || port == "80")
}

// isToken: what RFC 9110 allows in a method or a field's name.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return s != ""
}

func isValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '\t' && (c < 0x20 || c == 0x7f) {
			return false
		}
	}
	return true
}
