package probe

import (
	"encoding/binary"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// engineResolver is where a container on a network of the user's finds the engine's own resolver.
const engineResolver = "127.0.0.11"

// dnsDirect asks name servers that are not its own: whoever sees the question learns what is in the name.
func (p *prober) dnsDirect() result {
	t := p.Token.For("dns-direct")
	servers := []string{net.JoinHostPort(t.Outside(), "53")}
	return p.query(append(servers, p.hostTargets(false, 53)...), t)
}

// dnsEngine asks those that are.
func (p *prober) dnsEngine() result {
	servers := []string{net.JoinHostPort(engineResolver, "53"), "127.0.0.1:53"}
	conf, err := os.ReadFile("/etc/resolv.conf")
	for line := range strings.Lines(string(conf)) {
		if f := strings.Fields(line); err == nil && len(f) > 1 && f[0] == "nameserver" {
			servers = append(servers, net.JoinHostPort(f[1], "53"))
		}
	}
	return p.query(servers, p.Token.For("dns-engine"))
}

// query asks servers for a name that holds the token, over UDP and TCP. An answer that holds an address is
// through; that the question was passed on is seen outside.
func (p *prober) query(servers []string, t Token) result {
	question := ask(t.String() + ".sandplan-verify.test.")
	var all []result
	answers := make(chan result)
	for _, s := range servers {
		go func() { answers <- exchange("udp4", s, question) }()
		go func() {
			answers <- exchange("tcp4", s, append(binary.BigEndian.AppendUint16(nil, uint16(len(question))), question...))
		}()
	}
	for range 2 * len(servers) {
		all = append(all, <-answers)
	}
	return summary(first(all...), all)
}

func ask(name string) []byte {
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 4711, RecursionDesired: true}, Questions: []dnsmessage.Question{
		{Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	b, err := m.Pack()
	if err != nil {
		panic(err) // the name is ours
	}
	return b
}

func exchange(network, server string, question []byte) result {
	conn, err := net.DialTimeout(network, server, patience)
	if err != nil {
		return held("%s", reason(err))
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write(question); err != nil {
		return held("%s", reason(err))
	}
	buf := make([]byte, 4096)
	n, err := conn.Read(buf)
	if err != nil {
		return held("%s", reason(err))
	}
	reply := buf[:n]
	if network == "tcp4" && n > 2 {
		reply = reply[2:]
	}
	var m dnsmessage.Message
	if err := m.Unpack(reply); err != nil {
		return held("an answer that is no DNS")
	}
	if len(m.Answers) > 0 {
		return through("%s answers with an address", server)
	}
	return held("answered %s", strings.TrimPrefix(m.RCode.String(), "RCode"))
}
