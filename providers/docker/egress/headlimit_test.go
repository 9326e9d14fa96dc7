package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// TestAnotherMethodIsToldSo: whatever is wrong behind a method that can be read, it is the method that is told.
func TestAnotherMethodIsToldSo(t *testing.T) {
	p := startProxy(t, testConfig(), "")
	for _, tt := range []struct {
		name, send string
		code       int
	}{
		{"a large field", "GET http://evil.example/ HTTP/1.1\r\nX: " + strings.Repeat("a", 9000) + "\r\n\r\n", 405},
		{"a large target", "GET http://evil.example/" + strings.Repeat("a", 9000) + " HTTP/1.1\r\n\r\n", 405},
		{"bare line feeds", "GET / HTTP/1.1\nHost: a\n\n", 405},
		{"a NUL", "GET / HTTP/1.1\r\nX: \x00\r\n\r\n", 405},
		{"a blank in the target", "GET /a b HTTP/1.1\r\n\r\n", 405},
		{"no version", "GET /\r\n\r\n", 405},
		{"no end", "GET / HTTP/1.1\r\n", 405},
		{"many fields", "GET / HTTP/1.1\r\n" + strings.Repeat("X: a\r\n", 70) + "\r\n", 405},
		{"something behind", "GET / HTTP/1.1\r\n\r\n\x00", 405},
		{"CONNECT all the same", "CONNECT evil.example:443 HTTP/1.1\nHost: a\n\n", 400},
		{"a method that cannot be read", "\x16\x03\x01 / HTTP/1.1\r\n\r\n", 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.t = t
			c := p.raw(tt.send)
			if err := c.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != tt.code {
				t.Errorf("%s, want %d", resp.Status, tt.code)
			}
		})
	}
}

// TestHeadMayHaveItsLimit: the limit itself is allowed, and not a byte more, with whatever behind it.
func TestHeadMayHaveItsLimit(t *testing.T) {
	cfg := testConfig()
	p := startProxy(t, cfg, "")
	of := func(n int) string {
		r := "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\nX: \r\n\r\n"
		return strings.Replace(r, "X: ", "X: "+strings.Repeat("a", n-len(r)), 1)
	}
	for _, tt := range []struct {
		name, send string
		why        reason.Reason
	}{
		{"at the limit", of(cfg.Limits.HeadBytes), reason.HostNotDeclared},
		{"one byte more", of(cfg.Limits.HeadBytes + 1), reason.HeadTooLarge},
		{"at the limit, and data behind it", of(cfg.Limits.HeadBytes) + "x", reason.HostNotDeclared},
	} {
		p.t = t
		if resp, _ := p.ask(tt.send); resp.Header.Get("X-Sandplan-Reason") != string(tt.why) {
			t.Errorf("%s: %s, want %s", tt.name, resp.Status, tt.why)
		}
	}
}

// TestHelloMayHaveItsLimit: the same for a hello, as it is on the wire.
func TestHelloMayHaveItsLimit(t *testing.T) {
	cfg := testConfig()
	right := helloBytes(t, &tls.Config{ServerName: vendorName})
	for _, tt := range []struct {
		length int
		why    reason.Reason
	}{{cfg.Limits.HelloBytes, reason.Allowed}, {cfg.Limits.HelloBytes + 1, reason.HelloTooLarge}} {
		send := withExtension(right, 21, make([]byte, tt.length-len(right)-4))
		got := &lines{}
		p := startProxy(t, cfg, vendor(t, got))
		c := p.tunnel(okTarget)
		if _, err := c.Write(send); err != nil || len(send) != tt.length {
			t.Fatal(len(send), err)
		}
		p.awaitReason(tt.why)
		if tt.why == reason.Allowed {
			continue
		}
		if rest, _ := io.ReadAll(c); !bytes.Equal(rest, tlsAlert) || got.len() > 0 {
			t.Errorf("a hello of %d bytes: told %x, %d bytes are forwarded", tt.length, rest, got.len())
		}
	}
}
