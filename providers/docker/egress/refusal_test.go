package egress

import (
	"strings"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// TestRefusalNamesTheLimit: whoever reads a refusal knows which number it was, and where it stands.
func TestRefusalNamesTheLimit(t *testing.T) {
	cfg := testConfig()
	cfg.Limits.Tunnels, cfg.Limits.TunnelsPerSecond = 7, 9
	for _, tt := range []struct {
		reason reason.Reason
		want   []string
		not    string
	}{
		{reason.TooManyTunnels, []string{"This may pass", "limits.tunnels of " + cfg.Invocation + ", which allows 7."}, "Do not retry"},
		{reason.TooManyPerSecond, []string{"This may pass", "limits.tunnels_per_second of " + cfg.Invocation + ", which allows 9."}, "Do not retry"},
		{reason.HostNotDeclared, []string{"Do not retry", "The rule is " + cfg.Declaration + ", which allows: a.example:443."}, "limits."},
		{reason.DialFailed, []string{"This may pass"}, "limits."},
	} {
		got := cfg.refusal(tt.reason, "x.example:443", []string{"a.example:443"})
		for _, w := range tt.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q does not say %q", tt.reason, got, w)
			}
		}
		if strings.Contains(got, tt.not) {
			t.Errorf("%s: %q says %q", tt.reason, got, tt.not)
		}
	}
}
