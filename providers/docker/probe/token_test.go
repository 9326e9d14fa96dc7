package probe

import (
	"slices"
	"strings"
	"testing"
)

func TestFindTokens(t *testing.T) {
	const session = "0123456789ab"
	one, two := Token{session, 3, 14}, Token{session, 0x1ff, 0}
	for _, tc := range []struct {
		name, reason, text string
		want               []Token
	}{
		{"alone", "", one.String(), []Token{one}},
		{"in a name", "DNS packs labels between length bytes", "\x16" + one.String() + "\x04test\x00", []Token{one}},
		{"upper case", "resolvers change the case of names", strings.ToUpper(one.String()), []Token{one}},
		{"two", "one packet may hold several", one.String() + "x" + two.String(), []Token{one, two}},
		{"not text", "bytes that are no UTF-8 must not move what comes after", "\xff\xfe\xc3\x28" + one.String(), []Token{one}},
		{"cut off", "the rest is in another packet", one.String()[:len(one.String())-1], nil},
		{"another session", "another verification on the same machine", (Token{"ffffffffffff", 3, 14}).String(), nil},
		{"no digits", "what begins alike is not one", tokenPrefix + session + "zzzzzz", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := FindTokens(session, tc.text); !slices.Equal(got, tc.want) {
				t.Errorf("%s: %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}

func FuzzFindTokens(f *testing.F) {
	f.Add("spv0123456789ab00030e")
	f.Fuzz(func(t *testing.T, text string) {
		for _, found := range FindTokens("0123456789ab", text) {
			if !strings.Contains(strings.ToLower(text), found.String()) {
				t.Errorf("%q holds no %s", text, found)
			}
		}
	})
}
