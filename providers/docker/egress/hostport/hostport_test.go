package hostport

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

func TestParse(t *testing.T) {
	label63 := strings.Repeat("a", 63)
	long := strings.Repeat("a.", 126) + "b" // 253
	tests := []struct {
		in     string
		want   Target
		why    reason.Reason
		reason string
	}{
		{"api.anthropic.com:443", Target{"api.anthropic.com", 443}, "", "the form of the day"},
		{"localhost:1", Target{"localhost", 1}, "", "one label is a name; whether it is declared is for others"},
		{"x_y.z-1.example:65535", Target{"x_y.z-1.example", 65535}, "", "underscores are resolved and served"},
		{label63 + ".example:443", Target{label63 + ".example", 443}, "", "the longest label"},
		{long + ":443", Target{long, 443}, "", "the longest name"},
		{"xn--bcher-kva.example:443", Target{"xn--bcher-kva.example", 443}, "", "IDN as DNS sees it"},
		{"1.example:443", Target{"1.example", 443}, "", "a numeric first label"},

		{"", Target{}, reason.BadTarget, "nothing"},
		{":443", Target{}, reason.BadTarget, "no host"},
		{"a:b:443", Target{}, reason.BadTarget, "one colon"},
		{"a::443", Target{}, reason.BadTarget, "one colon"},
		{"a b:443", Target{}, reason.BadTarget, "a blank"},
		{" a:443", Target{}, reason.BadTarget, "nothing is trimmed"},
		{"a\t:443", Target{}, reason.BadTarget, "nothing is trimmed"},
		{"a%2eb:443", Target{}, reason.BadTarget, "nothing is decoded"},
		{"a/b:443", Target{}, reason.BadTarget, "no path"},
		{"u@a.example:443", Target{}, reason.BadTarget, "no user"},
		{"a..b:443", Target{}, reason.BadTarget, "an empty label"},
		{".a:443", Target{}, reason.BadTarget, "an empty label"},
		{".:443", Target{}, reason.BadTarget, "the root"},
		{"a..:443", Target{}, reason.BadTarget, "one dot at the end is another spelling, two are none"},
		{"-a.example:443", Target{}, reason.BadTarget, "a flag to somebody"},
		{"a-.example:443", Target{}, reason.BadTarget, "no label ends so"},
		{"*.example:443", Target{}, reason.BadTarget, "no patterns"},
		{"bücher.example:443", Target{}, reason.BadTarget, "two ways to encode it"},
		{"exаmple.com:443", Target{}, reason.BadTarget, "a Cyrillic letter"},
		{"a\u2024example:443", Target{}, reason.BadTarget, "a dot that NFKC makes one"},
		{"a\x00.example:443", Target{}, reason.BadTarget, "a string to C ends here"},
		{label63 + "a.example:443", Target{}, reason.BadTarget, "a label too long"},
		{long + "c:443", Target{}, reason.BadTarget, "a name too long"},

		{"API.example:443", Target{}, reason.NotCanonical, "one spelling"},
		{"api.example.:443", Target{}, reason.NotCanonical, "one spelling"},

		{"a.example", Target{}, reason.BadPort, "no default"},
		{"a.example:", Target{}, reason.BadPort, "no default"},
		{"a.example:0", Target{}, reason.BadPort, "any port, to bind"},
		{"a.example:0443", Target{}, reason.BadPort, "octal to somebody"},
		{"a.example:+443", Target{}, reason.BadPort, "a number to some parsers"},
		{"a.example:65536", Target{}, reason.BadPort, "0 in 16 bits"},
		{"a.example:65979", Target{}, reason.BadPort, "443 in 16 bits"},
		{"a.example:4294967739", Target{}, reason.BadPort, "443 in 32 bits"},
		{"a.example:443 ", Target{}, reason.BadPort, "nothing is trimmed"},
		{"a.example:https", Target{}, reason.BadPort, "no names of services"},
		{"a.example:４４３", Target{}, reason.BadPort, "digits, but not ours"},

		{"[::1]:443", Target{}, reason.AddressLiteral, "IPv6"},
		{"[::ffff:127.0.0.1]:443", Target{}, reason.AddressLiteral, "IPv4 in IPv6"},
		{"127.0.0.1:443", Target{}, reason.AddressLiteral, "IPv4"},
		{"127.1:443", Target{}, reason.AddressLiteral, "IPv4 to inet_aton"},
		{"2130706433:443", Target{}, reason.AddressLiteral, "IPv4 to inet_aton"},
		{"0x7f.0.0.1:443", Target{}, reason.AddressLiteral, "IPv4 to inet_aton"},
		{"0x7f000001:443", Target{}, reason.AddressLiteral, "IPv4 to inet_aton"},
		{"0X7F.0x1:443", Target{}, reason.AddressLiteral, "IPv4 to inet_aton"},
		{"0x:443", Target{}, reason.AddressLiteral, "0 to a browser"},
		{"0177.0.0.01:443", Target{}, reason.AddressLiteral, "IPv4 to inet_aton"},
		{"127.0.0.1.:443", Target{}, reason.AddressLiteral, "with a final dot"},
		{"a.example.1:443", Target{}, reason.AddressLiteral, "ends in a number: an error to a browser, a name to others"},
	}
	for _, tt := range tests {
		got, why := Parse(tt.in)
		if got != tt.want || why != tt.why {
			t.Errorf("Parse(%q) = %+v, %q; want %+v, %q (%s)", tt.in, got, why, tt.want, tt.why, tt.reason)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"api.anthropic.com:443", "[::1]:443", "127.1:80", "A.b:1", "a.:65535", "0x:1", "a\x00:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, why := Parse(s)
		if (why == reason.None) == (got == Target{}) {
			t.Fatalf("Parse(%q) = %+v, %q", s, got, why)
		}
		if why != reason.None {
			return
		}
		// What passes has one spelling, comes out as it went in, and is no address to anybody.
		if got.String() != s || strings.ToLower(s) != s || strings.HasSuffix(got.Host, ".") {
			t.Fatalf("Parse(%q) = %+v", s, got)
		}
		if _, err := netip.ParseAddr(got.Host); err == nil {
			t.Fatalf("Parse(%q) lets an address through", s)
		}
		for _, c := range []byte(got.Host) {
			if c <= ' ' || c >= 0x7f || strings.IndexByte("@/\\%:?#[]*\"'<>", c) >= 0 {
				t.Fatalf("Parse(%q) lets %q through", s, c)
			}
		}
	})
}

