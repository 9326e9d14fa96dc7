package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// An attack is what somebody with a raw socket inside an agent's container tries. The tables of
// docs/attacks.md are made of these (attackdoc_test.go), so that each of their rows is a test.
type attack struct {
	name string
	// send is what comes first on the connection, or behind the 200 of an allowed tunnel.
	send []byte
	// answer is what the server says to what passed, nil for nothing; then is what comes behind that.
	answer, then []byte
	// close ends the sending direction behind it.
	close bool
	code  int // of the answer to a request; 0 in a tunnel
	why   reason.Reason
}

const okTarget = vendorName + ":443"

func request(line string, fields ...string) []byte {
	return []byte(strings.Join(append([]string{line}, fields...), "\r\n") + "\r\n\r\n")
}

func connectAttack(target string) []byte { return []byte(connectTo(target)) }

// requestAttacks are about the request.
func requestAttacks() []attack {
	line, host := "CONNECT "+okTarget+" HTTP/1.1", "Host: "+okTarget
	r := func(name string, send []byte, code int, why reason.Reason) attack {
		return attack{name: name, send: send, code: code, why: why}
	}
	return []attack{
		r("plain GET, absolute form", request("GET http://"+vendorName+"/ HTTP/1.1", "Host: "+vendorName), 405, reason.NotConnect),
		r("plain GET, origin form", request("GET / HTTP/1.1", "Host: "+vendorName), 405, reason.NotConnect),
		r("POST with a body", append(request("POST http://"+okTarget+"/ HTTP/1.1", host, "Content-Length: 4"), "data"...), 405, reason.NotConnect),
		r("OPTIONS of the proxy", request("OPTIONS * HTTP/1.1", host), 405, reason.NotConnect),
		r("HTTP/2 to the proxy", []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 405, reason.NotConnect),
		r("method in lower case", request("connect "+okTarget+" HTTP/1.1", host), 405, reason.NotConnect),
		r("SOCKS 5", []byte{5, 1, 0}, 400, reason.NotHTTP),
		r("SOCKS 4", []byte{4, 1, 1, 187, 198, 50, 0, 1, 0}, 400, reason.NotHTTP),
		r("TLS to the proxy", []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), 400, reason.NotHTTP),
		r("HTTP/0.9", request("CONNECT "+okTarget), 400, reason.BadRequestLine),
		r("HTTP/1.2", request("CONNECT "+okTarget+" HTTP/1.2", host), 505, reason.BadVersion),
		r("absolute form", request("CONNECT https://"+okTarget+" HTTP/1.1", "Host: https://"+okTarget), 400, reason.BadTarget),
		r("blanks doubled", request("CONNECT  "+okTarget+" HTTP/1.1", host), 400, reason.BadRequestLine),
		r("tabs for blanks", request("CONNECT\t"+okTarget+"\tHTTP/1.1", host), 400, reason.BadRequestLine),
		r("empty line in front", append([]byte("\r\n"), connectAttack(okTarget)...), 400, reason.BadRequestLine),

		r("byte order mark in front", append([]byte("\xef\xbb\xbf"), connectAttack(okTarget)...), 400, reason.BadRequestLine),
		r("a control character of eight bits", connectAttack("\xc2\x9b2Jevil.example:443"), 400, reason.BadRequestLine),

		r("another host", connectAttack("evil.example:443"), 403, reason.HostNotDeclared),
		r("a name below the declared one", connectAttack("x."+okTarget), 403, reason.HostNotDeclared),
		r("the declared name as a prefix", connectAttack(vendorName+".evil.example:443"), 403, reason.HostNotDeclared),
		r("capitals", connectAttack("API.vendor.example:443"), 403, reason.NotCanonical),
		r("final dot", connectAttack(vendorName+".:443"), 403, reason.NotCanonical),
		r("a Cyrillic letter", connectAttack("арi.vendor.example:443"), 400, reason.BadRequestLine),
		r("percent encoding", connectAttack("api%2evendor.example:443"), 400, reason.BadTarget),
		r("user information", connectAttack(vendorName+":443@evil.example:443"), 400, reason.BadTarget),
		r("the vendor's address", connectAttack(vendorAddr+":443"), 403, reason.AddressLiteral),
		r("a metadata service", connectAttack("169.254.169.254:80"), 403, reason.AddressLiteral),
		r("an address as a number", connectAttack("2852039166:80"), 403, reason.AddressLiteral),
		r("an address in hexadecimal", connectAttack("0xa9.0xfe.43518:80"), 403, reason.AddressLiteral),
		r("IPv6 loopback", connectAttack("[::1]:443"), 403, reason.AddressLiteral),
		r("mapped IPv4", connectAttack("[::ffff:169.254.169.254]:80"), 403, reason.AddressLiteral),
		r("another port", connectAttack(vendorName+":22"), 403, reason.PortNotDeclared),
		r("no port", connectAttack(vendorName), 400, reason.BadPort),
		r("port 0", connectAttack(vendorName+":0"), 400, reason.BadPort),
		r("443 in 16 bits", connectAttack(vendorName+":65979"), 400, reason.BadPort),
		r("a sign before the port", connectAttack(vendorName+":+443"), 400, reason.BadPort),
		r("a leading zero", connectAttack(vendorName+":0443"), 400, reason.BadPort),

		r("two targets in one", connectAttack(okTarget+",evil.example:443"), 400, reason.BadTarget),
		r("two ports", connectAttack(okTarget+":22"), 400, reason.BadTarget),
		r("blank before the port", connectAttack(vendorName+": 443"), 400, reason.BadRequestLine),

		r("Host names another", request(line, "Host: evil.example:443"), 400, reason.HostDiffers),
		r("two Hosts, the second another", request(line, host, "Host: evil.example:443"), 400, reason.HostTwice),
		r("a list of Hosts", request(line, "Host: "+okTarget+", evil.example:443"), 400, reason.HostDiffers),
		r("an empty Host", request(line, "Host:"), 400, reason.HostDiffers),
		r("a field's name in eight bits", request(line, host, "H\xf6st: evil.example:443"), 400, reason.BadHeader),
		r("no Host", request(line), 400, reason.HostMissing),
		r("second CONNECT behind the first", append(connectAttack(okTarget), connectAttack("evil.example:443")...), 400, reason.EarlyData),
		r("hello behind the request", append(connectAttack(okTarget), 22, 3, 1, 2, 0, 1), 400, reason.EarlyData),
		r("body by length", append(request(line, host, "Content-Length: 4"), "data"...), 400, reason.HasBody),
		r("length twice in one field", request(line, host, "Content-Length: 0, 0"), 400, reason.HasBody),
		r("body in chunks", append(request(line, host, "Transfer-Encoding: chunked"), "0\r\n\r\n"...), 400, reason.HasBody),
		r("length and chunks", request(line, host, "Content-Length: 0", "Transfer-Encoding: chunked"), 400, reason.HasBody),
		r("chunks hidden by a blank", request(line, host, "Transfer-Encoding : chunked"), 400, reason.BadHeader),
		r("length 0 and data", append(request(line, host, "Content-Length: 0"), "GET / HTTP/1.1\r\n"...), 400, reason.EarlyData),
		r("folded field", request(line, "Host: "+vendorName, " :443"), 400, reason.BadHeader),
		r("folded field behind Host", request(line, host, "\tX"), 400, reason.BadHeader),
		r("bare line feeds", []byte("CONNECT "+okTarget+" HTTP/1.1\nHost: "+okTarget+"\n\n"), 400, reason.BadHeader),
		r("bare carriage return", request(line, host, "X: a\rTransfer-Encoding: chunked"), 400, reason.BadHeader),
		r("NUL in the target", connectAttack(vendorName+"\x00.evil.example:443"), 400, reason.NotHTTP),
		r("NUL in a field", request(line, host, "X: a\x00b"), 400, reason.NotHTTP),
		r("one field of 9 KB", request(line, host, "X: "+strings.Repeat("a", 9<<10)), 431, reason.HeadTooLarge),
		r("100 fields", request(line, append([]string{host}, strings.Split(strings.Repeat("X: a,", 99), ",")[:99]...)...), 431, reason.HeadTooLarge),
		{name: "end in the middle of a request", send: []byte("CONNECT api."), close: true, code: 400, why: reason.HeadIncomplete},
		r("a request without an end", []byte("CONNECT api."), 408, reason.HeadTooSlow),
	}
}

