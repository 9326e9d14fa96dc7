package egress

import (
	"fmt"
	"strings"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// statusOf is the one answer to each reason.
func statusOf(r reason.Reason) (code int, phrase string) {
	switch r {
	case reason.NotConnect:
		return 405, "Method Not Allowed"
	case reason.HeadTooSlow:
		return 408, "Request Timeout"
	case reason.HeadTooLarge:
		return 431, "Request Header Fields Too Large"
	case reason.BadVersion:
		return 505, "HTTP Version Not Supported"
	case reason.NotHTTP, reason.BadRequestLine, reason.BadHeader, reason.HasBody, reason.EarlyData, reason.HeadIncomplete,
		reason.HostMissing, reason.HostTwice, reason.HostDiffers, reason.BadTarget, reason.BadPort:
		return 400, "Bad Request"
	case reason.TooManyPerSecond:
		return 429, "Too Many Requests"
	case reason.TooManyTunnels:
		return 503, "Service Unavailable"
	case reason.LookupFailed, reason.NoAddress, reason.DialFailed:
		return 502, "Bad Gateway"
	}
	return 403, "Forbidden"
}

// passing are refusals that another try may not get.
func passing(r reason.Reason) bool {
	code, _ := statusOf(r)
	return code == 429 || code == 502 || code == 503
}

// refusal is what the agent reads. Who is refused for the number of its tunnels reads the number, and where another
// one can be declared: the request was never looked at, so that the hosts are no part of it.
func (c *Config) refusal(r reason.Reason, target string, allowed []string) string {
	var what string
	var limit int
	switch r {
	case reason.TooManyTunnels:
		what, limit = "limits.tunnels", c.Limits.Tunnels
	case reason.TooManyPerSecond:
		what, limit = "limits.tunnels_per_second", c.Limits.TunnelsPerSecond
	default:
		return refusalText(r, target, c.Declaration, allowed)
	}
	return refusalText(r, target, c.Declaration, allowed) + fmt.Sprintf("The rule is %s of %s, which allows %d. "+
		"Only whoever changes it in the sandplan configuration can raise it.\n", what, c.Invocation, limit)
}

// refusalText is what the agent reads. On a bare 403 agents look for a way round, so it says which
// rule it was, where that stands, and that there is no other way.
func refusalText(r reason.Reason, target, declaration string, allowed []string) string {
	if target == "" {
		target = "the request"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "sandplan refused %s: %s (%s).\n", target, r.Text(), r)
	if passing(r) {
		b.WriteString("This may pass: try again later, a few times at most.\n")
		return b.String()
	}
	fmt.Fprintf(&b, "The rule is %s, which allows: %s.\n", declaration, strings.Join(allowed, ", "))
	fmt.Fprintf(&b, "Do not retry, and do not look for another way: this sandbox has none. "+
		"Only whoever changes %s in the sandplan configuration can open one.\n", declaration)
	return b.String()
}

// response is a complete HTTP response. The reason stands in the status line too: many clients show
// nothing else of a proxy's answer.
func response(r reason.Reason, body string) []byte {
	code, phrase := statusOf(r)
	hint := ""
	if !passing(r) {
		hint = ", do not retry"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s (sandplan: %s%s)\r\n", code, phrase, r, hint)
	if code == 405 {
		b.WriteString("Allow: CONNECT\r\n")
	}
	fmt.Fprintf(&b, "Content-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"+
		"Connection: close\r\nX-Sandplan-Reason: %s\r\n\r\n%s", len(body), r, body)
	return []byte(b.String())
}

// established opens a tunnel.
const established = "HTTP/1.1 200 Connection Established\r\n\r\n"

// tlsAlert is a fatal access_denied. A TLS client shows it at once; without it many see an end of the
// stream, take it for trouble on the network, and try again.
var tlsAlert = []byte{21, 3, 3, 0, 2, 2, 49}
