package egress

import (
	"bytes"
	"crypto/tls"
	"io"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// TestRefusedHelloIsToldInTLS: whatever is wrong with a hello, a client that speaks TLS sees why it ends, and one
// that does not gets no bytes that it cannot read.
func TestRefusedHelloIsToldInTLS(t *testing.T) {
	right := helloBytes(t, &tls.Config{ServerName: vendorName})
	for _, tt := range []struct {
		name   string
		send   []byte
		why    reason.Reason
		told   bool
		reason string
	}{
		{"early data", withExtension(right, 42, nil), reason.HelloEarlyData, true, "a client that resumes a session"},
		{"another name", helloBytes(t, &tls.Config{ServerName: "evil.example"}), reason.SNIDiffers, true, "a wrong name"},
		{"no name", helloBytes(t, &tls.Config{InsecureSkipVerify: true}), reason.SNIMissing, true, "an address for a name"},
		{"ECH", withExtension(right, 0xfe0d, []byte{0, 0}), reason.ECH, true, "a browser"},
		{"malformed", []byte{22, 3, 1, 0, 0}, reason.HelloMalformed, true, "a record of TLS all the same"},
		{"too large", []byte{22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff}, reason.HelloTooLarge, true, "by what it announces"},
		{"too slow", right[:20], reason.HelloTooSlow, true, "it waits for the rest, or for an answer"},
		{"nothing", nil, reason.HelloTooSlow, false, "who says nothing may speak anything"},
		{"HTTP", []byte("GET / HTTP/1.1\r\n\r\n"), reason.NotTLS, false, "an alert is no HTTP"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig()
			if tt.why == reason.HelloTooSlow {
				cfg.Limits.HelloMS = 3000 // long enough to send what there is
			}
			p := startProxy(t, cfg, vendor(t, nil))
			c := p.tunnel(okTarget)
			if _, err := c.Write(tt.send); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(c)
			if err != nil && (tt.told || !strings.Contains(err.Error(), "reset")) {
				t.Errorf("it ends with %v (%s)", err, tt.reason)
			}
			if bytes.Equal(rest, tlsAlert) != tt.told || !tt.told && len(rest) > 0 {
				t.Errorf("told %x, want an alert: %v (%s)", rest, tt.told, tt.reason)
			}
			p.awaitReason(tt.why)
		})
	}
}