// helloAttacks come behind the 200 of a tunnel to the vendor.
func helloAttacks(t *testing.T) []attack {
	named := func(name string) []byte { return helloBytes(t, &tls.Config{ServerName: name}) }
	right, evil := named(vendorName), named("evil.example")
	// As long as the right name, so that it can be put in its place.
	put := func(name string) []byte {
		return bytes.Replace(right, []byte(vendorName), []byte(name[:len(vendorName)]), 1)
	}
	h := func(name string, send []byte, why reason.Reason) attack {
		return attack{name: name, send: send, why: why}
	}
	retry, warning := retryRequest(), []byte{21, 3, 3, 0, 2, 1, 112}
	change := []byte{20, 3, 3, 0, 1, 1}
	return []attack{
		h("another name", evil, reason.SNIDiffers),
		h("another name in records of 1 byte", records(evil, 1), reason.SNIDiffers),
		h("another name in records of 50", records(evil, 50), reason.SNIDiffers),
		h("no name", helloBytes(t, &tls.Config{InsecureSkipVerify: true}), reason.SNIMissing),
		h("name in capitals", put(strings.ToUpper(vendorName)), reason.SNIDiffers),
		h("NUL in the name", put("api.vendor.exampl\x00"), reason.SNIDiffers),
		h("a name below", named("x."+vendorName), reason.SNIDiffers),
		h("two names", withExtension(right, 0, []byte{0, 5, 0, 0, 2, 'a', 'b'}), reason.HelloMalformed),
		h("ECH, as browsers send it for nothing (GREASE)", withExtension(right, 0xfe0d, make([]byte, 200)), reason.ECH),
		h("ECH in records of 50", records(withExtension(right, 0xfe0d, make([]byte, 200)), 50), reason.ECH),
		h("ECH of a draft", withExtension(right, 0xfe0a, []byte{0}), reason.ECH),
		h("extensions that only ECH has", withExtension(right, 0xfd00, []byte{0}), reason.ECH),
		h("ESNI", withExtension(right, 0xffce, []byte{0}), reason.ECH),
		h("early data announced", withExtension(right, 42, nil), reason.HelloEarlyData),
		h("SSL 2", []byte{0x80, 0x2e, 1, 3, 1, 0, 0x15, 0, 0, 0, 0x10}, reason.NotTLS),
		h("TLS 1.0 without extensions", oldHello(), reason.SNIMissing),
		h("HTTP", []byte("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), reason.NotTLS),
		h("a CONNECT inside", connectAttack("evil.example:443"), reason.NotTLS),
		h("SSH", []byte("SSH-2.0-x\r\n"), reason.NotTLS),
		h("data first", []byte{23, 3, 3, 0, 1, 0}, reason.NotTLS),
		h("alert first", []byte{21, 3, 3, 0, 2, 1, 0}, reason.NotTLS),
		h("another handshake message", []byte{22, 3, 3, 0, 4, 16, 0, 0, 0}, reason.HelloMalformed),
		h("a second message in the hello's record", behindHello(right, evil), reason.HelloMalformed),
		h("empty records", []byte{22, 3, 1, 0, 0, 22, 3, 1, 0, 0}, reason.HelloMalformed),
		h("a record of 64 KB", []byte{22, 3, 1, 0xff, 0xff, 1}, reason.HelloMalformed),
		h("a hello of 16 MB", []byte{22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff}, reason.HelloTooLarge),
		h("a hello of 15 KB in records of 1 byte", records(withExtension(right, 21, make([]byte, 13<<10)), 1), reason.HelloTooLarge),
		{name: "end in the middle of a hello", send: right[:20], close: true, why: reason.HelloMissing},
		h("a hello without an end", right[:20], reason.HelloTooSlow),

		h("second hello at once", append(bytes.Clone(right), evil...), reason.DataBeforeAnswer),
		h("change and second hello at once", append(append(bytes.Clone(right), change...), evil...), reason.DataBeforeAnswer),
		h("data before the answer", append(bytes.Clone(right), 23, 3, 3, 0, 1, 0), reason.DataBeforeAnswer),
		{name: "an alert that carries data, before the answer", send: right, answer: warning, then: append([]byte{21, 3, 3, 0, 200}, bytes.Repeat([]byte("evil"), 50)...), why: reason.HelloMalformed},
		{name: "alerts without end, before the answer", send: right, answer: warning, then: bytes.Repeat(warning, 5), why: reason.HelloMalformed},
		{name: "asked again: another name", send: right, answer: retry, then: evil, why: reason.SNIDiffers},
		{name: "asked again: another name behind a change", send: right, answer: retry, then: append(bytes.Clone(change), records(evil, 3)...), why: reason.SNIDiffers},
		{name: "asked again: ECH", send: right, answer: retry, then: withExtension(right, 0xfe0d, []byte{1}), why: reason.ECH},
		{name: "asked again: the right one, then another", send: right, answer: retry, then: append(bytes.Clone(right), evil...), why: reason.SNIDiffers},
		{name: "asked again: data instead", send: right, answer: retry, then: append([]byte{23, 3, 3, 0, 1, 0}, evil...), why: reason.HelloMalformed},
		{name: "TLS 1.2: another hello in plain text", send: right, answer: acceptingAnswer(), then: evil, why: reason.SNIDiffers},
		{name: "a server that answers with HTTP", send: right, answer: []byte("HTTP/1.1 200 OK\r\n\r\n"), why: reason.AnswerNotTLS},
		{name: "a server that echoes the hello", send: right, answer: right, why: reason.AnswerNotTLS},
	}
}

// oldHello is one of TLS 1.0, with a version in front and no extension at all.
func oldHello() []byte {
	m := append([]byte{1, 0, 0, 41, 3, 1}, make([]byte, 32)...)
	m = append(m, 0, 0, 2, 0, 0x35, 1, 0)
	m[3] = byte(len(m) - 4)
	return append([]byte{22, 3, 1, 0, byte(len(m))}, m...)
}

// behindHello puts another hello's message into the record of one.
func behindHello(hello, other []byte) []byte {
	out := append(bytes.Clone(hello), other[5:]...)
	n := len(out) - 5
	out[3], out[4] = byte(n>>8), byte(n)
	return out
}

// acceptingAnswer is one that goes on with the handshake.
func acceptingAnswer() []byte {
	a := retryRequest()
	a[5+4+2] ^= 1
	return a
}

func TestAttackRequest(t *testing.T) {
	for _, a := range requestAttacks() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig()
			if a.why == reason.HeadTooSlow {
				cfg.Limits.HeadMS = 1000
			}
			p := startProxy(t, cfg, "")
			c := p.raw(string(a.send))
			if a.close {
				_ = c.CloseWrite()
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatalf("no answer: %v", err)
			}
			body, err := io.ReadAll(resp.Body)
			if resp.StatusCode != a.code || resp.Header.Get("X-Sandplan-Reason") != string(a.why) || err != nil {
				t.Errorf("%s, %s, %v; want %d %s", resp.Status, body, err, a.code, a.why)
			}
			if rest, _ := io.ReadAll(c); len(rest) > 0 {
				t.Errorf("something follows the answer: %q", rest)
			}
			if i := strings.IndexFunc(string(body)+resp.Status, func(r rune) bool { return r >= 0x7f || r < ' ' && r != '\n' }); i >= 0 {
				t.Errorf("the answer has something for a terminal: %q", body)
			}
			p.awaitReason(a.why)
			if lookups, dials := p.seen(); len(lookups)+len(dials) > 0 {
				t.Errorf("it made the lookups %v and the dials %v", lookups, dials)
			}
		})
	}
}

