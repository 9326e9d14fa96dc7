package launch

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// What the inside has seen is told with what the host shows of it: who answered, and what is wrong with the network.
func TestChangedInsideTellsWhatTheHostShows(t *testing.T) {
	const said = "192.0.2.2 answers on eth0 with 52:a9:d0:b7:8b:6e (stale)"
	for name, tampered := range map[string]bool{"something is wrong with the network": true, "nothing is left to be seen": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newBench(t)
				b.agentProgram(func(p *fakeProcess) int {
					l := wire.Hold(p.stdin, wire.Silence)
					ch, err := l.Challenge(context.Background())
					if err != nil {
						return 1
					}
					l.AllowBundle()
					_ = wire.WriteReport(p.stdout, goodReport(ch))
					if _, err := l.Bundle(context.Background()); err != nil {
						return 1
					}
					time.Sleep(10 * time.Millisecond) // well before the next look
					if tampered {
						b.tamper(login.With(planner.PartNetwork))
					}
					_ = wire.WriteExit(p.stderr, wire.Exit{Token: ch.Token, By: wire.ByShim, Cause: wire.CauseProof, Detail: said})
					return 121
				})
				res := b.run(t.Context())
				if res.Code != int(CodeDrift) || !strings.Contains(res.Decision.Error(), said+"; 52:a9:d0:b7:8b:6e is no interface of this machine") {
					t.Errorf("code %d (%v)", res.Code, res.Decision)
				}
				if fs := res.Decision.Findings; tampered != (len(fs) == 1) || tampered && fs[0].Addr != login.With(planner.PartNetwork) {
					t.Errorf("the host shows %v", fs)
				}
			})
		})
	}
}

func TestWhoseLinkAddress(t *testing.T) {
	mac := func(s string) net.HardwareAddr {
		a, err := net.ParseMAC(s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	links := []net.Interface{{Name: "lo"}, {Name: "veth1", HardwareAddr: mac("5a:00:00:00:00:01")}, {Name: "veth2", HardwareAddr: mac("5a:00:00:00:00:02")}}
	bridge := func(link string) string { return map[string]string{"veth1": "sp-0123456789ab"}[link] }
	for text, want := range map[string]string{
		"10.0.0.1 answers on eth0 with 5a:00:00:00:00:01": "; 5a:00:00:00:00:01 is this machine's interface veth1, a port of sp-0123456789ab",
		"10.0.0.1 answers on eth0 with 5a:00:00:00:00:02": "; 5a:00:00:00:00:02 is this machine's interface veth2",
		"10.0.0.1 answers on eth0 with 5a:00:00:00:00:03": "; 5a:00:00:00:00:03 is no interface of this machine by now",
		"the interfaces have changed: fe80::5a:0:1":       "",
	} {
		if got := whose(text, links, bridge); got != want {
			t.Errorf("%s%s, want %s", text, got, want)
		}
	}
}
