package probe

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
)

func (p *prober) egressICMP() result {
	t := p.Token.For("egress-icmp4")
	return p.ping([]string{t.Outside()}, t)
}

func (p *prober) hostICMP() result {
	var hosts []string
	for _, text := range p.HostAddresses {
		if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
			hosts = append(hosts, text)
		}
	}
	return p.ping(hosts, p.Token.For("host-icmp4"))
}

// ping sends echo requests by both kinds of socket that can, and waits for one reply.
func (p *prober) ping(hosts []string, t Token) result {
	message := icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: 1, Seq: 1, Data: []byte(t.String())}}
	packet, err := message.Marshal(nil)
	if err != nil {
		return held("%v", err)
	}
	all := make([]result, 0, 2)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, network := range []string{"udp4", "ip4:icmp"} {
		wg.Go(func() {
			r := pingBy(network, hosts, packet)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, r)
		})
	}
	wg.Wait()
	return first(all...)
}

func pingBy(network string, hosts []string, packet []byte) result {
	conn, err := icmp.ListenPacket(network, "0.0.0.0")
	if err != nil {
		return held("%s", reason(err))
	}
	defer conn.Close()
	for _, h := range hosts {
		var to net.Addr = &net.UDPAddr{IP: net.ParseIP(h)}
		if network != "udp4" {
			to = &net.IPAddr{IP: net.ParseIP(h)}
		}
		for range 2 {
			_, _ = conn.WriteTo(packet, to)
		}
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return held("%s", reason(err))
		}
		if m, err := icmp.ParseMessage(1, buf[:n]); err == nil && m.Type == ipv4.ICMPTypeEchoReply {
			return through("%s answers", from)
		}
	}
}
