package head

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

func TestParse(t *testing.T) {
	const ok = "a.example:443"
	field := func(lines ...string) string {
		return "CONNECT " + ok + " HTTP/1.1\r\nHost: " + ok + "\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
	}
	tests := []struct {
		name   string
		in     string
		why    reason.Reason
		reason string
	}{
		{"curl", field("User-Agent: curl/8", "Proxy-Connection: Keep-Alive"), "", "a real client"},
		{"Node", "CONNECT " + ok + " HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n", "", "leaves the scheme's port out"},
		{"HTTP/1.0 without Host", "CONNECT " + ok + " HTTP/1.0\r\n\r\n", "", "old Pythons"},
		{"length 0", field("Content-Length: 0"), "", "says that there is no body"},
		{"blanks around a value", field("X: \t a b \t"), "", "RFC 9110 allows them"},
		{"bytes above ASCII in a value", field("X: \xff\xfe"), "", "obs-text"},

		{"Host without another port", "CONNECT a.example:8080 HTTP/1.1\r\nHost: a.example\r\n\r\n", reason.HostDiffers, "only a scheme's own goes without saying"},
		{"Host with the other scheme's port", "CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", reason.HostDiffers, "what is said must be the same"},
		{"Host with another name, without a port", "CONNECT a.example:80 HTTP/1.1\r\nHost: b.example\r\n\r\n", reason.HostDiffers, "another name"},
		{"Host without the port, with its colon", "CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:\r\n\r\n", reason.HostDiffers, "one spelling"},
		{"empty Host", "CONNECT " + ok + " HTTP/1.1\r\nHost:\r\n\r\n", reason.HostDiffers, "names nothing"},
		{"Host in capitals", "CONNECT " + ok + " HTTP/1.1\r\nHost: A.example:443\r\n\r\n", reason.HostDiffers, "one spelling"},
		{"Hosts in two cases", field("HOST: " + ok), reason.HostTwice, "names of fields have no case"},
		{"length", field("content-length: 1"), reason.HasBody, "a body"},
		{"length 00", field("Content-Length: 00"), reason.HasBody, "another spelling"},
		{"empty length", field("Content-Length:"), reason.HasBody, "not 0"},
		{"transfer coding", field("Transfer-Encoding: identity"), reason.HasBody, "any"},
		{"blank before the colon", field("Transfer-Encoding : chunked"), reason.BadHeader, "hides the field from some"},
		{"folded", field("X: a", "\tb"), reason.BadHeader, "obs-fold"},
		{"no colon", field("X"), reason.BadHeader, "no field"},
		{"no name", field(": a"), reason.BadHeader, "no field"},
		{"name with a NUL", field("X\x00: a"), reason.NotHTTP, "no field"},
		{"lone CR", field("X: a\rb"), reason.BadHeader, "a line's end to some"},
		{"lone LF", field("X: a\nTransfer-Encoding: chunked"), reason.BadHeader, "a line's end to some"},
		{"two blanks", "CONNECT  " + ok + " HTTP/1.1\r\n\r\n", reason.BadRequestLine, "three words, two blanks"},
		{"no version", "CONNECT " + ok + "\r\n\r\n", reason.BadRequestLine, "HTTP/0.9"},
		{"tab", "CONNECT\t" + ok + "\tHTTP/1.1\r\n\r\n", reason.BadRequestLine, "a blank to some"},
		{"empty", "\r\n\r\n", reason.BadRequestLine, "no request"},
		{"empty line first", "\r\nCONNECT " + ok + " HTTP/1.1\r\n\r\n", reason.BadRequestLine, "nothing is skipped"},
		{"HTTP/1.2", "CONNECT " + ok + " HTTP/1.2\r\n\r\n", reason.BadVersion, "unknown rules"},
		{"http/1.1", "CONNECT " + ok + " http/1.1\r\n\r\n", reason.BadVersion, "versions have a case"},
		{"many fields", field(strings.Repeat("X: a\r\n", 70) + "X: a"), reason.HeadTooLarge, "bounded"},
		{"cut", "CONNECT " + ok + " HTTP/1.1\r\n", reason.HeadIncomplete, "no end"},
		{"something behind", field("X: a") + "x", reason.HeadIncomplete, "not a head alone"},
	}
	for _, tt := range tests {
		r, why := Parse([]byte(tt.in))
		if why != tt.why {
			t.Errorf("%s: %q, want %q (%s)", tt.name, why, tt.why, tt.reason)
		}
		if tt.why == reason.None && (r.Method != "CONNECT" || r.Target != ok) {
			t.Errorf("%s: %+v", tt.name, r)
		}
	}
}

