package hclspec

import (
	"strings"
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	tests := []struct {
		text   string
		want   time.Duration
		err    string
		reason string
	}{
		{"90s", 90 * time.Second, "", "more than a minute in seconds"},
		{"1h30m", 90 * time.Minute, "", ""},
		{"168h", 168 * time.Hour, "", "the largest"},
		{"168h1s", 0, `not between "1s" and "168h"`, ""},
		{"0s", 0, `not between`, ""},
		{"", 0, "not a duration", ""},
		{"30", 0, `did you mean "30s" or "30m"`, "a bare number"},
		{"30 m", 0, "not a duration", ""},
		{"1.5h", 0, "not a duration", "one way to write it"},
		{"-5m", 0, "not a duration", ""},
		{"1d", 0, "not a duration", ""},
		{"30m1h", 0, "not a duration", "order"},
		{"999999999999999h", 0, "not a duration", "overflow"},
		{"999999h", 0, "not between", "no overflow"},
	}
	for _, test := range tests {
		got, err := parseDuration(test.text)
		check(t, test.text, got == test.want || test.err != "", err, test.err, test.reason)
	}
}

func check(t *testing.T, text string, equal bool, err error, want, reason string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%q is refused: %v (%s)", text, err, reason)
	case want == "" && !equal:
		t.Errorf("%q means something else (%s)", text, reason)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%q: got %v, want an error with %q (%s)", text, err, want, reason)
	}
}

func TestSizes(t *testing.T) {
	tests := []struct {
		text   string
		want   int64
		err    string
		reason string
	}{
		{"2GiB", 2 << 30, "", ""},
		{"1024B", 1024, "", "the smallest"},
		{"1TiB", 1 << 40, "", "the largest"},
		{"1025GiB", 0, "not between 1KiB and 1TiB", ""},
		{"1023B", 0, "not between", ""},
		{"999999999999TiB", 0, "not between", "no overflow"},
		{"2G", 0, `did you mean "2GiB"`, "docker's spelling"},
		{"2gb", 0, `did you mean "2GiB"`, "decimal or binary? neither"},
		{"512", 0, "not a size", "bytes must be said"},
		{"1.5GiB", 0, "not a size", ""},
		{"GiB", 0, "not a size", ""},
		{"", 0, "not a size", ""},
	}
	for _, test := range tests {
		got, err := parseSize(test.text, 1<<10, 1<<40)
		check(t, test.text, got == test.want || test.err != "", err, test.err, test.reason)
	}
	for _, n := range []int64{1, 1024, 1536, 10 << 20, 2 << 30, 1 << 40} {
		if back, err := parseSize(FormatSize(n), 1, 1<<40); err != nil || back != n {
			t.Errorf("%d is written as %q", n, FormatSize(n))
		}
	}
}

func TestHostnames(t *testing.T) {
	tests := []struct{ text, err, reason string }{
		{"api.anthropic.com", "", ""},
		{"a.b", "", "the shortest"},
		{"1password.example", "", "a digit may come first"},
		{"vendor.sandplan.test", "", ""},
		{strings.Repeat("a", 63) + ".example", "", "the longest label"},
		{strings.Repeat("a", 64) + ".example", "1 to 63", ""},
		{strings.Repeat("a.", 127) + "example", "253", ""},
		{"API.example", `did you mean "api.example"`, "one spelling"},
		{"api.example.", `did you mean "api.example"`, "one spelling"},
		{"localhost", "one label", ""},
		{"*.example", "wildcard", ""},
		{"10.0.0.1", "is an address", ""},
		{"::1", "is an address", ""},
		{"[::1]", "is an address", ""},
		{"127.1", "ends in a number", "inet_aton reads it as 127.0.0.1"},
		{"0x7f.0x1", "ends in a number", "so does this"},
		{"1.2.3.4.5", "ends in a number", ""},
		{"2130706433", "one label", ""},
		{"a.0", "ends in a number", ""},
		{"аpi.example", "outside ASCII", "a Cyrillic letter"},
		{"api。example", "outside ASCII", "an ideographic full stop"},
		{"xn--pi-6kc.example", "encoded international", "the same Cyrillic letter, encoded"},
		{"a..b", "is not a host name", ""},
		{".a.b", "is not a host name", ""},
		{"a-.b", "is not a host name", ""},
		{"a_b.c", "is not a host name", ""},
		{"a b.c", "is not a host name", ""},
		{"a.b\n", "is not a host name", ""},
		{"a.b\x00", "is not a host name", ""},
		{"https://a.b", "is a URL", ""},
		{"a.b/c", "is a URL", ""},
		{"user@a.b", "is a URL", ""},
		{"a.b:443", "has a port", ""},
		{"", "empty", ""},
	}
	for _, test := range tests {
		check(t, test.text, true, checkHostname(test.text), test.err, test.reason)
	}
}

