package egress

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

func TestAnswers(t *testing.T) {
	p := startProxy(t, testConfig(), "")
	ok := vendorName + ":443"
	tests := []struct {
		name   string
		send   string
		code   int
		why    reason.Reason
		reason string
	}{
		{"GET absolute", "GET http://" + vendorName + "/ HTTP/1.1\r\nHost: " + vendorName + "\r\n\r\n", 405, reason.NotConnect, "a plain GET would go round the TLS check"},
		{"GET origin", "GET / HTTP/1.1\r\nHost: " + vendorName + "\r\n\r\n", 405, reason.NotConnect, "the proxy is no server"},
		{"POST absolute", "POST http://" + ok + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na", 405, reason.NotConnect, "even with data behind it"},
		{"POST origin", "POST / HTTP/1.1\r\nHost: " + vendorName + "\r\nContent-Length: 1\r\n\r\na", 405, reason.NotConnect, "the proxy is no server"},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\n", 405, reason.NotConnect, "no HTTP/2 to the proxy"},
		{"lower-case method", "connect " + ok + " HTTP/1.1\r\nHost: " + ok + "\r\n\r\n", 405, reason.NotConnect, "methods are case-sensitive"},
		{"absolute form", "CONNECT https://" + ok + " HTTP/1.1\r\nHost: " + ok + "\r\n\r\n", 400, reason.HostDiffers, "the target has one form"},
		{"absolute form without Host", "CONNECT https://" + ok + " HTTP/1.0\r\n\r\n", 400, reason.BadTarget, "the target has one form"},
		{"other Host", "CONNECT " + ok + " HTTP/1.1\r\nHost: other.example:443\r\n\r\n", 400, reason.HostDiffers, "what is checked must be what is meant"},
		{"two Hosts", "CONNECT " + ok + " HTTP/1.1\r\nHost: " + ok + "\r\nHost: " + ok + "\r\n\r\n", 400, reason.HostTwice, "two parsers could take one each"},
		{"no Host", "CONNECT " + ok + " HTTP/1.1\r\n\r\n", 400, reason.HostMissing, "RFC 9112 says so"},
		{"body", "CONNECT " + ok + " HTTP/1.1\r\nHost: " + ok + "\r\nContent-Length: 5\r\n\r\n", 400, reason.HasBody, "its bytes would be a body to one and a tunnel to another"},
		{"chunked", "CONNECT " + ok + " HTTP/1.1\r\nHost: " + ok + "\r\nTransfer-Encoding: chunked\r\n\r\n", 400, reason.HasBody, "the same"},
		{"early data", connectTo(ok) + "\x16\x03\x01", 400, reason.EarlyData, "bytes from before the decision"},
		{"second CONNECT", connectTo(ok) + connectTo("evil.example:443"), 400, reason.EarlyData, "one request per connection"},
		{"folded", "CONNECT " + ok + " HTTP/1.1\r\nHost: " + ok + "\r\n folded\r\n\r\n", 400, reason.BadHeader, "obs-fold hides fields"},
		{"bare LF", "CONNECT " + ok + " HTTP/1.1\nHost: " + ok + "\n\n", 400, reason.BadHeader, "lines end in one way"},
		{"NUL", "CONNECT " + ok + " HTTP/1.1\r\nHost: a\x00b\r\n\r\n", 400, reason.NotHTTP, "no HTTP has one"},
		{"TLS to the proxy", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, reason.NotHTTP, "answered at once, not by time-out"},
		{"version", "CONNECT " + ok + " HTTP/3.0\r\nHost: " + ok + "\r\n\r\n", 505, reason.BadVersion, "unknown rules"},
		{"too large", "CONNECT " + ok + " HTTP/1.1\r\nX: " + strings.Repeat("a", 9000) + "\r\n\r\n", 431, reason.HeadTooLarge, "bounded"},
		{"no port", connectTo(vendorName), 400, reason.BadPort, "no default port"},
		{"empty port", connectTo(vendorName + ":"), 400, reason.BadPort, "no default port"},
		{"port 0", connectTo(vendorName + ":0"), 400, reason.BadPort, "no such port"},
		{"port 99999", connectTo(vendorName + ":99999"), 400, reason.BadPort, "no such port"},
		{"port 65979", connectTo(vendorName + ":65979"), 400, reason.BadPort, "443 in 16 bits"},
		{"other port", connectTo(vendorName + ":8443"), 403, reason.PortNotDeclared, "the port is part of the rule"},
		{"other host", connectTo("github.com:443"), 403, reason.HostNotDeclared, "not declared"},
		{"subdomain", connectTo("x." + vendorName + ":443"), 403, reason.HostNotDeclared, "no suffix match"},
		{"suffix", connectTo(vendorName + ".evil.example:443"), 403, reason.HostNotDeclared, "no prefix match"},
		{"final dot", connectTo(vendorName + ".:443"), 403, reason.NotCanonical, "the same name to a resolver, another one to a matcher"},
		{"capitals", connectTo(strings.ToUpper(vendorName) + ":443"), 403, reason.NotCanonical, "one spelling"},
		{"user info", connectTo(vendorName + "@evil.example:443"), 400, reason.BadTarget, "whoever reads it as a URL goes elsewhere"},
		{"address", connectTo(vendorAddr + ":443"), 403, reason.AddressLiteral, "the vendor's address is not its name"},
		{"number", connectTo("2130706433:443"), 403, reason.AddressLiteral, "127.0.0.1 to inet_aton"},
		{"IPv6", connectTo("[::1]:443"), 403, reason.AddressLiteral, "an address"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p.t = t
			resp, body := p.ask(tt.send)
			if resp.StatusCode != tt.code || resp.Header.Get("X-Sandplan-Reason") != string(tt.why) {
				t.Errorf("got %s, want %d %s (%s)", resp.Status, tt.code, tt.why, tt.reason)
			}
			for _, must := range []string{string(tt.why), tt.why.Text(), "vendor.v", "Do not retry", vendorName + ":443"} {
				if !strings.Contains(body, must) {
					t.Errorf("the body does not say %q:\n%s", must, body)
				}
			}
			if !strings.Contains(resp.Status, string(tt.why)) {
				t.Errorf("the status line does not name the rule: %q", resp.Status)
			}
			e := p.awaitReason(tt.why)
			if e.Decision != Refuse || e.Event != EventDecision {
				t.Errorf("log: %+v", e)
			}
		})
	}
	if lookups, dials := p.seen(); len(lookups)+len(dials) != 0 {
		t.Errorf("a refused request made lookups %v and dials %v", lookups, dials)
	}
}

