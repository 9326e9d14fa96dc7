package hello

import (
	"bytes"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

var change = []byte{20, 3, 3, 0, 1, 1}

func cat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// cut splits a message over records of n bytes.
func cut(message []byte, n int) []byte {
	var out []byte
	for len(message) > 0 {
		k := min(n, len(message))
		out = append(out, record(message[:k])...)
		message = message[k:]
	}
	return out
}

func TestGuard(t *testing.T) {
	const name = "api.example"
	right, evil := newBuilder(sni(name)), newBuilder(sni("evil.example"))
	encrypted := []byte{23, 3, 3, 0, 3, 1, 2, 3}
	finished := cat([]byte{22, 3, 3, 0, 40, 1, 0x5a, 3, 3}, make([]byte, 36))
	tests := []struct {
		name   string
		in     []byte
		pass   int // how many bytes may be forwarded
		over   bool
		why    reason.Reason
		reason string
	}{
		{"TLS 1.3", cat(change, encrypted, evil.bytes()), -1, true, "", "what follows an encrypted record is no hello to anybody"},
		{"TLS 1.2", cat(record([]byte{16, 0, 0, 1, 0}), change, finished), -1, true, "", "a key exchange ends it"},
		{"TLS 1.2, resumed", cat(change, finished), -1, true, "", "an encrypted Finished may begin like a hello"},
		{"second hello", cat(change, right.bytes(), change, encrypted), -1, true, "", "the server has asked again"},
		{"second hello without a change", cat(right.bytes(), encrypted), -1, true, "", "middleboxes are not everywhere"},
		{"alert", []byte{21, 3, 3, 0, 2, 2, 0}, 7, false, "", "the client gives up"},
		{"nothing yet", []byte{22, 3, 3, 0}, 0, false, "", "half a header"},
		{"half a second hello", cat(change, right.bytes()[:30]), 6, false, "", "held until it is whole"},

		{"second hello for another", cat(change, evil.bytes()), 0, false, reason.SNIDiffers, "the server may believe the second"},
		{"without a change", evil.bytes(), 0, false, reason.SNIDiffers, "the same"},
		{"cut into bytes", cat(change, cut(evil.message(), 1)), 0, false, reason.SNIDiffers, "the same"},
		{"cut like a Finished", cat(change, cut(evil.message(), 40)), 0, false, reason.SNIDiffers, "the same"},
		{"third for another", cat(change, right.bytes(), evil.bytes()), 0, false, reason.SNIDiffers, "every one is looked at"},
		{"second without a name", cat(change, newBuilder(ext(43, []byte{2, 3, 4})).bytes()), 0, false, reason.SNIMissing, "every one is looked at"},
		{"second with ECH", cat(change, newBuilder(sni(name), ext(0xfe0d, nil)).bytes()), 0, false, reason.ECH, "every one is looked at"},
		{"changes without an end", bytes.Repeat(change, 9), 0, false, reason.HelloMalformed, "bounded"},
		{"empty record", []byte{20, 3, 3, 0, 0, 22}, 0, false, reason.HelloMalformed, "bounded"},
	}
	for _, tt := range tests {
		for _, size := range []int{1, 5, 1 << 20} {
			g := Guard{Name: name, Limit: limit}
			var out []byte
			var why reason.Reason
			for rest := tt.in; len(rest) > 0 && why == reason.None; {
				k := min(size, len(rest))
				var f []byte
				f, why = g.Feed(rest[:k])
				out = append(out, f...)
				rest = rest[k:]
			}
			want := tt.pass
			if want < 0 {
				want = len(tt.in)
			}
			if why != tt.why || g.Over() != tt.over {
				t.Errorf("%s, %d bytes at a time: %q, over %v; want %q, %v (%s)", tt.name, size, why, g.Over(), tt.why, tt.over, tt.reason)
			}
			if !bytes.HasPrefix(tt.in, out) || (tt.why == reason.None && len(out) != want) {
				t.Errorf("%s, %d bytes at a time: %d bytes forwarded, want %d (%s)", tt.name, size, len(out), want, tt.reason)
			}
			if tt.why != reason.None && bytes.Contains(out, []byte("evil")) {
				t.Errorf("%s, %d bytes at a time: the other name was forwarded", tt.name, size)
			}
		}
	}
}

func TestEarlyDataIsRefused(t *testing.T) {
	if r := Read(newBuilder(sni("a.example"), ext(42, nil)).bytes(), limit); r.Reason != reason.HelloEarlyData {
		t.Errorf("%+v: a server that takes no early data reads a second hello behind it", r)
	}
}

// FuzzGuard: however the bytes are cut, the same of them pass, and they pass unchanged.
func FuzzGuard(f *testing.F) {
	f.Add(cat(change, newBuilder(sni("api.example")).bytes(), []byte{23, 3, 3, 0, 1, 0}), uint8(3))
	f.Add(cat(change, newBuilder(sni("evil.example")).bytes()), uint8(1))
	f.Add([]byte{22, 3, 3, 0, 1, 1, 22, 3, 3, 0, 1, 0}, uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		run := func(n int) (out []byte, why reason.Reason) {
			g := Guard{Name: "api.example", Limit: limit}
			for rest := in; len(rest) > 0; {
				k := min(n, len(rest))
				f, w := g.Feed(rest[:k])
				out = append(out, f...)
				if w != reason.None {
					return out, w
				}
				rest = rest[k:]
			}
			return out, why
		}
		a, whyA := run(len(in) + 1)
		b, whyB := run(int(size) + 1)
		if whyA != whyB && whyA != reason.HelloTooLarge && whyB != reason.HelloTooLarge {
			t.Fatalf("%x: %q in one piece, %q in pieces of %d", in, whyA, whyB, int(size)+1)
		}
		if !bytes.HasPrefix(in, a) || !bytes.HasPrefix(in, b) || (whyA == reason.None && whyB == reason.None && len(a) != len(b)) {
			t.Fatalf("%x: %d bytes pass in one piece, %d in pieces of %d", in, len(a), len(b), int(size)+1)
		}
	})
}
