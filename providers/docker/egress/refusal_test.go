package egress

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// TestRefusalNamesTheLimit: whoever reads a refusal knows which number it was, and where it stands.
func TestRefusalNamesTheLimit(t *testing.T) {
	cfg := testConfig()
	cfg.Limits.Tunnels, cfg.Limits.TunnelsPerSecond = 7, 9
	cfg.Limits.UploadBytes, cfg.Limits.DownloadBytes = 64<<20, 1000
	for _, tt := range []struct {
		reason reason.Reason
		want   []string
		not    string
	}{
		{reason.TooManyTunnels, []string{"This may pass: do not retry now", "limits.tunnels of " + cfg.Invocation + ", which allows 7."}, "Do not retry"},
		{reason.TooManyPerSecond, []string{"This may pass: do not retry now", "limits.tunnels_per_second of " + cfg.Invocation + ", which allows 9."}, "Do not retry"},
		{reason.UploadLimit, []string{"Do not retry", "limits.upload of " + cfg.Invocation + ", which allows 64MiB.", "can raise it"}, "vendor"},
		{reason.DownloadLimit, []string{"Do not retry", "limits.download of " + cfg.Invocation + ", which allows 1000B.", "can raise it"}, "vendor"},
		{reason.LogLimit, []string{"Do not retry", "ends the run of " + cfg.Invocation}, "Only whoever"},
		{reason.HostNotDeclared, []string{"Do not retry", "The rule is " + cfg.Declaration + ", which allows: a.example:443.", "can open one"}, "limits."},
		{reason.LookupFailed, []string{"This may pass: do not retry now", cfg.Declaration + " allows it"}, "which allows"},
		{reason.NoAddress, []string{"This may pass: do not retry now", cfg.Declaration + " allows it", "does not exist"}, "Only whoever"},
		{reason.DialFailed, []string{"This may pass: do not retry now", cfg.Declaration + " allows it"}, "limits."},
	} {
		got := cfg.refusal(tt.reason, "x.example:443", []string{"a.example:443"})
		for _, w := range tt.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q does not say %q", tt.reason, got, w)
			}
		}
		if strings.Contains(got, tt.not) {
			t.Errorf("%s: %q says %q", tt.reason, got, tt.not)
		}
	}
}

// TestRefusalsSayNotToRetry: a status line is all that many clients show of a refusal.
func TestRefusalsSayNotToRetry(t *testing.T) {
	cfg := testConfig()
	cfg.Declaration, cfg.Invocation = "vendor.v", "invocation.a"
	for _, r := range reason.All() {
		line, _, _ := strings.Cut(string(response(r, "")), "\r\n")
		body := cfg.refusal(r, "x.example:443", []string{"a.example:443"})
		if !strings.Contains(line, "do not retry") || !strings.Contains(strings.ToLower(body), "do not retry") {
			t.Errorf("%s: %q, %q", r, line, body)
		}
		if !strings.Contains(body, cfg.Declaration) && !strings.Contains(body, cfg.Invocation) {
			t.Errorf("%s: %q names no declaration", r, body)
		}
	}
}

// TestUsedUpBytesAreTheInvocations: the rule of a byte limit is another one than that of the hosts, which stands for
// a host that is not declared whatever is used up.
func TestUsedUpBytesAreTheInvocations(t *testing.T) {
	cfg := plainConfig()
	cfg.Limits.UploadBytes = 1000
	p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }))
	c := p.tunnel(okTarget)
	if _, err := c.Write(make([]byte, 1001)); err != nil {
		t.Fatal(err)
	}
	p.await("limit", func(e Entry) bool { return e.Event == EventLimit })
	for _, tt := range []struct{ target, why, says, not string }{
		{okTarget, "upload_limit", "limits.upload of invocation.a, which allows 1000B.", "vendor.v"},
		{"evil.example:443", "host_not_declared", "The rule is vendor.v", "limits."},
		{vendorName + ":22", "port_not_declared", "The rule is vendor.v", "limits."},
	} {
		resp, body := p.ask(connectTo(tt.target))
		if resp.StatusCode != 403 || resp.Header.Get("X-Sandplan-Reason") != tt.why || !strings.Contains(body, tt.says) || strings.Contains(body, tt.not) {
			t.Errorf("%s: %s\n%s", tt.target, resp.Status, body)
		}
	}
}

// TestRefusedURLIsNoSecretInTheLog: who takes the proxy for one of the web sends passwords, paths and queries.
func TestRefusedURLIsNoSecretInTheLog(t *testing.T) {
	p := startProxy(t, testConfig(), "")
	for send, host := range map[string]string{
		"GET http://user:hunter2@evil.example/hunter2?token=hunter2 HTTP/1.1\r\nHost: evil.example\r\n\r\n":                "evil.example",
		"CONNECT user:hunter2@evil.example:443 HTTP/1.1\r\nHost: user:hunter2@evil.example:443\r\n\r\n":                    "evil.example:443",
		"CONNECT https://hunter2@evil.example/hunter2 HTTP/1.0\r\n\r\n":                                                    "evil.example",
		"GET /hunter2?token=hunter2 HTTP/1.1\r\nHost: evil.example\r\n\r\n":                                                "the request",
		"GET http://user:hun/ter2hunter2@evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n":                             "the request",
		"POST http://user:hunter2@other.example:8080/ HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 9000) + "\r\n\r\n": "other.example:8080",
	} {
		_, body := p.ask(send)
		if !strings.HasPrefix(body, "sandplan refused "+host+": ") || strings.Contains(body, "hunter2") {
			t.Errorf("%.60q is answered with\n%s", send, body)
		}
	}
	p.server.log.End("over")
	if log := string(p.log.bytes()); strings.Contains(log, "hunter2") || !strings.Contains(log, `"host":"evil.example"`) {
		t.Errorf("the log says\n%s", log)
	}
}
