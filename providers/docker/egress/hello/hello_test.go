package hello

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

const limit = 16 << 10

// real are the bytes that Go's own client sends.
func real(t testing.TB, name string) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go func() { _ = tls.Client(a, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake() }()
	buf := make([]byte, limit)
	if err := b.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	n, err := b.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

// builder makes hellos that no client would send.
type builder struct {
	version    uint16
	session    []byte
	suites     []byte
	compress   []byte
	extensions []byte
	noExts     bool
	kind       byte
	extra      []byte // behind the extensions
	behind     []byte // behind the message, in its record
}

func newBuilder(exts ...[]byte) builder {
	return builder{version: 0x0303, suites: []byte{0x13, 1}, compress: []byte{0}, extensions: bytes.Join(exts, nil), kind: 1}
}

func vec(size int, b []byte) []byte {
	n := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
	return append(n[4-size:], b...)
}

func ext(id uint16, body []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, id), vec(2, body)...)
}

func sni(name string) []byte { return ext(0, vec(2, append([]byte{0}, vec(2, []byte(name))...))) }

func (h builder) message() []byte {
	m := binary.BigEndian.AppendUint16(nil, h.version)
	m = append(m, make([]byte, 32)...)
	m = append(m, vec(1, h.session)...)
	m = append(m, vec(2, h.suites)...)
	m = append(m, vec(1, h.compress)...)
	if !h.noExts {
		m = append(m, vec(2, h.extensions)...)
	}
	m = append(m, h.extra...)
	return append([]byte{h.kind}, vec(3, m)...)
}

func (h builder) bytes() []byte { return record(append(h.message(), h.behind...)) }

func record(b []byte) []byte { return append([]byte{22, 3, 1}, vec(2, b)...) }

func TestRead(t *testing.T) {
	const name = "api.example"
	change := func(f func(*builder)) []byte {
		h := newBuilder(sni(name))
		f(&h)
		return h.bytes()
	}
	tests := []struct {
		label  string
		in     []byte
		name   string
		why    reason.Reason
		reason string
	}{
		{"Go", real(t, name), name, "", "a real client"},
		{"small", newBuilder(sni(name)).bytes(), name, "", "the least that counts"},
		{"data behind", append(newBuilder(sni(name)).bytes(), record([]byte{2, 0})...), name, "", "early data is the server's business"},
		{"as it stands", newBuilder(sni("API.example.")).bytes(), "API.example.", "", "comparing is for others"},

		{"no name", newBuilder(ext(43, []byte{2, 3, 4})).bytes(), "", reason.SNIMissing, "the server's default"},
		{"no extensions", change(func(h *builder) { h.noExts = true }), "", reason.SNIMissing, "TLS 1.2 allows it"},
		{"empty name", newBuilder(sni("")).bytes(), "", reason.HelloMalformed, "a name of no bytes"},
		{"empty list", newBuilder(ext(0, []byte{0, 0})).bytes(), "", reason.HelloMalformed, "no entry"},
		{"server's form", newBuilder(ext(0, nil)).bytes(), "", reason.HelloMalformed, "what a server answers"},
		{"two entries", newBuilder(ext(0, vec(2, append(append([]byte{0}, vec(2, []byte(name))...), append([]byte{0}, vec(2, []byte("evil"))...)...)))).bytes(), "", reason.HelloMalformed, "the first or the last?"},
		{"another kind of name", newBuilder(ext(0, vec(2, append([]byte{1}, vec(2, []byte(name))...)))).bytes(), "", reason.HelloMalformed, "not a host"},
		{"bytes behind the list", newBuilder(ext(0, append(vec(2, append([]byte{0}, vec(2, []byte(name))...)), 0))).bytes(), "", reason.HelloMalformed, "a reader may go on"},
		{"two extensions", newBuilder(sni(name), sni("evil")).bytes(), "", reason.HelloMalformed, "the first or the last?"},
		{"twice another", newBuilder(sni(name), ext(10, nil), ext(10, nil)).bytes(), "", reason.HelloMalformed, "RFC 8446 forbids it"},
		{"ECH", newBuilder(sni(name), ext(0xfe0d, []byte{0})).bytes(), name, reason.ECH, "the name is a front"},
		{"ECH first", newBuilder(ext(0xfe0d, nil), sni(name)).bytes(), name, reason.ECH, "in any order"},
		{"ECH alone", newBuilder(ext(0xfe0d, nil)).bytes(), "", reason.ECH, "told as what it is"},
		{"outer extensions", newBuilder(sni(name), ext(0xfd00, nil)).bytes(), name, reason.ECH, "only ECH has them"},
		{"bytes behind the extensions", change(func(h *builder) { h.extra = []byte{0} }), "", reason.HelloMalformed, "lengths must fit"},
		{"a second message", change(func(h *builder) { h.behind = newBuilder(sni("evil")).message() }), "", reason.HelloMalformed, "a server may read the second"},
		{"another message", change(func(h *builder) { h.kind = 2 }), "", reason.HelloMalformed, "no hello of a client"},
		{"version", change(func(h *builder) { h.version = 0x0203 }), "", reason.HelloMalformed, "not TLS"},
		{"long session", change(func(h *builder) { h.session = make([]byte, 33) }), "", reason.HelloMalformed, "32 at most"},
		{"odd suites", change(func(h *builder) { h.suites = []byte{1, 2, 3} }), "", reason.HelloMalformed, "two bytes each"},
		{"no suites", change(func(h *builder) { h.suites = nil }), "", reason.HelloMalformed, "at least one"},
		{"no compression", change(func(h *builder) { h.compress = nil }), "", reason.HelloMalformed, "at least none"},
		{"extension too long", change(func(h *builder) { h.extensions = []byte{0, 0, 0xff, 0xff} }), "", reason.HelloMalformed, "beyond the end"},
		{"SSL 2", []byte{0x80, 0x2e, 1}, "", reason.NotTLS, "a hello without extensions"},
		{"alert", []byte{21, 3, 1, 0, 2, 2, 0}, "", reason.NotTLS, "no handshake"},
		{"TLS 2", []byte{22, 4, 0, 0, 5}, "", reason.NotTLS, "no such version"},
		{"empty record", []byte{22, 3, 1, 0, 0}, "", reason.HelloMalformed, "could go on for ever"},
		{"huge record", []byte{22, 3, 1, 0x40, 1}, "", reason.HelloMalformed, "16 KiB at most"},
		{"announces too much", []byte{22, 3, 1, 0x40, 0, 1, 1, 0, 0}, "", reason.HelloTooLarge, "told before it is read"},
		{"another record inside", append(record(newBuilder(sni(name)).message()[:20]), 23, 3, 3, 0, 1, 0), "", reason.NotTLS, "the hello is not over"},
	}
	for _, tt := range tests {
		r := Read(tt.in, limit)
		if r.State != Done || r.Reason != tt.why || r.Name != tt.name {
			t.Errorf("%s: %+v, want %q %q (%s)", tt.label, r, tt.name, tt.why, tt.reason)
		}
	}
}

