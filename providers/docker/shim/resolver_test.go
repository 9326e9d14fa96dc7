package shim

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

func TestEveryQuestionIsRefused(t *testing.T) {
	r := &resolver{seen: map[string]bool{}}
	q := query(0x1234, "Example.com")
	edns := append(bytes.Clone(q), 0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0)
	edns[11] = 1 // one additional record
	a := r.answer(edns)
	if !bytes.Equal(a[:2], q[:2]) || a[2]&0x81 != 0x81 || a[3]&0xf != dnsRefused {
		t.Errorf("header % x", a[:dnsHeader])
	}
	if want := []byte{0, 1, 0, 0, 0, 0, 0, 0}; !bytes.Equal(a[4:dnsHeader], want) || !bytes.Equal(a[dnsHeader:], q[dnsHeader:]) {
		t.Errorf("the question is not repeated alone: % x", a)
	}
	for name, in := range map[string][]byte{"answer": a, "short": q[:11], "empty": nil} {
		if got := r.answer(in); got != nil {
			t.Errorf("%s: answered % x: two servers would talk for ever", name, got)
		}
	}
	if got := r.answer(q[:dnsHeader+3]); len(got) != dnsHeader || got[5] != 0 {
		t.Errorf("a cut question: % x", got)
	}
}

func TestWatchedNames(t *testing.T) {
	r := &resolver{seen: map[string]bool{}}
	r.watch("n0-abc.sandplan.invalid")
	r.answer(query(1, "other.example"))
	if r.asked("n0-abc.sandplan.invalid") {
		t.Error("another question counts")
	}
	r.watch("n0-abc.sandplan.invalid")
	r.answer(query(1, "N0-aBc.sandplan.invalid")) // resolvers mix cases against forgery
	if !r.asked("n0-abc.sandplan.invalid") {
		t.Error("the question in other case does not count")
	}
	if len(r.seen) != 0 {
		t.Error("names are kept for ever")
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(query(1, "example.com"))
	f.Add(query(1, strings.Repeat("a", 63)+".b"))
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := &resolver{seen: map[string]bool{}}
		a := r.answer(in)
		if a == nil {
			return
		}
		if len(a) > len(in) || a[2]&0x80 == 0 || a[3] != dnsRefused || binary.BigEndian.Uint16(a[6:]) != 0 {
			t.Fatalf("% x is answered with % x", in, a)
		}
		if r.answer(a) != nil {
			t.Fatalf("an answer is answered: % x", a)
		}
	})
}