func TestRefusedHostFailsAtOnce(t *testing.T) {
	p := startProxy(t, testConfig(), "")
	start := time.Now()
	p.ask(connectTo("github.com:443"))
	if d := time.Since(start); d >= ms(p.server.cfg.Limits.HeadMS) {
		t.Errorf("a refusal took %s; clients that wait for it hang", d)
	}
}

func TestResolvedAddresses(t *testing.T) {
	addrs := func(ss ...string) (out []netip.Addr) {
		for _, s := range ss {
			out = append(out, netip.MustParseAddr(s))
		}
		return out
	}
	tests := []struct {
		name   string
		answer []netip.Addr
		err    error
		why    reason.Reason
		reason string
	}{
		{"metadata", addrs("169.254.169.254"), nil, reason.Metadata, "an allowed name must not lead there"},
		{"loopback", addrs("127.0.0.1"), nil, reason.OwnNetwork, "the proxy itself"},
		{"private", addrs("10.0.0.1"), nil, reason.Private, "rebinding"},
		{"mapped", addrs("::ffff:169.254.169.254"), nil, reason.Mapped, "another spelling of it"},
		{"public first, private second", addrs(vendorAddr, "192.168.0.1"), nil, reason.Private, "a dial that fails would go on to the second"},
		{"nothing", nil, nil, reason.NoAddress, "told apart from a failure"},
		{"no such name", nil, errNoAddress, reason.NoAddress, "told apart from a failure"},
		{"failure", nil, errors.New("servers are silent"), reason.LookupFailed, "may pass"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := startProxy(t, testConfig(), "")
			p.set(func() { p.answer, p.failed = tt.answer, tt.err })
			resp, body := p.ask(connectTo(vendorName + ":443"))
			if got := resp.Header.Get("X-Sandplan-Reason"); got != string(tt.why) {
				t.Errorf("got %s %s, want %s (%s)", resp.Status, got, tt.why, tt.reason)
			}
			lookups, dials := p.seen()
			if len(lookups) != 1 || len(dials) != 0 {
				t.Errorf("lookups %v, dials %v; want one and none", lookups, dials)
			}
			if tt.err != nil && !strings.Contains(body, "try again later") {
				t.Errorf("a failure that may pass is told as final:\n%s", body)
			}
		})
	}
}

func TestDialsExactlyWhatWasChecked(t *testing.T) {
	p := startProxy(t, testConfig(), "")
	p.set(func() { p.answer = []netip.Addr{netip.MustParseAddr("198.50.0.1"), netip.MustParseAddr("198.50.0.2")} })
	resp, _ := p.ask(connectTo(vendorName + ":443"))
	lookups, dials := p.seen()
	if resp.StatusCode != 502 || len(lookups) != 1 || strings.Join(dials, " ") != "198.50.0.1:443 198.50.0.2:443" {
		t.Errorf("%s after lookups %v and dials %v", resp.Status, lookups, dials)
	}
	if e := p.awaitReason(reason.DialFailed); e.Address != "198.50.0.2:443" || e.Error != "nothing there" {
		t.Errorf("log: %+v", e)
	}
}

