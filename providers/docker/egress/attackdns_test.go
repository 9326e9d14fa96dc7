package egress

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// dnsAttack is an answer that somebody upstream gives; cut says that it comes over UDP cut off.
type dnsAttack struct {
	name    string
	answers func() []dnsmessage.Resource
	cut     bool
	raw     []byte
	why     reason.Reason
}

func dnsAttacks() []dnsAttack {
	const n = vendorName + "."
	at := func(addrs ...string) func() []dnsmessage.Resource {
		return func() (out []dnsmessage.Resource) {
			for _, a := range addrs {
				out = append(out, address(n, a))
			}
			return out
		}
	}
	many := func() (out []dnsmessage.Resource) {
		for i := range 200 {
			out = append(out, address(n, "198.50.1."+strconv.Itoa(i)))
		}
		return append(out, address(n, "10.0.0.1"))
	}
	return []dnsAttack{
		{name: "a metadata service", answers: at("169.254.169.254"), why: reason.Metadata},
		{name: "loopback", answers: at("127.0.0.1"), why: reason.OwnNetwork},
		{name: "a private address", answers: at("192.168.1.1"), why: reason.Private},
		{name: "a carrier's network", answers: at("100.64.0.1"), why: reason.CGNAT},
		{name: "this network", answers: at("0.0.0.0"), why: reason.Unspecified},
		{name: "broadcast", answers: at("255.255.255.255"), why: reason.Broadcast},
		{name: "multicast", answers: at("224.0.0.1"), why: reason.Multicast},
		{name: "public and private mixed", answers: at("198.50.0.1", "10.0.0.1"), why: reason.Private},
		{name: "200 public and one private, over TCP", answers: many, cut: true, why: reason.Private},
		{name: "cut over UDP, private over TCP", answers: at("10.0.0.1"), cut: true, why: reason.Private},
		{name: "an alias to a private address", answers: func() []dnsmessage.Resource {
			return []dnsmessage.Resource{alias(n, "x.evil.example."), address("x.evil.example.", "10.0.0.1")}
		}, why: reason.Private},
		{name: "an alias out of the answer", answers: func() []dnsmessage.Resource {
			return []dnsmessage.Resource{alias(n, "localhost.")}
		}, why: reason.NoAddress},
		{name: "aliases in a circle", answers: func() []dnsmessage.Resource {
			return []dnsmessage.Resource{alias(n, "b.example."), alias("b.example.", n)}
		}, why: reason.NoAddress},
		{name: "a chain of 20 aliases", answers: func() (out []dnsmessage.Resource) {
			from := n
			for i := range 20 {
				to := fmt.Sprintf("a%d.example.", i)
				out = append(out, alias(from, to))
				from = to
			}
			return append(out, address(from, "198.50.0.1"))
		}, why: reason.NoAddress},
		{name: "an address of another name", answers: func() []dnsmessage.Resource {
			return []dnsmessage.Resource{address("evil.example.", "198.50.0.1")}
		}, why: reason.NoAddress},
		{name: "no address", answers: at(), why: reason.NoAddress},
		{name: "garbage", raw: bytes.Repeat([]byte{0xff}, 300), why: reason.LookupFailed},
		{name: "a name that points at itself", raw: []byte{0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0, 0xc0, 0x0c, 0, 1, 0, 1}, why: reason.LookupFailed},
	}
}

func TestAttackDNS(t *testing.T) {
	for _, a := range dnsAttacks() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			ns := startNameServer(t, func(q dnsmessage.Message, network string) []dnsmessage.Message {
				m := reply(q, 0)
				if m.Truncated = a.cut && network == "udp"; !m.Truncated {
					m.Answers = a.answers()
				}
				return []dnsmessage.Message{m}
			})
			if a.raw != nil {
				ns = startRawNameServer(t, a.raw)
			}
			cfg := testConfig()
			cfg.DNS = []string{ns.addr.String()}
			if a.raw != nil { // which says, read as an answer, that it goes on over TCP
				cfg.Limits.LookupMS = 1500
			}
			w, err := realWorld(cfg, nil)
			if err != nil {
				t.Fatal(err)
			}
			p := startProxy(t, cfg, "")
			p.mu.Lock()
			p.resolve = w.lookup
			p.mu.Unlock()
			resp, body := p.ask(connectTo(okTarget))
			if got := resp.Header.Get("X-Sandplan-Reason"); got != string(a.why) {
				t.Errorf("%s: %s; want %s", resp.Status, body, a.why)
			}
			if _, dials := p.seen(); len(dials) > 0 {
				t.Errorf("it dialled %v", dials)
			}
		})
	}
}

// startRawNameServer answers every query over UDP with the query's ID and these bytes.
func startRawNameServer(t *testing.T, raw []byte) *nameServer {
	l, u := listenBoth(t)
	t.Cleanup(func() { l.Close(); u.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := u.ReadFrom(buf)
			if err != nil {
				return
			}
			if n > 2 {
				_, _ = u.WriteTo(append(bytes.Clone(buf[:2]), raw...), from)
			}
		}
	}()
	return &nameServer{addr: l.Addr().(*net.TCPAddr).AddrPort()}
}
