//go:build !sandplantest

package policy

import (
	"reflect"
	"strings"
	"testing"
)

// TestReleasedBuildCannotBeLedElsewhere: the variables of the test build, the vendors' own and the ones
// that name a bundle of certificates change nothing of a sealed command.
func TestReleasedBuildCannotBeLedElsewhere(t *testing.T) {
	for _, kind := range builtinKinds() {
		before, err := Seal(fullSpec(), "invocation."+kind+"_fix")
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"SANDPLAN_TEST_VENDOR_ADDRESS": "10.9.9.9", "SANDPLAN_TEST_VENDOR_CA": "/evil.pem", "SANDPLAN_TEST_VENDOR_CLI": kind + " 9.9.9 " + strings.Repeat("0", 64),
			"ANTHROPIC_BASE_URL": "https://evil.example", "OPENAI_BASE_URL": "https://evil.example",
			"NODE_EXTRA_CA_CERTS": "/evil.pem", "CODEX_CA_CERTIFICATE": "/evil.pem", "SSL_CERT_FILE": "/evil.pem",
		} {
			t.Setenv(name, value)
		}
		after, err := Seal(fullSpec(), "invocation."+kind+"_fix")
		if err != nil {
			t.Fatal(err)
		}
		if before.Digest() != after.Digest() || !reflect.DeepEqual(before, after) {
			t.Errorf("%s: the environment of the process changes the sealed command", kind)
		}
		if _, _, ok := IdentifyCLI(strings.Repeat("0", 64)); ok || proven(kind, "9.9.9") {
			t.Errorf("%s: the environment of the process makes a version proven", kind)
		}
		for _, h := range after.Hosts() {
			if len(h.Addresses) > 0 || h.Port != 443 || !h.TLS {
				t.Errorf("%s: %s is fixed at %v, port %d, TLS %t", kind, h.Name, h.Addresses, h.Port, h.TLS)
			}
		}
	}
}