// TestReadHoweverItIsSplit: any way of cutting the same message gives the same name, and no beginning
// of it gives one.
func TestReadHoweverItIsSplit(t *testing.T) {
	m := newBuilder(sni("api.example"), ext(43, []byte{2, 3, 4})).message()
	for size := 1; size <= len(m); size++ {
		var b []byte
		for rest := m; len(rest) > 0; {
			n := min(size, len(rest))
			b = append(b, record(rest[:n])...)
			rest = rest[n:]
		}
		for i := range b {
			if r := Read(b[:i], limit); r.State != More || r.Reason != reason.None {
				t.Fatalf("records of %d, %d of %d bytes: %+v", size, i, len(b), r)
			}
		}
		if r := Read(b, limit); r.State != Done || r.Name != "api.example" || r.Reason != reason.None {
			t.Fatalf("records of %d: %+v", size, r)
		}
	}
}

// FuzzRead compares with Go's own server: where that accepts a hello that passes here, both saw the
// same name.
func FuzzRead(f *testing.F) {
	f.Add(real(f, "api.example"))
	f.Add(newBuilder(sni("api.example")).bytes())
	f.Add(newBuilder(sni("a"), ext(0xfe0d, []byte{0})).bytes())
	f.Add([]byte{22, 3, 1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := Read(b, limit)
		if r.State == More || r.Reason != reason.None {
			return
		}
		if r.Name == "" {
			t.Fatalf("%x passes without a name", b)
		}
		seen := ""
		conf := &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			seen = h.ServerName
			return nil, io.ErrUnexpectedEOF
		}}
		_ = tls.Server(readOnly{bytes.NewReader(b)}, conf).Handshake()
		if seen != "" && seen != r.Name {
			t.Fatalf("%x is for %q here and for %q there", b, r.Name, seen)
		}
	})
}

type readOnly struct{ io.Reader }

func (readOnly) Write(p []byte) (int, error)      { return len(p), nil }
func (readOnly) Close() error                     { return nil }
func (readOnly) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (readOnly) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (readOnly) SetDeadline(time.Time) error      { return nil }
func (readOnly) SetReadDeadline(time.Time) error  { return nil }
func (readOnly) SetWriteDeadline(time.Time) error { return nil }
