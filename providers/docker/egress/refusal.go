package egress

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/sandplan/sandplan/providers/docker/egress/hostport"
	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// refuse answers a request that opens no tunnel.
func (t *tunnel) refuse(ctx context.Context, why reason.Reason, err error) {
	if cutShort(ctx, why) {
		t.decide(Refuse, reason.Stopping, nil)
		return // no answer of this run's would be true of the next one
	}
	t.decide(Refuse, why, err)
	cfg := t.server.cfg
	body := cfg.refusal(why, hostport.Shown(t.raw), t.server.acl.Targets())
	if err := t.client.SetWriteDeadline(t.server.world.now().Add(ms(cfg.Limits.HeadMS))); err != nil {
		return
	}
	if _, err := t.client.Write(response(why, body)); err != nil {
		return
	}
	t.server.drain(t.client)
}

// drop ends a tunnel whose hello was refused. Nothing of it was forwarded. Whatever is wrong with it, who began to
// speak TLS and is still there is told so in TLS.
func (t *tunnel) drop(ctx context.Context, why reason.Reason, err error) {
	if cutShort(ctx, why) {
		t.decide(Refuse, reason.Stopping, nil)
		return
	}
	t.decide(Refuse, why, err)
	if !t.begunTLS || why == reason.HelloMissing {
		return
	}
	// The time of the answer may be over when a hello took all of its own.
	if err := t.client.SetWriteDeadline(t.server.world.now().Add(ms(t.server.cfg.Limits.HeadMS))); err != nil {
		return
	}
	if _, err := t.client.Write(tlsAlert); err == nil {
		t.server.drain(t.client)
	}
}

// noWay tells of a way out that was not found, or not looked for any longer since the agent had reset its connection.
func (t *tunnel) noWay(ctx context.Context, why reason.Reason, err error) {
	torn := t.server.open.torn(t.client)
	if torn != nil && (why == reason.LookupFailed || why == reason.DialFailed) {
		t.gone(ctx, torn)
		return
	}
	t.refuse(ctx, why, err)
}

// gone tells of a tunnel that ended around its answer: whatever was answered stands in the log.
func (t *tunnel) gone(ctx context.Context, err error) { t.drop(ctx, reason.HelloMissing, err) }

// cutShort says that what looks like a fault of the agent's, or of the way out, is the run's end: that closes
// connections and ends lookups and dials wherever they are.
func cutShort(ctx context.Context, why reason.Reason) bool {
	switch why {
	case reason.HeadIncomplete, reason.LookupFailed, reason.DialFailed, reason.HelloMissing:
		return ctx.Err() != nil
	}
	return false
}

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

// refusal is what the agent reads. On a bare 403 agents look for a way round, so it says which rule it was, where
// that stands, and that there is no other way.
func (c *Config) refusal(r reason.Reason, target string, allowed []string) string {
	if target == "" {
		target = "the request"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "sandplan refused %s: %s (%s).\n", target, r.Text(), r)
	limit, allows := c.limitOf(r)
	code, _ := statusOf(r)
	switch {
	case code == 502:
		fmt.Fprintf(&b, "%s allows it; what failed is outside of this sandbox: the host, its name servers, or the way there.\n", c.Declaration)
	case r == reason.LogLimit:
		fmt.Fprintf(&b, "That ends the run of %s.\n", c.Invocation)
	case limit != "":
		fmt.Fprintf(&b, "The rule is %s of %s, which allows %s.\n", limit, c.Invocation, allows)
	default:
		fmt.Fprintf(&b, "The rule is %s, which allows: %s.\n", c.Declaration, strings.Join(allowed, ", "))
	}
	if passing(r) {
		b.WriteString("This may pass: do not retry now, try again later, a few times at most.")
	} else {
		b.WriteString("Do not retry, and do not look for another way: this sandbox has none.")
	}
	switch {
	case limit != "":
		b.WriteString(" Only whoever changes it in the sandplan configuration can raise it.")
	case code != 502 && r != reason.LogLimit: // which nobody declares
		fmt.Fprintf(&b, " Only whoever changes %s in the sandplan configuration can open one.", c.Declaration)
	}
	return b.String() + "\n"
}

// limitOf is the limit of the invocation that a refusal comes from, and what it allows. The hosts are no part of it:
// none that is declared besides would change anything.
func (c *Config) limitOf(r reason.Reason) (name, allows string) {
	switch r {
	case reason.TooManyTunnels:
		return "limits.tunnels", strconv.Itoa(c.Limits.Tunnels)
	case reason.TooManyPerSecond:
		return "limits.tunnels_per_second", strconv.Itoa(c.Limits.TunnelsPerSecond)
	case reason.UploadLimit:
		return "limits.upload", bytesText(c.Limits.UploadBytes)
	case reason.DownloadLimit:
		return "limits.download", bytesText(c.Limits.DownloadBytes)
	}
	return "", ""
}

// bytesText is a number of bytes as a declaration writes it.
func bytesText(n int64) string {
	unit := 0
	for ; n > 0 && n%1024 == 0 && unit < 4; unit++ {
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + [...]string{"B", "KiB", "MiB", "GiB", "TiB"}[unit]
}

// response is a complete HTTP response. The reason stands in the status line too: many clients show
// nothing else of a proxy's answer.
func response(r reason.Reason, body string) []byte {
	code, phrase := statusOf(r)
	hint := "do not retry"
	if passing(r) {
		hint = "do not retry now"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s (sandplan: %s, %s)\r\n", code, phrase, r, hint)
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