// TestOwnPortGoesWithoutSaying: Node's fetch leaves out the port of http as it does that of https.
func TestOwnPortGoesWithoutSaying(t *testing.T) {
	for _, port := range []string{"443", "80"} {
		r, why := Parse([]byte("CONNECT a.example:" + port + " HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n"))
		if why != reason.None || r.Target != "a.example:"+port {
			t.Errorf("%s: %+v, %q", port, r, why)
		}
	}
}

func TestBegin(t *testing.T) {
	for _, tt := range []struct{ in, method, target, reason string }{
		{"GET http://a/ HTTP/1.1\r\n", "GET", "http://a/", "both"},
		{"GET http://user:pass", "GET", "", "half a target tells the half that no log may have"},
		{"GET http://a/\r\n", "GET", "http://a/", "HTTP/0.9"},
		{"GET /\nHost: b c", "GET", "/", "a bare line feed ends a line to whoever sends it"},
		{"GET  / HTTP/1.1", "GET", "", "an empty target"},
		{"GET \x00", "GET", "", "nothing that can be told"},
		{"GET", "", "", "GETS may follow"},
		{"GET\r\nHost: b", "", "", "no blank in the line"},
		{"\r\nGET /", "", "", "nothing is skipped"},
		{"\x16\x03\x01 ", "", "", "no token"},
		{" GET /", "", "", "no token"},
		{"CONNECT a:1 HTTP", "CONNECT", "a:1", "the one that is known"},
		{"", "", "", "nothing"},
	} {
		if r := Begin([]byte(tt.in)); r.Method != tt.method || r.Target != tt.target {
			t.Errorf("%q: %+v, want %q and %q (%s)", tt.in, r, tt.method, tt.target, tt.reason)
		}
	}
}

func TestScanByteByByte(t *testing.T) {
	in := []byte("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\nrest")
	for i := 1; i <= len(in); i++ {
		n, why := Scan(in[:i], i-1)
		if why != reason.None {
			t.Fatalf("after %d bytes: %q", i, why)
		}
		if want := len(in) - 4; i == want && n != want {
			t.Fatalf("the end at %d is not seen: %d", want, n)
		} else if i < want && n != 0 {
			t.Fatalf("an end at %d is seen after %d bytes", n, i)
		}
	}
	if n, why := Scan([]byte("\x16\x03\x01"), 0); n != 0 || why != reason.NotHTTP {
		t.Errorf("a TLS record: %d, %q; a client that waits for an answer must get one", n, why)
	}
}

// FuzzParse: nothing passes that another parser would read differently.
func FuzzParse(f *testing.F) {
	f.Add([]byte("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"))
	f.Add([]byte("CONNECT a.example:443 HTTP/1.0\r\nContent-Length: 0\r\n\r\n"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nX: a\r\n b\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, why := Parse(b)
		if whole, sw := Scan(b, 0); sw == reason.None && whole == 0 && why == reason.None {
			t.Fatalf("%q passes without an end", b)
		}
		if why != reason.None {
			return
		}
		std, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return // the standard library knows more of what a target may be
		}
		if std.Method != "CONNECT" || std.RequestURI != r.Target || std.ContentLength > 0 || len(std.TransferEncoding) > 0 {
			t.Fatalf("%q is %+v here and %s %s with %d bytes of body there", b, r, std.Method, std.RequestURI, std.ContentLength)
		}
		if std.Host != r.Target && std.Host != "" && std.Host+":443" != r.Target && std.Host+":80" != r.Target {
			t.Fatalf("%q is for %s here and for %s there", b, r.Target, std.Host)
		}
	})
}
