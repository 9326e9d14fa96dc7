package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer is one that answers over UDP and TCP on one port of loopback, and records what it is asked.
type nameServer struct {
	addr   netip.AddrPort
	mu     sync.Mutex
	asked  []string
	answer func(q dnsmessage.Message, network string) []dnsmessage.Message // none: silence
}

// listenBoth takes a port that is free for TCP and UDP alike; somebody may have the UDP port of a free
// TCP port.
func listenBoth(t *testing.T) (net.Listener, net.PacketConn) {
	t.Helper()
	for range 20 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if u, err := net.ListenPacket("udp", l.Addr().String()); err == nil {
			return l, u
		}
		l.Close()
	}
	t.Fatal("no port is free for TCP and UDP")
	return nil, nil
}

func startNameServer(t *testing.T, answer func(dnsmessage.Message, string) []dnsmessage.Message) *nameServer {
	t.Helper()
	l, u := listenBoth(t)
	t.Cleanup(func() { l.Close(); u.Close() })
	s := &nameServer{addr: l.Addr().(*net.TCPAddr).AddrPort(), answer: answer}
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := u.ReadFrom(buf)
			if err != nil {
				return
			}
			for _, m := range s.reply(t, buf[:n], "udp") {
				_, _ = u.WriteTo(m, from)
			}
		}
	}()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var size [2]byte
			if _, err := io.ReadFull(c, size[:]); err == nil {
				q := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(c, q); err == nil {
					for _, m := range s.reply(t, q, "tcp") {
						_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...))
					}
				}
			}
			c.Close()
		}
	}()
	return s
}

func (s *nameServer) reply(t *testing.T, query []byte, network string) (out [][]byte) {
	var q dnsmessage.Message
	if err := q.Unpack(query); err != nil || len(q.Questions) != 1 {
		t.Errorf("query %x: %v", query, err)
		return nil
	}
	s.mu.Lock()
	s.asked = append(s.asked, network+" "+q.Questions[0].Name.String()+" "+q.Questions[0].Type.String())
	s.mu.Unlock()
	for _, m := range s.answer(q, network) {
		b, err := m.Pack()
		if err != nil {
			t.Errorf("pack: %v", err)
			return nil
		}
		out = append(out, b)
	}
	return out
}

func (s *nameServer) questions() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.asked, ", ")
}

// reply makes the answer to a query.
func reply(q dnsmessage.Message, rcode dnsmessage.RCode, answers ...dnsmessage.Resource) dnsmessage.Message {
	return dnsmessage.Message{
		Header:    dnsmessage.Header{ID: q.ID, Response: true, RecursionAvailable: true, RCode: rcode},
		Questions: q.Questions, Answers: answers,
	}
}

func address(name, addr string) dnsmessage.Resource {
	return dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Class: dnsmessage.ClassINET, TTL: 1},
		Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addr).As4()},
	}
}

func alias(name, to string) dnsmessage.Resource {
	return dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Class: dnsmessage.ClassINET, TTL: 1},
		Body:   &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(to)},
	}
}

