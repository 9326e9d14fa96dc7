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

// TestEgressCounts: whatever was refused is in the record, however the proxy tells it, and nothing else is.
func TestEgressCounts(t *testing.T) {
	l := newEgressLog(nil)
	if _, err := l.Write([]byte(`{"seq":1,"event":"decision","host":"a.example","port":443,"decision":"allow","reason":"allowed"}
{"seq":2,"event":"decision","host":"a.example","port":443,"decision":"refuse","reason":"sni_differs","sni":"evil.example"}
{"seq":3,"event":"closed","host":"a.example","port":443,"reason":"sni_differs","up":10,"down":20}
{"seq":4,"event":"repeated","host":"a.example","port":443,"decision":"refuse","reason":"sni_differs","sni":"evil.example","count":2}
{"seq":5,"event":"unlisted","decision":"refuse","reason":"host_not_declared","count":7}
{"seq":6,"event":"unlisted","decision":"refuse","reason":"not_http","count":1}
{"seq":7,"event":"decision","host":"a.example","port":443,"decision":"refuse","reason":"stopping"}
{"seq":8,"event":"end"}
`)); err != nil {
		t.Fatal(err)
	}
	got := l.summary()
	if len(got.Allowed) != 1 || got.Allowed["a.example:443"] != 1 {
		t.Errorf("allowed: %v", got.Allowed)
	}
	if len(got.Refused) != 2 || got.Refused["a.example:443"] != 3 || got.Refused[Unlisted] != 8 {
		t.Errorf("refused: %v; a tunnel that was refused later, two like it, and eight that are not listed", got.Refused)
	}
	if got.Up != 10 || got.Down != 20 || got.Incomplete != "" {
		t.Errorf("%+v", got)
	}
}
