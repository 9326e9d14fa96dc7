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

// serverHello is an answer with this random, and something behind it.
func serverHello(random [32]byte) []byte {
	m := append([]byte{3, 3}, random[:]...)
	return append([]byte{2}, vec(3, append(m, 0, 0x13, 1, 0, 0, 0))...)
}

var (
	accepts = record(serverHello([32]byte{1}))
	again   = record(serverHello(retryRandom()))
)

// fed is what comes through a side when it is fed size bytes at a time.
func fed(side interface {
	Feed([]byte) ([]byte, reason.Reason)
}, in []byte, size int) (out []byte, why reason.Reason) {
	for len(in) > 0 && why == reason.None {
		k := min(size, len(in))
		var f []byte
		f, why = side.Feed(in[:k])
		out = append(out, f...)
		in = in[k:]
	}
	return out, why
}

func TestClient(t *testing.T) {
	const name = "api.example"
	right, evil := newBuilder(sni(name)), newBuilder(sni("evil.example"))
	encrypted := []byte{23, 3, 3, 0, 3, 1, 2, 3}
	warning := []byte{21, 3, 3, 0, 2, 1, 0}
	// An encrypted Finished of TLS 1.2 may have any bytes, those of a hello's beginning among them.
	finished := cat([]byte{22, 3, 3, 0, 64, 1, 0, 0, 60, 3, 3}, make([]byte, 58))
	tests := []struct {
		name   string
		answer []byte // of the server, nil while it says nothing
		in     []byte
		pass   int // how many bytes may be forwarded, -1 all
		over   bool
		why    reason.Reason
		reason string
	}{
		{"TLS 1.3", accepts, cat(change, encrypted, evil.bytes()), -1, true, "", "what follows an encrypted record is no hello to anybody"},
		{"TLS 1.2", accepts, cat(record([]byte{16, 0, 0, 1, 0}), change, finished), -1, true, "", "a key exchange ends it"},
		{"TLS 1.2, resumed", accepts, cat(change, finished), -1, true, "", "a Finished that looks like a hello passes: the server asked for none"},
		{"asked again", again, cat(change, right.bytes(), change, encrypted), -1, true, "", "the second hello is the same"},
		{"asked again, no change", again, cat(right.bytes(), encrypted), -1, true, "", "middleboxes are not everywhere"},
		{"alert", nil, warning, -1, false, "", "a client may give up at any time"},
		{"alert after the answer", accepts, warning, -1, false, "", "the same"},
		{"half an alert", nil, warning[:6], 0, false, "", "held until it is whole"},
		{"half a second hello", again, cat(change, right.bytes()[:30]), 6, false, "", "held until it is whole"},

		{"before the answer: a hello", nil, right.bytes(), 0, false, reason.DataBeforeAnswer, "it would be read after a request for one"},
		{"before the answer: another's hello", nil, evil.bytes(), 0, false, reason.DataBeforeAnswer, "the same"},
		{"before the answer: a change", nil, cat(change, evil.bytes()), 0, false, reason.DataBeforeAnswer, "only early data has one there"},
		{"before the answer: data", nil, encrypted, 0, false, reason.DataBeforeAnswer, "early data"},
		{"before the answer: HTTP", nil, []byte("GET / HTTP/1.1"), 0, false, reason.DataBeforeAnswer, "plain text"},
		{"second for another", again, cat(change, evil.bytes()), 0, false, reason.SNIDiffers, "the server may believe the second"},
		{"without a change", again, evil.bytes(), 0, false, reason.SNIDiffers, "the same"},
		{"cut into bytes", again, cat(change, cut(evil.message(), 1)), 0, false, reason.SNIDiffers, "the same"},
		{"cut like a Finished", again, cat(change, cut(evil.message(), 40)), 0, false, reason.SNIDiffers, "the same"},
		{"third for another", again, cat(change, right.bytes(), evil.bytes()), 0, false, reason.SNIDiffers, "every one is looked at"},
		{"second without a name", again, cat(change, newBuilder(ext(43, []byte{2, 3, 4})).bytes()), 0, false, reason.SNIMissing, "every one is looked at"},
		{"second with ECH", again, cat(change, newBuilder(sni(name), ext(0xfe0d, nil)).bytes()), 0, false, reason.ECH, "every one is looked at"},
		{"second with early data", again, newBuilder(sni(name), ext(42, nil)).bytes(), 0, false, reason.HelloEarlyData, "RFC 8446, 4.2.10 forbids it"},
		{"data instead of the second", again, cat(encrypted, evil.bytes()), 0, false, reason.HelloMalformed, "a server may skip what it cannot read"},
		{"another message instead", again, record([]byte{16, 0, 0, 1, 0}), 0, false, reason.HelloMalformed, "the server asked for a hello"},
		{"in plain text, TLS 1.2", accepts, evil.bytes(), 0, false, reason.SNIDiffers, "old servers began anew (server-gated cryptography)"},
		{"changes without an end", again, bytes.Repeat(change, 9), 0, false, reason.HelloMalformed, "bounded"},
		{"alerts without an end", nil, bytes.Repeat(warning, 9), 0, false, reason.HelloMalformed, "bounded"},
		{"empty record", again, []byte{20, 3, 3, 0, 0, 22}, 0, false, reason.HelloMalformed, "bounded"},
	}
	for _, tt := range tests {
		for _, size := range []int{1, 5, 1 << 20} {
			c, s := NewGuard(name, limit)
			if out, why := fed(s, tt.answer, size); why != reason.None || !bytes.Equal(out, tt.answer) {
				t.Fatalf("%s: the answer does not pass: %q", tt.name, why)
			}
			out, why := fed(c, tt.in, size)
			want := tt.pass
			if want < 0 {
				want = len(tt.in)
			}
			if why != tt.why || c.Over() != tt.over {
				t.Errorf("%s, %d bytes at a time: %q, over %v; want %q, %v (%s)", tt.name, size, why, c.Over(), tt.why, tt.over, tt.reason)
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

func TestServer(t *testing.T) {
	unknownName := []byte{21, 3, 3, 0, 2, 1, 112}
	tests := []struct {
		name   string
		in     []byte
		answer int32
		why    reason.Reason
		reason string
	}{
		{"goes on", cat(accepts, []byte{23, 3, 3, 0, 1, 0}), answerAccept, "", "the usual"},
		{"asks again", again, answerAgain, "", "its random says so"},
		{"asks again in bytes", cut(serverHello(retryRandom()), 1), answerAgain, "", "however it is cut"},
		{"a warning first", cat(unknownName, again), answerAgain, "", "a server that does not know the name may say so and go on"},
		{"gives up", []byte{21, 3, 3, 0, 2, 2, 40}, answerNone, "", "the client shall hear why"},
		{"half an answer", accepts[:20], answerNone, "", "not known yet"},
		{"nearly asks again", record(serverHello(func() [32]byte { r := retryRandom(); r[31]++; return r }())), answerAccept, "", "32 bytes and no fewer"},

		{"HTTP", []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), answerNone, reason.AnswerNotTLS, "the tunnel is for TLS"},
		{"SSH", []byte("SSH-2.0-x\r\n"), answerNone, reason.AnswerNotTLS, "the same"},
		{"a hello back", newBuilder(sni("api.example")).bytes(), answerNone, reason.AnswerNotTLS, "an echo is no server"},
		{"data first", []byte{23, 3, 3, 0, 1, 0}, answerNone, reason.AnswerNotTLS, "no server begins so"},
		{"empty records", []byte{22, 3, 3, 0, 0}, answerNone, reason.AnswerNotTLS, "bounded"},
		{"warnings without an end", bytes.Repeat(unknownName, 9), answerNone, reason.AnswerNotTLS, "bounded"},
	}
	for _, tt := range tests {
		for _, size := range []int{1, 7, 1 << 20} {
			_, s := NewGuard("api.example", limit)
			out, why := fed(s, tt.in, size)
			if why != tt.why || s.answer.Load() != tt.answer {
				t.Errorf("%s, %d bytes at a time: %q, answer %d; want %q, %d (%s)", tt.name, size, why, s.answer.Load(), tt.why, tt.answer, tt.reason)
			}
			if why == reason.None && !bytes.Equal(out, tt.in) {
				t.Errorf("%s, %d bytes at a time: an answer is held back", tt.name, size)
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
	f.Add(accepts, cat(change, newBuilder(sni("api.example")).bytes(), []byte{23, 3, 3, 0, 1, 0}), uint8(3))
	f.Add(again, cat(change, newBuilder(sni("evil.example")).bytes()), uint8(1))
	f.Add(again, cat(change, newBuilder(sni("api.example")).bytes(), newBuilder(sni("evil.example")).bytes()), uint8(9))
	f.Add([]byte{21, 3, 3, 0, 2, 1, 112}, []byte{22, 3, 3, 0, 1, 1, 22, 3, 3, 0, 1, 0}, uint8(2))
	f.Fuzz(func(t *testing.T, answer, in []byte, size uint8) {
		run := func(n int) (out []byte, why reason.Reason) {
			c, s := NewGuard("api.example", limit)
			if back, why := fed(s, answer, n); !bytes.HasPrefix(answer, back) || why == reason.None && len(back) != len(answer) {
				t.Fatalf("%x: the answer %x comes out as %x", in, answer, back)
			}
			return fed(c, in, n)
		}
		a, whyA := run(len(in) + len(answer) + 1)
		b, whyB := run(int(size) + 1)
		if whyA != whyB && whyA != reason.HelloTooLarge && whyB != reason.HelloTooLarge {
			t.Fatalf("%x: %q in one piece, %q in pieces of %d", in, whyA, whyB, int(size)+1)
		}
		if !bytes.HasPrefix(in, a) || !bytes.HasPrefix(in, b) || (whyA == reason.None && whyB == reason.None && len(a) != len(b)) {
			t.Fatalf("%x: %d bytes pass in one piece, %d in pieces of %d", in, len(a), len(b), int(size)+1)
		}
	})
}
