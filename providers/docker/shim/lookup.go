//go:build linux

package shim

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/sandplan/sandplan/providers/docker/shim/inside"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// lookupBound is how long a refusal may take. It takes a millisecond, by way of the engine too.
const lookupBound = 2 * time.Second

// proveResolver compares resolv.conf and hosts, and looks a name up with every server: the question
// must come out at the shim's own resolver, which shows where it went, and be refused.
func proveResolver(cfg *Config, ch wire.Challenge, p *proof) checks {
	var c checks
	hosts, err := os.ReadFile("/etc/hosts")
	if err != nil {
		c.fail("dns.hosts", err)
	} else {
		p.report.Hosts = string(hosts)
		wrong := wrongHosts(string(hosts), cfg.Network)
		c.add("dns.hosts", len(wrong) == 0, "%s", strings.Join(wrong, "; "))
	}
	text, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		c.fail("dns.resolv_conf", err)
		return c
	}
	p.report.ResolvConf = string(text)
	wrong := inside.Nameservers(string(text), cfg.Nameservers)
	c.add("dns.resolv_conf", len(wrong) == 0, "%s", strings.Join(wrong, "; "))
	if p.resolver == nil {
		return c // which is told already
	}
	servers, _ := inside.ResolvConf(string(text))
	for i, server := range servers {
		name := fmt.Sprintf("n%d-%s.sandplan.invalid", i, label(ch.Nonce))
		p.resolver.watch(name)
		code, err := ask(net.JoinHostPort(server, "53"), name)
		asked := p.resolver.asked(name)
		switch {
		case err != nil:
			c.add("dns.refused", false, "asking %s: %v", server, err)
		case code == 0:
			c.add("dns.refused", false, "%s answered for a name that does not exist", server)
		default:
			c.add("dns.refused", asked, "%s answered with code %d, and the question did not come out at %s", server, code, resolverAddress)
		}
	}
	return c
}

// wrongHosts are the lines of a hosts file that no engine writes for this container by itself.
func wrongHosts(text string, n *Network) []string {
	hostname, err := os.Hostname()
	if err != nil {
		return []string{err.Error()}
	}
	var own []netip.Addr
	if n != nil {
		own = append(own, netip.MustParsePrefix(n.Address).Addr())
	}
	return inside.Hosts(text, hostname, own...)
}

// label makes one label of a domain name from a nonce.
func label(nonce string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return 'x'
	}, strings.ToLower(nonce))
	return clean[:min(len(clean), 32)]
}

// ask sends one question for an address and returns the response code.
func ask(server, name string) (code int, err error) {
	conn, err := net.DialTimeout("udp", server, lookupBound)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(lookupBound))
	const id = 0x5350
	if _, err := conn.Write(query(id, name)); err != nil {
		return 0, err
	}
	buf := make([]byte, maxQuery)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return 0, err
		}
		if n >= dnsHeader && binary.BigEndian.Uint16(buf) == id {
			return int(buf[3] & 0xf), nil
		}
	}
}

// query is a question for the IPv4 address of a name.
func query(id uint16, name string) []byte {
	const recursionDesired, typeA, classIN = 0x0100, 1, 1
	b := binary.BigEndian.AppendUint16(nil, id)
	b = binary.BigEndian.AppendUint16(b, recursionDesired)
	b = append(b, 0, 1, 0, 0, 0, 0, 0, 0) // one question
	for _, l := range strings.Split(name, ".") {
		b = append(append(b, byte(len(l))), l...)
	}
	b = append(b, 0)
	b = binary.BigEndian.AppendUint16(b, typeA)
	return binary.BigEndian.AppendUint16(b, classIN)
}