func TestAttackHello(t *testing.T) {
	for _, a := range helloAttacks(t) {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			got := &lines{}
			cfg := testConfig()
			if a.why == reason.HelloTooSlow {
				cfg.Limits.HelloMS = 1000
			}
			p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) {
				buf := make([]byte, 1)
				if _, err := io.ReadFull(c, buf); err != nil {
					return
				}
				_, _ = got.Write(buf)
				_, _ = c.Write(a.answer)
				_, _ = io.Copy(got, c)
			}))
			c := p.tunnel(okTarget)
			if _, err := c.Write(a.send); err != nil {
				t.Fatal(err)
			}
			if a.close {
				_ = c.CloseWrite()
			}
			if a.then != nil {
				if _, err := io.ReadFull(c, make([]byte, len(a.answer))); err != nil {
					t.Fatalf("the server's answer: %v", err)
				}
				_, _ = c.Write(a.then)
			}
			if rest, err := io.ReadAll(c); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("it is not closed: %q, %v", rest, err)
			}
			if e := p.awaitReason(a.why); e.Event != EventDecision || e.Decision != Refuse || e.Tunnel == 0 {
				t.Errorf("it is not told as a refusal: %+v", e)
			}
			// Whatever the server got, it was nothing but hellos for the vendor.
			got.mu.Lock()
			defer got.mu.Unlock()
			if strings.Contains(got.buf.String(), "evil") || a.answer == nil && a.why != reason.DataBeforeAnswer && got.buf.Len() > 0 {
				t.Errorf("%d bytes were forwarded: %.80q", got.buf.Len(), got.buf.String())
			}
		})
	}
}

