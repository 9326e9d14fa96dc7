package launch

import "testing"

func TestEgressTarget(t *testing.T) {
	for _, tt := range []struct{ host, want, reason string }{
		{"", NoTarget, "closed before a word, or no HTTP at all"},
		{"/", `"/"`, "a path is no target of a proxy: nobody gave it a port"},
		{"[10.0.0.1:80]\n", `"[10.0.0.1:80]\n"`, "what an agent sends is told on one line"},
	} {
		if got := (egressLine{Host: tt.host}).target(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.reason, got, tt.want)
		}
	}
	if got := (egressLine{Host: "a.example", Port: 443}).target(); got != "a.example:443" {
		t.Errorf("a host and its port: %s", got)
	}
}
