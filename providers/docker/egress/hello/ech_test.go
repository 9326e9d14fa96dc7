package hello

import (
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// TestEveryNumberOfECH: each number that hides another name is refused by itself, and the numbers beside them, which
// belong to nobody or to somebody else, are none of them.
func TestEveryNumberOfECH(t *testing.T) {
	t.Parallel()
	const name = "api.example"
	tests := []struct {
		id     uint16
		hides  bool
		reason string
	}{
		{0xfe0d, true, "RFC 9849"},
		{0xfe08, true, "a draft's"},
		{0xfe09, true, "a draft's"},
		{0xfe0a, true, "a draft's"},
		{0xfe0b, true, "a draft's"},
		{0xfe0c, true, "a draft's"},
		{0xff02, true, "an early draft's"},
		{0xff03, true, "an early draft's nonce"},
		{0xfd00, true, "the outer extensions, which only ECH has"},
		{0xffce, true, "encrypted SNI, what came before"},
		{0xfe07, false, "below the drafts"},
		{0xfe0e, false, "above the RFC's"},
		{0xff01, false, "renegotiation_info, RFC 5746: every TLS 1.2 client sends it"},
		{0xff04, false, "above the early drafts"},
		{0xfcff, false, "below the outer extensions"},
		{0xfd01, false, "above them"},
		{0xffcd, false, "below encrypted SNI"},
		{0xffcf, false, "above it"},
		{0x0a0a, false, "GREASE, RFC 8701: browsers' libraries send it"},
	}
	for _, tt := range tests {
		want := reason.None
		if tt.hides {
			want = reason.ECH
		}
		for order, b := range map[string][]byte{
			"behind the name": newBuilder(sni(name), ext(tt.id, []byte{0, 0})).bytes(),
			"before it":       newBuilder(ext(tt.id, nil), sni(name)).bytes(),
		} {
			if r := Read(b, limit); r.State != Done || r.Reason != want || r.Name != name {
				t.Errorf("%#04x %s: %+v, want %q (%s)", tt.id, order, r, want, tt.reason)
			}
		}
	}
}