func TestShownIsHostAndPort(t *testing.T) {
	for _, tt := range []struct{ in, want, reason string }{
		{"a.example:443", "a.example:443", "what may be asked for is told as it stands"},
		{"a.example:+443", "a.example:+443", "and so is a port that is none"},
		{"[::1]:443", "[::1]:443", "and an address"},
		{"http://a.example/", "a.example", "a URL"},
		{"http://user:hunter2@a.example:8080/path?token=s3cret#frag", "a.example:8080", "a URL with all that it can have"},
		{"http://user:hun@ter2@a.example/", "a.example", "an at sign in the password"},
		{"http://user:hun/ter2@a.example/", "", "a slash in the password: nothing, rather than half of it"},
		{"http://user:hunter2%40a.example", "", "an at sign that is encoded"},
		{"http://user:hunter2", "", "no host at all"},
		{"http://[::1]/x", "", "an address without a port"},
		{"http://[::1]:80/x", "[::1]:80", "an address with one"},
		{"http://token@a.example", "a.example", "a token for a user"},
		{"user:hunter2@a.example:443", "a.example:443", "no scheme"},
		{"http:user:hunter2@a.example", "a.example", "no slashes"},
		{"//user:hunter2@a.example/x", "", "no scheme, slashes"},
		{"http://registry.example/@types/node", "registry.example", "an at sign in the path"},
		{"http://a.example?token=s3cret", "a.example", "a query without a path"},
		{"http://a.example\\@evil.example", "a.example", "a backslash is a slash to browsers"},
		{"/path?token=s3cret", "", "a path alone"},
		{"/path?back=http://user:hunter2@a.example", "", "a URL inside a query"},
		{"a.example:443/path?token=s3cret", "a.example:443", "a path behind a port"},
		{"*", "*", "OPTIONS"},
		{"", "", "nothing"},
	} {
		if got := Shown(tt.in); got != tt.want {
			t.Errorf("%q is told as %q, want %q (%s)", tt.in, got, tt.want, tt.reason)
		}
	}
}

// FuzzShown: what can be a target is told whole, and nothing behind a host ever is.
func FuzzShown(f *testing.F) {
	f.Add("a.example:443")
	f.Add("http://user:hunter2@a.example:8080/path?token=s3cret#frag")
	f.Fuzz(func(t *testing.T, s string) {
		got := Shown(s)
		if _, why := Parse(s); why == "" && got != s {
			t.Errorf("%q is told as %q", s, got)
		}
		if strings.ContainsAny(got, `/?#\@`) {
			t.Errorf("%q is told as %q", s, got)
		}
	})
}
