package egress

import (
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// look connects to the proxy and leaves without a byte, as the shim does every second, until the proxy has seen it.
func (p *proxy) look() {
	p.t.Helper()
	before, standing := p.server.ids.Load(), p.standing()
	p.raw("").Close()
	for deadline := time.Now().Add(patience); ; {
		seen := p.server.ids.Load() != before
		time.Sleep(20 * time.Millisecond) // for what it does about it
		if seen && p.standing() == standing {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatal("nobody accepts, or never ends")
		}
	}
}

// standing are the connections that are open.
func (p *proxy) standing() int {
	p.server.open.mu.Lock()
	defer p.server.open.mu.Unlock()
	return len(p.server.open.conns)
}

func (p *proxy) refusals(why reason.Reason) (n int) {
	for _, e := range p.log.entries(p.t) {
		if e.Reason == why && e.Decision == Refuse {
			n++
		}
	}
	return n
}

// TestLooksCostTheAgentNothing: what is declared is the agent's, and nothing is refused that only looked.
func TestLooksCostTheAgentNothing(t *testing.T) {
	t.Run("new tunnels", func(t *testing.T) {
		cfg := testConfig()
		cfg.Limits.TunnelsPerSecond = 1
		p := startProxy(t, cfg, "")
		for range freeLooks {
			p.look()
		}
		if resp, _ := p.ask(connectTo("github.com:443")); resp.StatusCode != 403 {
			t.Errorf("the first request after %d looks: %s", freeLooks, resp.Status)
		}
		if n := p.refusals(reason.TooManyPerSecond); n > 0 {
			t.Errorf("%d looks are refused", n)
		}
	})
	t.Run("tunnels at once", func(t *testing.T) {
		cfg := testConfig()
		cfg.Limits.Tunnels = 1
		p := startProxy(t, cfg, "")
		standing := p.raw("CONNECT ")
		for deadline := time.Now().Add(patience); len(p.server.slots) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("nobody accepts")
			}
		}
		for range freeLooks {
			p.look()
		}
		if n := p.refusals(reason.TooManyTunnels); n > 0 {
			t.Errorf("%d looks are refused", n)
		}
		if resp, _ := p.ask(connectTo("github.com:443")); resp.StatusCode != 503 {
			t.Errorf("a second tunnel: %s", resp.Status)
		}
		p.awaitReason(reason.TooManyTunnels)
		standing.Close()
	})
}

// TestManyLooksCount: an agent does not get round its bound by saying nothing.
func TestManyLooksCount(t *testing.T) {
	cfg := testConfig()
	cfg.Limits.TunnelsPerSecond = 1
	p := startProxy(t, cfg, "")
	for deadline := time.Now().Add(patience); p.refusals(reason.TooManyPerSecond) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("connections without a byte are never too many")
		}
		for range 10 {
			p.raw("").Close()
		}
	}
}
