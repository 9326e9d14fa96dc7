package acl

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress/hostport"
	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

func mustNew(t testing.TB, rules ...Rule) *List {
	t.Helper()
	l, err := New(rules)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDecide(t *testing.T) {
	l := mustNew(t,
		Rule{Host: "api.example", Port: 443, TLS: true, Decl: "vendor.a"},
		Rule{Host: "api.example", Port: 8443, Decl: "vendor.b"},
		Rule{Host: "b.example", Port: 80},
	)
	tests := []struct {
		target hostport.Target
		want   reason.Reason
		reason string
	}{
		{hostport.Target{Host: "api.example", Port: 443}, reason.Allowed, "declared"},
		{hostport.Target{Host: "api.example", Port: 8443}, reason.Allowed, "declared, a second port"},
		{hostport.Target{Host: "api.example", Port: 80}, reason.PortNotDeclared, "a port of another host"},
		{hostport.Target{Host: "b.example", Port: 443}, reason.PortNotDeclared, "a port of another host"},
		{hostport.Target{Host: "api.example", Port: 0}, reason.PortNotDeclared, "no port is no wildcard"},
		{hostport.Target{Host: "x.api.example", Port: 443}, reason.HostNotDeclared, "a name below"},
		{hostport.Target{Host: "example", Port: 443}, reason.HostNotDeclared, "a name above"},
		{hostport.Target{Host: "api.example.com", Port: 443}, reason.HostNotDeclared, "a longer name"},
		{hostport.Target{Host: "apixexample", Port: 443}, reason.HostNotDeclared, "a dot is a dot"},
		{hostport.Target{Host: "API.EXAMPLE", Port: 443}, reason.HostNotDeclared, "nothing is folded here"},
		{hostport.Target{Host: "", Port: 443}, reason.HostNotDeclared, "no host is no wildcard"},
	}
	for _, tt := range tests {
		d := l.Decide(tt.target)
		if d.Reason != tt.want || d.Allowed() != (tt.want == reason.Allowed) {
			t.Errorf("%s: %q, want %q (%s)", tt.target, d.Reason, tt.want, tt.reason)
		}
		if !d.Allowed() && d.Rule.Host != "" {
			t.Errorf("%s is refused with the rule %+v", tt.target, d.Rule)
		}
	}
	if d := l.Decide(hostport.Target{Host: "api.example", Port: 8443}); d.Rule.TLS || d.Rule.Decl != "vendor.b" {
		t.Errorf("the rule of another port was found: %+v", d.Rule)
	}
	if got := l.Targets(); !slices.Equal(got, []string{"api.example:443", "api.example:8443", "b.example:80"}) {
		t.Errorf("targets %v", got)
	}
	if d := new(List).Decide(hostport.Target{Host: "a", Port: 1}); d.Allowed() {
		t.Error("the zero list allows something")
	}
}

func TestRulesMustBeCanonical(t *testing.T) {
	tests := []struct {
		name  string
		rules []Rule
		says  string
	}{
		{"capitals", []Rule{{Host: "A.example", Port: 443}}, "lower case"},
		{"final dot", []Rule{{Host: "a.example.", Port: 443}}, "final dot"},
		{"pattern", []Rule{{Host: "*.example", Port: 443}}, "HOST:PORT"},
		{"address", []Rule{{Host: "10.0.0.1", Port: 443}}, "not a name"},
		{"no port", []Rule{{Host: "a.example"}}, "port"},
		{"twice", []Rule{{Host: "a.example", Port: 1}, {Host: "a.example", Port: 1, TLS: true}}, "twice"},
		{"mapped address", []Rule{{Host: "a.example", Port: 1, Addresses: []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.1")}}}, "cannot be dialled"},
		{"no machine", []Rule{{Host: "a.example", Port: 1, Addresses: []netip.Addr{netip.MustParseAddr("0.0.0.0")}}}, "cannot be dialled"},
	}
	for _, tt := range tests {
		if _, err := New(tt.rules); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want an error with %q", tt.name, err, tt.says)
		}
	}
}

// FuzzOnlyTheExactHostPasses holds the whole way from the request's target to the decision.
func FuzzOnlyTheExactHostPasses(f *testing.F) {
	const host = "api.anthropic.com"
	for _, s := range []string{host + ":443", "API.anthropic.com:443", host + ".:443", "x" + host + ":443", host + ":4430", host + "\x00:443", "[" + host + "]:443", host + "@evil:443"} {
		f.Add(s)
	}
	l := mustNew(f, Rule{Host: host, Port: 443})
	f.Fuzz(func(t *testing.T, s string) {
		target, why := hostport.Parse(s)
		if why != reason.None {
			return
		}
		if l.Decide(target).Allowed() != (s == host+":443") {
			t.Fatalf("%q: %+v", s, l.Decide(target))
		}
	})
}