func TestEnvNames(t *testing.T) {
	for _, name := range []string{"A", "_x", "NPM_TOKEN_FILE", "CI", "LANG", "LC_ALL", "TZ", "NO_COLOR", "LDAP_URL", "GITHUB_REF", "PYTEST"} {
		if err := checkEnvName(name); err != nil {
			t.Errorf("%s is refused: %v", name, err)
		}
	}
	for _, name := range []string{"HTTP_PROXY", "https_proxy", "No_Proxy", "ALL_PROXY", "FTP_PROXY", "npm_config_proxy", "LD_PRELOAD", "LD_AUDIT", "ld_library_path",
		"GLIBC_TUNABLES", "GCONV_PATH", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED", "BUN_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "PERL5OPT",
		"RUBYOPT", "JAVA_TOOL_OPTIONS", "BASH_ENV", "ENV", "BASH_FUNC_x", "PS4", "PATH", "HOME", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "SSL_CERT_FILE", "HOSTALIASES", "AWS_CA_BUNDLE", "RESOLV_HOST_CONF", "MAKEFLAGS", "RUSTC_WRAPPER", "SSH_ASKPASS", "LESSOPEN", "ELECTRON_RUN_AS_NODE", "CURL_HOME",
		"RES_OPTIONS", "SANDPLAN_X", "", "1A", "A B", "A=B", "A-B", "Ä", "A\x00", strings.Repeat("A", 129)} {
		if err := checkEnvName(name); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

func TestImages(t *testing.T) {
	tests := []struct{ text, err, reason string }{
		{"a:1", "", ""},
		{"codeboost/agent:2.1", "", ""},
		{"registry.example:5000/a/b_c/d-e:v1.2-x_Y", "", ""},
		{"a@" + digestA, "", ""},
		{"a:1@" + digestA, "", "both"},
		{digestA, "", "a bare ID"},
		{"localhost/a:1", "", ""},
		{"a", `did you mean "a:latest"`, "what latest is, it should say"},
		{"registry.example:5000/a", `did you mean "registry.example:5000/a:latest"`, "a port is no tag"},
		{"A:1", `did you mean "a:1"`, ""},
		{"a:", "is not an image", ""},
		{"a@sha256:12", "is not an image", ""},
		{"a@md5:" + digestA[7:], "is not an image", ""},
		{"-a:1", "is not an image", "an option to somebody"},
		{"a:1 b", "is not an image", ""},
		{"a:1\n", "is not an image", ""},
		{"a//b:1", "is not an image", ""},
		{"https://a/b:1", "is not an image", ""},
		{"", "is not an image", ""},
	}
	for _, test := range tests {
		check(t, test.text, true, checkImage(test.text), test.err, test.reason)
	}
}

func TestPools(t *testing.T) {
	tests := []struct{ text, err, reason string }{
		{"10.213.0.0/16", "", ""},
		{"10.0.0.0/8", "", "the largest"},
		{"192.168.8.0/21", "", "the smallest"},
		{"172.16.0.0/12", "", ""},
		{"192.168.8.0/22", "8 to 21", "the uplink alone fills it"},
		{"10.213.7.0/16", `did you mean "10.213.0.0/16"`, ""},
		{"8.8.0.0/16", "not private", ""},
		{"172.16.0.0/11", "bits set behind", ""},
		{"172.0.0.0/11", "not private", "it holds a private range and more"},
		{"10.0.0.0/7", "8 to 21", ""},
		{"fd00::/16", "not an IPv4 network", ""},
		{"10.213.0.0", "not an IPv4 network", ""},
		{"010.0.0.0/8", "not an IPv4 network", ""},
		{"10.0.0.0/08", "not an IPv4 network", ""},
	}
	for _, test := range tests {
		_, err := parsePool(test.text)
		check(t, test.text, true, err, test.err, test.reason)
	}
}

func TestAddresses(t *testing.T) {
	tests := []struct{ text, err, reason string }{
		{"10.1.2.3", "", ""},
		{"8.8.8.8", "", "public ones too"},
		{"127.0.0.1", "loopback", ""},
		{"0.0.0.0", "no single machine", ""},
		{"0.1.2.3", "no single machine", "this network"},
		{"224.0.0.1", "no single machine", ""},
		{"255.255.255.255", "no single machine", ""},
		{"::ffff:10.1.2.3", "not an IPv4 address", "a mapped address is another spelling"},
		{"fd00::1", "no IPv6", ""},
		{"010.1.2.3", "not an address", "octal to some"},
		{"10.1.2", "not an address", ""},
		{"a.b", "not an address", ""},
	}
	for _, test := range tests {
		_, err := parseAddress(test.text)
		check(t, test.text, true, err, test.err, test.reason)
	}
}

func TestPaths(t *testing.T) {
	for text, want := range map[string]string{"/a/../b/": "/b", "x": "/conf/x", "../x": "/x", ".": "/conf", "a~b": "/conf/a~b"} {
		if got, err := absolute("/conf", text); err != nil || got != want {
			t.Errorf("%q: got %q %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "~", "~/x", "a\nb", "a\x00b", strings.Repeat("a", 5000)} {
		if got, err := absolute("/conf", text); err == nil {
			t.Errorf("%q is taken for %q", text, got)
		}
	}
}

func TestSuggestions(t *testing.T) {
	tests := []struct{ given, want string }{{"reveiw", "review"}, {"fixx", "fix"}, {"deploy", ""}, {strings.Repeat("x", 1000), ""}}
	for _, test := range tests {
		if got := nearest(test.given, []string{"execute", "fix", "planning", "review"}); got != test.want {
			t.Errorf("%.20q: got %q, want %q", test.given, got, test.want)
		}
	}
}