func TestFixedAddressesPassTheLookupAndNotThePort(t *testing.T) {
	cfg := testConfig()
	cfg.Hosts[0].Addresses = []string{"127.0.0.9"}
	p := startProxy(t, cfg, vendor(t, nil))
	p.tunnel(vendorName + ":443")
	if resp, _ := p.ask(connectTo(vendorName + ":8443")); resp.Header.Get("X-Sandplan-Reason") != string(reason.PortNotDeclared) {
		t.Errorf("another port: %s", resp.Status)
	}
	lookups, dials := p.seen()
	if len(lookups) != 0 || strings.Join(dials, " ") != "127.0.0.9:443" {
		t.Errorf("lookups %v, dials %v", lookups, dials)
	}
}

// records splits a ClientHello record into records of n bytes each.
func records(hello []byte, n int) []byte {
	body := hello[5:]
	var out []byte
	for len(body) > 0 {
		k := min(n, len(body))
		out = append(out, 22, 3, 1)
		out = binary.BigEndian.AppendUint16(out, uint16(k))
		out = append(out, body[:k]...)
		body = body[k:]
	}
	return out
}

// withExtension adds one to a ClientHello.
func withExtension(hello []byte, id uint16, body []byte) []byte {
	out := bytes.Clone(hello)
	ext := binary.BigEndian.AppendUint16(nil, id)
	ext = binary.BigEndian.AppendUint16(ext, uint16(len(body)))
	ext = append(ext, body...)
	// record header 5, message header 4, version 2, random 32, then three vectors
	at := 5 + 4 + 2 + 32
	at += 1 + int(out[at])
	at += 2 + int(binary.BigEndian.Uint16(out[at:]))
	at += 1 + int(out[at])
	binary.BigEndian.PutUint16(out[at:], binary.BigEndian.Uint16(out[at:])+uint16(len(ext)))
	out = append(out, ext...)
	binary.BigEndian.PutUint16(out[3:], uint16(len(out)-5))
	n := len(out) - 9
	out[6], out[7], out[8] = byte(n>>16), byte(n>>8), byte(n)
	return out
}

func TestHelloMustNameTheHost(t *testing.T) {
	right := helloBytes(t, &tls.Config{ServerName: vendorName})
	other := helloBytes(t, &tls.Config{ServerName: "evil.example"})
	none := helloBytes(t, &tls.Config{InsecureSkipVerify: true})
	tests := []struct {
		name   string
		send   []byte
		why    reason.Reason
		reason string
	}{
		{"another name", other, reason.SNIDiffers, "the front would serve another site"},
		{"another name, split over records", records(other, 7), reason.SNIDiffers, "a reader of the first record alone sees no name"},
		{"longer name", helloBytes(t, &tls.Config{ServerName: vendorName + ".evil.example"}), reason.SNIDiffers, "no prefix match"},
		{"no name", none, reason.SNIMissing, "the front would serve its default"},
		{"ECH", withExtension(right, 0xfe0d, []byte{0, 0}), reason.ECH, "the outer name is the client's choice"},
		{"ECH, split over records", records(withExtension(right, 0xfe0d, []byte{0, 0}), 50), reason.ECH, "the same"},
		{"ECH of a draft", withExtension(right, 0xfe0a, []byte{0, 0}), reason.ECH, "the same"},
		{"ESNI", withExtension(right, 0xffce, []byte{0, 0}), reason.ECH, "its forerunner"},
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), reason.NotTLS, "plain text for whoever listens"},
		{"SSH", []byte("SSH-2.0-x\r\n"), reason.NotTLS, "another protocol"},
		{"SSL 2", []byte{0x80, 0x2e, 1, 3, 1, 0, 0x15, 0, 0, 0, 0x10}, reason.NotTLS, "a hello without extensions"},
		{"empty record", []byte{22, 3, 1, 0, 0}, reason.HelloMalformed, "could go on for ever"},
		{"two names", withExtension(right, 0, []byte{0, 5, 0, 0, 2, 'a', 'b'}), reason.HelloMalformed, "two parsers could take one each"},
		{"huge", []byte{22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff}, reason.HelloTooLarge, "bounded by what it announces"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := &lines{}
			p := startProxy(t, testConfig(), upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(got, c) }))
			c := p.tunnel(vendorName + ":443")
			if _, err := c.Write(tt.send); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(c)
			if err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("the tunnel was not closed: %v", err)
			}
			if tt.send[0] == 22 && !bytes.Equal(rest, tlsAlert) {
				t.Errorf("a TLS client is told %x, want an alert", rest)
			}
			if e := p.awaitReason(tt.why); e.Decision != Refuse {
				t.Errorf("log: %+v", e)
			}
			if n := got.len(); n != 0 {
				t.Errorf("%d bytes were forwarded (%s)", n, tt.reason)
			}
		})
	}
}

