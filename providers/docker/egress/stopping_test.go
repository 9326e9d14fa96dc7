package egress

import (
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// TestRunsEndIsNobodysFault: whatever a tunnel waits for when the run ends, its line says that the run ended.
func TestRunsEndIsNobodysFault(t *testing.T) {
	up := upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) })
	for _, tt := range []struct {
		name string
		cfg  *Config
		wait func(*proxy) // until a tunnel is where it will be cut short
	}{
		{"in its request", testConfig(), func(p *proxy) { p.raw("CONNECT x") }},
		{"in its lookup", testConfig(), func(p *proxy) {
			looking := make(chan struct{})
			p.set(func() {
				p.resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) {
					close(looking)
					<-ctx.Done()
					return nil, ctx.Err()
				}
			})
			p.raw(connectTo(okTarget))
			<-looking
		}},
		{"in its dial", testConfig(), func(p *proxy) {
			dialling := make(chan struct{})
			p.set(func() {
				p.dialer = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
					close(dialling)
					<-ctx.Done()
					return nil, ctx.Err()
				}
			})
			p.raw(connectTo(okTarget))
			<-dialling
		}},
		{"before its hello", testConfig(), func(p *proxy) { p.tunnel(okTarget) }},
		{"in its silence", plainConfig(), func(p *proxy) { p.tunnel(okTarget); p.awaitReason(reason.Allowed) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := startProxy(t, tt.cfg, up)
			tt.wait(p)
			for deadline := time.Now().Add(patience); len(p.server.slots) == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("nobody accepts")
				}
			}
			p.end()
			p.server.log.End("over")
			es := p.log.entries(t)
			for _, e := range es[:len(es)-1] {
				if e.Reason != reason.Stopping && e.Reason != reason.Allowed || e.Error != "" {
					t.Errorf("%+v", e)
				}
			}
			if es[len(es)-1].Counts[reason.Stopping] == 0 && tt.cfg.Hosts[0].TLS {
				t.Errorf("no line says so: %+v", es)
			}
		})
	}
}
