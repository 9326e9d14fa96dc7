package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// patientConfig has bounds that no test waits for.
func patientConfig() *Config {
	cfg := plainConfig()
	day := (24 * time.Hour).Milliseconds()
	cfg.Limits.HeadMS, cfg.Limits.HelloMS, cfg.Limits.LookupMS, cfg.Limits.DialMS = day, day, day, day
	return cfg
}

// TestTunnelBoundsItsLookup: whoever is never answered hears so after lookup_ms, whatever else is bounded.
func TestTunnelBoundsItsLookup(t *testing.T) {
	t.Parallel()
	cfg := patientConfig()
	cfg.Limits.LookupMS = 50
	p := startProxy(t, cfg, "")
	p.set(func() {
		p.resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	if resp, _ := p.ask(connectTo(okTarget)); resp.StatusCode != 502 {
		t.Errorf("a lookup without an end: %s", resp.Status)
	}
	if e := p.awaitReason(reason.LookupFailed); e.Error != context.DeadlineExceeded.Error() {
		t.Errorf("log: %+v", e)
	}
	if _, dials := p.seen(); len(dials) != 0 {
		t.Errorf("dials %v of a name that was not found", dials)
	}
}

// TestTunnelBoundsItsDials: an address that does not answer is given up after dial_ms, and the next one has its own.
func TestTunnelBoundsItsDials(t *testing.T) {
	t.Parallel()
	cfg := patientConfig()
	cfg.Limits.DialMS = 50
	p := startProxy(t, cfg, silent(t).String())
	dial := dialOut()
	p.set(func() {
		p.answer = []netip.Addr{netip.MustParseAddr("198.50.0.1"), netip.MustParseAddr("198.50.0.2")}
		p.dialer = func(ctx context.Context, at netip.AddrPort) (net.Conn, error) { return dial(ctx, at) }
	})
	if resp, _ := p.ask(connectTo(okTarget)); resp.StatusCode != 502 {
		t.Errorf("addresses that do not answer: %s", resp.Status)
	}
	p.awaitReason(reason.DialFailed)
	if _, dials := p.seen(); strings.Join(dials, " ") != "198.50.0.1:443 198.50.0.2:443" {
		t.Errorf("dials %v", dials)
	}
}

// TestFourAddressesAtMost: a name with many dead addresses costs a tunnel four dials, in the order of the answer.
func TestFourAddressesAtMost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		answers, dials int
		reason         string
	}{{3, 3, "all that there are"}, {4, 4, "all that there are"}, {5, 4, "and no fifth"}, {60, 4, "whatever the answer holds"}} {
		p := startProxy(t, patientConfig(), "")
		var want []string
		p.set(func() {
			p.answer = nil
			for i := range tt.answers {
				a := netip.AddrFrom4([4]byte{198, 50, 1, byte(i)})
				p.answer = append(p.answer, a)
				if i < tt.dials {
					want = append(want, netip.AddrPortFrom(a, 443).String())
				}
			}
		})
		resp, _ := p.ask(connectTo(okTarget))
		if _, dials := p.seen(); resp.StatusCode != 502 || strings.Join(dials, " ") != strings.Join(want, " ") {
			t.Errorf("%d addresses: %s after the dials %v, want %v (%s)", tt.answers, resp.Status, dials, want, tt.reason)
		}
	}
}

// halved is a connection whose other direction stays open when one is closed.
type halved struct{ net.Conn }

func (halved) CloseWrite() error { return nil }

// TestRefusalTakesNoTime runs where time passes only when everybody waits: the answer is there before that, and the
// connection ends within a second, whatever its client does.
func TestRefusalTakesNoTime(t *testing.T) {
	for _, c := range []struct {
		send string
		why  reason.Reason
	}{
		{connectTo("github.com:443"), reason.HostNotDeclared},
		{connectTo(vendorName + ":22"), reason.PortNotDeclared},
		{connectTo("10.0.0.1:443"), reason.AddressLiteral},
		{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", reason.NotConnect},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, inner := pipe()
			s, err := newServer(testConfig(), world{now: time.Now}, newLog(io.Discard, time.Now, "invocation.a", 1<<20))
			if err != nil {
				t.Fatal(err)
			}
			start, done := time.Now(), make(chan struct{})
			go func() { s.handle(t.Context(), halved{inner}); close(done) }()
			if _, err := io.WriteString(client, c.send); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(client), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if took := time.Since(start); err != nil || took != 0 || resp.Header.Get("X-Sandplan-Reason") != string(c.why) {
				t.Errorf("%s: %s %q after %s, %v", c.why, resp.Status, body, took, err)
			}
			<-done
			if took := time.Since(start); took > time.Second {
				t.Errorf("%s: the connection ends after %s", c.why, took)
			}
			client.Close()
		})
	}
}

// TestMainRefusesItsOwnNetworks: a declared name that leads to where the proxy itself is, by the proxy's own wiring
// from the interfaces on. Loopback would be refused anyway, for another reason: only who was told of the networks
// gives this one.
func TestMainRefusesItsOwnNetworks(t *testing.T) {
	t.Parallel()
	ns := startNameServer(t, func(q dnsmessage.Message, _ string) []dnsmessage.Message {
		return []dnsmessage.Message{reply(q, dnsmessage.RCodeSuccess, address(vendorName+".", "127.0.0.9"))}
	})
	cfg := testConfig()
	cfg.DNS = []string{ns.addr.String()}
	cfg.Limits.SilenceMS = patience.Milliseconds()
	cfg.Limits.MemoryBytes, cfg.Limits.CPUs = 0, 0 // other tests run in this process
	s := startMain(t, cfg)
	w, ready := s.begin(t)
	go func() { _, _ = io.Copy(io.Discard, s.stdout) }()
	p := &proxy{t: t, addr: ready.Listen}
	if resp, _ := p.ask(connectTo(okTarget)); resp.Header.Get("X-Sandplan-Reason") != string(reason.OwnNetwork) {
		t.Errorf("a name at an address of a network that the proxy is on: %s", resp.Status)
	}
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	if code := s.wait(t); code != ExitStopped {
		t.Errorf("exit code %d: %s", code, s.stderr.String())
	}
	if got := ns.questions(); !strings.Contains(got, fmt.Sprintf("udp %s. TypeA", vendorName)) {
		t.Errorf("the name server was asked %q", got)
	}
}