func lookupWith(t *testing.T, within time.Duration, servers ...*nameServer) ([]netip.Addr, error) {
	t.Helper()
	r := &resolver{dial: new(net.Dialer).DialContext}
	for _, s := range servers {
		r.servers = append(r.servers, s.addr)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return r.lookup(ctx, "api.example")
}

func TestLookup(t *testing.T) {
	type answer = func(q dnsmessage.Message, network string) []dnsmessage.Message
	one := func(m func(dnsmessage.Message) dnsmessage.Message) answer {
		return func(q dnsmessage.Message, _ string) []dnsmessage.Message { return []dnsmessage.Message{m(q)} }
	}
	const n = "api.example."
	tests := []struct {
		name   string
		answer answer
		want   string // addresses, or a part of the error
		ok     bool
		asked  string
		reason string
	}{
		{"addresses", one(func(q dnsmessage.Message) dnsmessage.Message {
			return reply(q, 0, address(n, "198.50.0.2"), address(n, "198.50.0.1"))
		}), "[198.50.0.2 198.50.0.1]", true, "udp api.example. TypeA", "one question, for IPv4 only, and the answer's order"},
		{"aliases", one(func(q dnsmessage.Message) dnsmessage.Message {
			return reply(q, 0, alias(n, "b.example."), alias("B.example.", "c.example."), address("c.example.", "198.50.0.1"))
		}), "[198.50.0.1]", true, "", "a chain is followed within the answer"},
		{"addresses of others", one(func(q dnsmessage.Message) dnsmessage.Message {
			return reply(q, 0, address("evil.example.", "198.50.0.9"))
		}), "no IPv4 address", false, "", "what nobody asked for is no answer"},
		{"aliases in a circle", one(func(q dnsmessage.Message) dnsmessage.Message {
			return reply(q, 0, alias(n, "b.example."), alias("b.example.", n))
		}), "no IPv4 address", false, "", "it ends"},
		{"no such name", one(func(q dnsmessage.Message) dnsmessage.Message { return reply(q, dnsmessage.RCodeNameError) }),
			"does not exist", false, "udp api.example. TypeA", "final"},
		{"no addresses", one(func(q dnsmessage.Message) dnsmessage.Message { return reply(q, 0) }),
			"no IPv4 address", false, "udp api.example. TypeA", "final"},
		{"failure", one(func(q dnsmessage.Message) dnsmessage.Message { return reply(q, dnsmessage.RCodeServerFailure) }),
			"ServerFailure", false, "udp api.example. TypeA", "said in the server's words"},
		{"another ID first", func(q dnsmessage.Message, _ string) []dnsmessage.Message {
			forged := reply(q, 0, address(n, "198.50.0.66"))
			forged.ID++
			return []dnsmessage.Message{forged, reply(q, 0, address(n, "198.50.0.1"))}
		}, "[198.50.0.1]", true, "", "a guess is passed over"},
		{"another question", one(func(q dnsmessage.Message) dnsmessage.Message {
			m := reply(q, 0, address(n, "198.50.0.1"))
			m.Questions = []dnsmessage.Question{{Name: dnsmessage.MustNewName("evil.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}
			return m
		}), "another question", false, "", "an answer belongs to its question"},
		{"cut", func(q dnsmessage.Message, network string) []dnsmessage.Message {
			m := reply(q, 0, address(n, "198.50.0.1"))
			m.Truncated = network == "udp"
			return []dnsmessage.Message{m}
		}, "[198.50.0.1]", true, "udp api.example. TypeA, tcp api.example. TypeA", "asked again over TCP"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := startNameServer(t, tt.answer)
			got, err := lookupWith(t, patience, s)
			switch {
			case tt.ok && (err != nil || fmt.Sprint(got) != tt.want):
				t.Errorf("%v, %v; want %s (%s)", got, err, tt.want, tt.reason)
			case !tt.ok && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, %v; want an error with %q (%s)", got, err, tt.want, tt.reason)
			}
			if tt.asked != "" && s.questions() != tt.asked {
				t.Errorf("asked %q, want %q", s.questions(), tt.asked)
			}
		})
	}
}

func TestLookupGoesOnToTheNextServer(t *testing.T) {
	good := func(q dnsmessage.Message, _ string) []dnsmessage.Message {
		return []dnsmessage.Message{reply(q, 0, address("api.example.", "198.50.0.1"))}
	}
	second := startNameServer(t, good)
	failing := startNameServer(t, func(q dnsmessage.Message, _ string) []dnsmessage.Message {
		return []dnsmessage.Message{reply(q, dnsmessage.RCodeServerFailure)}
	})
	silent := startNameServer(t, func(dnsmessage.Message, string) []dnsmessage.Message { return nil })
	for name, first := range map[string]*nameServer{"fails": failing, "silent": silent} {
		if got, err := lookupWith(t, patience, first, second); err != nil || len(got) != 1 {
			t.Errorf("the first server %s: %v, %v", name, got, err)
		}
	}
	start := time.Now()
	if _, err := lookupWith(t, 50*time.Millisecond, silent); err == nil || errors.Is(err, errNoAddress) {
		t.Errorf("silence is taken for an answer: %v", err)
	}
	if d := time.Since(start); d >= tryFor {
		t.Errorf("the bound of a lookup was passed: %s", d)
	}
}

// TestNoQueryForARefusal: the whole proxy, with its own resolver.
func TestNoQueryForARefusal(t *testing.T) {
	flips := 0
	ns := startNameServer(t, func(q dnsmessage.Message, _ string) []dnsmessage.Message {
		flips++
		if flips > 1 { // public for whoever checks, private for whoever dials
			return []dnsmessage.Message{reply(q, 0, address(q.Questions[0].Name.String(), "10.0.0.1"))}
		}
		return []dnsmessage.Message{reply(q, 0, address(q.Questions[0].Name.String(), vendorAddr))}
	})
	cfg := testConfig()
	cfg.DNS = []string{ns.addr.String()}
	p := startProxy(t, cfg, vendor(t, nil))
	w, err := realWorld(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.resolve = w.lookup
	p.mu.Unlock()
	p.ask(connectTo("secret-in-a-name.attacker.example:443"))
	p.ask(connectTo(vendorName + ":8443"))
	if q := ns.questions(); q != "" {
		t.Errorf("refused requests made the queries %s", q)
	}
	p.tunnel(vendorName + ":443")
	if q := ns.questions(); q != "udp "+vendorName+". TypeA" {
		t.Errorf("a tunnel made the queries %q, want one", q)
	}
	if _, dials := p.seen(); len(dials) != 1 || dials[0] != vendorAddr+":443" {
		t.Errorf("dials %v", dials)
	}
}
