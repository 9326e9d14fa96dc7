package launch

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// TestReadyLineIsCompared: whatever a proxy reports that is not declared, and whatever it does not report, refuses
// the run before the agent's container is even started.
func TestReadyLineIsCompared(t *testing.T) {
	proxy, agent := login.With(planner.PartProxy), login.With(planner.PartAgent)
	without := func(name string) func(*wire.Ready) {
		return func(r *wire.Ready) {
			r.Checks = slices.DeleteFunc(r.Checks, func(c wire.Check) bool { return c.Name == name })
		}
	}
	for name, c := range map[string]struct {
		change func(*wire.Ready)
		fails  string // the check; none when it is as it should be
		says   string // what was found
		reason string
	}{
		"as declared": {func(*wire.Ready) {}, "", "", "nothing right is refused"},
		"reordered": {func(r *wire.Ready) {
			slices.Reverse(r.Addresses)
			slices.Reverse(r.Routes)
		}, "", "", "engines name interfaces in their own order"},
		"nameserver": {func(r *wire.Ready) { r.ResolvConf = "nameserver 6.6.6.6\n" }, "dns.resolv_conf",
			"name servers are [6.6.6.6], declared [127.0.0.11]", "daemon.json"},
		"search domain": {func(r *wire.Ready) { r.ResolvConf += "search evil.example\n" }, "dns.resolv_conf", "search evil.example", "names turn into others"},
		"hosts":         {func(r *wire.Ready) { r.Hosts += "6.6.6.6 api.example\n" }, "dns.hosts", "6.6.6.6 api.example", "an extra host"},
		"interface": {func(r *wire.Ready) {
			r.Addresses = append(r.Addresses, wire.Address{Interface: "eth9", Prefix: "10.9.9.9/24"})
		}, "net.addresses", "eth9 has the address \"10.9.9.9/24\"", "docker network connect"},
		"default route": {func(r *wire.Ready) {
			r.Routes = append(r.Routes, wire.Route{Interface: "eth9", Dest: "0.0.0.0/0", Gateway: "10.9.9.1"})
		}, "net.routes", "0.0.0.0/0 via 10.9.9.1 on eth9 is not declared", "another way out"},
		"inner route": {func(r *wire.Ready) {
			r.Routes = append(r.Routes, wire.Route{Interface: "eth1", Dest: "192.0.2.0/24", Gateway: "10.0.0.3"})
		}, "net.routes", "192.0.2.0/24 via 10.0.0.3 on eth1", "the agent answers for others"},
		"listen":           {func(r *wire.Ready) { r.Listen = "0.0.0.0:9" }, "net.listen", "\"0.0.0.0:9\", declared 10.0.0.2:3128", "the uplink too"},
		"no checks":        {func(r *wire.Ready) { r.Checks = nil }, "proc.no_new_privs", "lacks this check", "nothing was looked at"},
		"no user check":    {without("proc.uid"), "proc.uid", "lacks this check", "an older proxy, or none of ours"},
		"no capabilities":  {without("proc.cap_bnd"), "proc.cap_bnd", "lacks this check", "the same"},
		"no seccomp check": {without("proc.seccomp"), "proc.seccomp", "lacks this check", "the same"},
		"no setting":       {without("sysctl.net.ipv4.ip_forward"), "sysctl.net.ipv4.ip_forward", "lacks this check", "it might be a router"},
		"failed check": {func(r *wire.Ready) { r.Checks[1] = wire.Check{Name: "proc.uid", Detail: "UIDs are [0 0 0 0]"} }, "proc.uid",
			"UIDs are [0 0 0 0]", "what only the proxy can see"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newBench(t)
				b.programs[proxy] = func(p *fakeProcess) int {
					l := wire.Hold(p.stdin, wire.Silence)
					ch, err := l.Challenge(context.Background())
					if err != nil {
						return 1
					}
					r := goodReady(ch.Nonce)
					c.change(&r)
					_ = wire.WriteReady(p.stdout, r)
					<-l.Done()
					_, _ = p.stdout.Write([]byte(proxyLines))
					return 0
				}
				res := b.run(t.Context())
				if c.fails == "" {
					if res.Code != 0 {
						t.Errorf("code %d, %v (%s)", res.Code, res.Decision, c.reason)
					}
					return
				}
				if res.Code != int(CodeRefused) || !strings.Contains(res.Decision.Error(), "the proxy is not as declared") || len(res.Decision.Checks) == 0 {
					t.Fatalf("code %d, %v; want 125 (%s)", res.Code, res.Decision, c.reason)
				}
				if got := res.Decision.Checks[0]; got.Name != c.fails || !strings.Contains(got.Detail, c.says) {
					t.Errorf("%s: %q, want %s that says %q (%s)", got.Name, got.Detail, c.fails, c.says, c.reason)
				}
				if slices.Contains(b.calls, "start "+string(agent)) {
					t.Errorf("the agent was started (%s)", c.reason)
				}
			})
		})
	}
}