func TestRightHelloPassesUntouched(t *testing.T) {
	hello := helloBytes(t, &tls.Config{ServerName: vendorName})
	for name, chunks := range map[string][][]byte{
		"whole":               {hello},
		"byte by byte":        split(hello, 1),
		"in records of 3":     {records(hello, 3)},
		"records and packets": split(records(hello, 100), 7),
		"an alert behind it":  {append(bytes.Clone(hello), 21, 3, 3, 0, 2, 2, 90)},
	} {
		t.Run(name, func(t *testing.T) {
			raw := &lines{}
			p := startProxy(t, testConfig(), upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(raw, c) }))
			c := p.tunnel(vendorName + ":443")
			for _, b := range chunks {
				if _, err := c.Write(b); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			e := p.await("closed", func(e Entry) bool { return e.Event == EventClosed })
			want := bytes.Join(chunks, nil)
			raw.mu.Lock()
			defer raw.mu.Unlock()
			if !bytes.Equal(raw.buf.Bytes(), want) {
				t.Errorf("%d bytes arrived of %d, or others", raw.buf.Len(), len(want))
			}
			if e.SNI != vendorName || e.Up != int64(len(want)) || e.Reason != reason.Closed {
				t.Errorf("log: %+v", e)
			}
		})
	}
}

func split(b []byte, n int) (out [][]byte) {
	for len(b) > 0 {
		k := min(n, len(b))
		out = append(out, b[:k])
		b = b[k:]
	}
	return out
}

func TestTLSThroughTheProxy(t *testing.T) {
	p := startProxy(t, testConfig(), vendor(t, nil))
	c := tls.Client(p.tunnel(vendorName+":443"), &tls.Config{ServerName: vendorName, InsecureSkipVerify: true})
	for range 3 {
		if _, err := io.WriteString(c, "ping"); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 4)
		if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "ping" {
			t.Fatalf("%q, %v", buf, err)
		}
	}
	e := p.awaitReason(reason.Allowed)
	if e.Decision != Allow || e.Address != vendorAddr+":443" || e.SNI != vendorName || e.Decl != "vendor.v" {
		t.Errorf("log: %+v", e)
	}
}

func TestWithoutTLSNothingIsHeldBack(t *testing.T) {
	cfg := testConfig()
	cfg.Hosts[0].TLS = false
	p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "220 I speak first\r\n")
		_, _ = io.Copy(c, c)
	}))
	c := p.tunnel(vendorName + ":443")
	buf := make([]byte, 19)
	if _, err := io.ReadFull(c, buf); err != nil {
		t.Fatalf("the server's greeting: %v", err)
	}
}

func TestOnlyTheAgentMayConnect(t *testing.T) {
	cfg := testConfig()
	cfg.Agent = "127.0.0.77"
	p := startProxy(t, cfg, "")
	c := p.raw(connectTo(vendorName + ":443"))
	if b, err := io.ReadAll(c); len(b) > 0 {
		t.Errorf("a stranger was answered %q, %v", b, err)
	}
	if e := p.awaitReason(reason.NotAgent); e.Address != "127.0.0.1" {
		t.Errorf("log: %+v", e)
	}
}

func TestSlowRequestsEnd(t *testing.T) {
	cfg := testConfig()
	cfg.Limits.HeadMS = 500 // a busy machine says at least something in it
	if resp, _ := startProxy(t, cfg, "").ask("CONNECT "); resp.StatusCode != 408 {
		t.Errorf("a request without an end: %s", resp.Status)
	}
	cfg = testConfig()
	cfg.Limits.HelloMS = 1000
	p := startProxy(t, cfg, vendor(t, nil))
	c := p.tunnel(vendorName + ":443")
	if _, err := c.Write([]byte{22, 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(c); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("a hello without an end: %v", err)
	}
	p.awaitReason(reason.HelloTooSlow)
}

func TestProbeIsNoRefusal(t *testing.T) {
	p := startProxy(t, testConfig(), vendor(t, nil))
	p.tunnel(vendorName + ":443").Close()
	if e := p.awaitReason(reason.Unused); e.Decision != Allow {
		t.Errorf("log: %+v", e)
	}
}

func TestEmptyConnectionIsNotLogged(t *testing.T) {
	p := startProxy(t, testConfig(), "")
	p.raw("").Close()
	p.raw("CONNECT").Close()
	p.awaitReason(reason.HeadIncomplete)
	if n := len(p.log.entries(t)); n != 1 {
		t.Errorf("%d lines, want one for the torn request and none for the empty one", n)
	}
}