// TestAttackResets: a thousand connections that are reset in every state leave nothing behind.
func TestAttackResets(t *testing.T) {
	cfg := testConfig()
	cfg.Limits.TunnelsPerSecond = 1 << 20
	p := startProxy(t, cfg, vendor(t, nil))
	right := helloBytes(t, &tls.Config{ServerName: vendorName})
	states := []string{"", "CONN", connectTo("evil.example:443"), connectTo(okTarget), connectTo(okTarget) + string(right[:50])}
	for i := range 1000 {
		c, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		s := states[i%len(states)]
		_, _ = io.WriteString(c, s)
		if strings.Contains(s, okTarget) {
			_, _ = c.Read(make([]byte, 100))
		}
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	for deadline := time.Now().Add(patience); len(p.server.slots) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d slots are taken for ever", len(p.server.slots))
		}
	}
	c := tls.Client(p.tunnel(okTarget), &tls.Config{ServerName: vendorName, InsecureSkipVerify: true})
	if _, err := io.WriteString(c, "ping"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestAttackManyRefusals: a flood of refusals neither grows the log with it nor hides another one.
func TestAttackManyRefusals(t *testing.T) {
	cfg := testConfig()
	cfg.Limits.TunnelsPerSecond = 1 << 20
	p := startProxy(t, cfg, "")
	const flood = 500
	for range flood {
		p.ask(connectTo("evil.example:443"))
	}
	p.ask(connectTo("secret.example:443"))
	p.await("the other", func(e Entry) bool { return e.Host == "secret.example" })
	p.server.log.End("over")
	es := p.log.entries(t)
	last := es[len(es)-1]
	if last.Counts[reason.HostNotDeclared] != flood+1 || len(es) > flood/4 {
		t.Errorf("%d lines, counts %v", len(es), last.Counts)
	}
}
