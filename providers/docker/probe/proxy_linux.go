package probe

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// proxyPatience bounds one conversation with a proxy. It answers at once what it refuses.
const proxyPatience = 15 * time.Second

// greeting is what the canary says over TLS, so that "it answered" means the canary and nobody else.
func greeting(session string) string { return "sandplan canary " + session }

// tunnel asks a proxy for a tunnel.
func tunnel(proxy, target, host string) (net.Conn, int, error) {
	conn, err := net.DialTimeout("tcp4", proxy, proxyPatience)
	if err != nil {
		return nil, 0, err
	}
	_ = conn.SetDeadline(time.Now().Add(proxyPatience))
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, host); err != nil {
		conn.Close()
		return nil, 0, err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), &http.Request{Method: http.MethodConnect})
	if err != nil {
		conn.Close()
		return nil, 0, err
	}
	return conn, resp.StatusCode, nil
}

// ask tries one tunnel, and speaks through it if there is one.
func (p *prober) ask(target, host, text string) result {
	if p.Proxy == "" {
		return result{absent: true, detail: "there is no proxy"}
	}
	conn, status, err := tunnel(p.Proxy, target, host)
	if err != nil {
		return held("%s", reason(err))
	}
	defer conn.Close()
	if status != http.StatusOK {
		return held("the proxy answered %d", status)
	}
	_, _ = conn.Write([]byte(text))
	return through("the proxy opened a tunnel to %s", target)
}

func (p *prober) askAll(targets []string, t Token) result {
	answers := make(chan result)
	for _, target := range targets {
		go func() { answers <- p.ask(target, target, t.String()) }()
	}
	var all []result
	for range targets {
		all = append(all, <-answers)
	}
	return summary(first(all...), all)
}

// declaredWay is what must work, or the failure of everything else shows only that the proxy is broken.
func (p *prober) declaredWay() result {
	name, _, _ := net.SplitHostPort(p.Declared)
	return p.hello(&tls.Config{ServerName: name, NextProtos: []string{p.Token.String()}})
}

// declaredTunnel is a tunnel to the declared host, or nil and what is to be said of it.
func (p *prober) declaredTunnel() (net.Conn, result) {
	if p.Proxy == "" {
		return nil, result{absent: true, detail: "there is no proxy"}
	}
	conn, status, err := tunnel(p.Proxy, p.Declared, p.Declared)
	switch {
	case err != nil:
		return nil, held("%s", reason(err))
	case status != http.StatusOK:
		conn.Close()
		return nil, held("the proxy answered %d", status)
	}
	return conn, result{}
}

// hello opens the declared tunnel and says a TLS hello. The token is in it, in clear.
func (p *prober) hello(config *tls.Config) result {
	conn, failed := p.declaredTunnel()
	if conn == nil {
		return failed
	}
	defer conn.Close()
	config.InsecureSkipVerify = true // the canary is known by what it says
	secured := tls.Client(conn, config)
	text, err := io.ReadAll(io.LimitReader(secured, 64))
	if string(text) == greeting(p.Token.Session) {
		return through("the canary answered through the proxy")
	}
	return held("the proxy closed the tunnel (%v)", err)
}

func (p *prober) proxyName() result {
	t := p.Token.For("proxy-name")
	return p.askAll([]string{t.String() + ".sandplan-verify.test:443", t.String() + ".sandplan-verify.test:" + strconv.Itoa(p.TCP)}, t)
}

func (p *prober) proxyPort() result {
	name, _, _ := net.SplitHostPort(p.Declared)
	t := p.Token.For("proxy-port")
	return p.askAll([]string{net.JoinHostPort(name, strconv.Itoa(p.TCP)), net.JoinHostPort(name, "80"), name, name + ":", name + ":0"}, t)
}

// proxyPrivate asks for addresses that are the host's, the proxy's own or nobody's business, each in the
// spellings that have led checks astray.
func (p *prober) proxyPrivate() result {
	port := ":" + strconv.Itoa(p.TCP)
	targets := []string{"127.0.0.1" + port, "localhost" + port, "[::1]" + port, "0.0.0.0" + port, "[::]" + port, "2130706433" + port,
		"0x7f000001" + port, "0177.0.0.1" + port, "127.1" + port, "[::ffff:127.0.0.1]" + port}
	for _, text := range p.HostAddresses {
		a, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		targets = append(targets, netip.AddrPortFrom(a, uint16(p.TCP)).String())
		if a.Is4() {
			b := a.As4()
			n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
			targets = append(targets, strconv.FormatUint(uint64(n), 10)+port, "[::ffff:"+text+"]"+port, "[64:ff9b::"+text+"]"+port)
		}
	}
	if name, tls, err := net.SplitHostPort(p.Declared); err == nil {
		// The declared port, at the address that the name has.
		for _, text := range p.HostAddresses {
			targets = append(targets, net.JoinHostPort(text, tls))
		}
		targets = append(targets, name+"."+port, name+"@127.0.0.1"+port)
	}
	return p.askAll(targets, p.Token.For("proxy-private"))
}

func (p *prober) proxyMetadata() result {
	t := p.Token.For("proxy-metadata")
	marked := ":" + strconv.Itoa(t.port())
	return p.askAll([]string{metadata + ":80", metadata + marked, "[fd00:ec2::254]:80", "metadata.google.internal:80", "2852039166" + marked,
		"[::ffff:169.254.169.254]" + marked, "100.100.100.200:80"}, t)
}

// metadata is where clouds tell machines their secrets.
const metadata = "169.254.169.254"

func (p *prober) proxyGet() result {
	if p.Proxy == "" {
		return result{absent: true, detail: "there is no proxy"}
	}
	t := p.Token.For("proxy-get").String()
	var all []result
	for _, head := range []string{
		"GET http://" + p.Declared + "/" + t + " HTTP/1.1\r\nHost: " + p.Declared,
		"POST http://" + p.Declared + "/" + t + " HTTP/1.1\r\nContent-Length: 0\r\nHost: " + p.Declared,
		"GET /" + t + " HTTP/1.1\r\nHost: " + p.Declared,
		"GET http://" + p.hostPort() + "/" + t + " HTTP/1.1\r\nHost: " + p.Declared,
	} {
		all = append(all, p.plain(head))
	}
	// The other way round: an allowed target, and another host beside it.
	all = append(all, p.ask(p.Declared, p.hostPort(), t))
	return summary(first(all...), all)
}

// hostPort is the canary's plain listener at the first of the host's addresses.
func (p *prober) hostPort() string {
	for _, text := range p.HostAddresses {
		if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
			return net.JoinHostPort(text, strconv.Itoa(p.TCP))
		}
	}
	return "127.0.0.1:" + strconv.Itoa(p.TCP)
}

func (p *prober) plain(head string) result {
	conn, err := net.DialTimeout("tcp4", p.Proxy, proxyPatience)
	if err != nil {
		return held("%s", reason(err))
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(proxyPatience))
	fmt.Fprintf(conn, "%s\r\n\r\n", head)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return held("%s", reason(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode < 400 {
		return through("the proxy answered %d to %q", resp.StatusCode, head[:4])
	}
	return held("the proxy answered %d", resp.StatusCode)
}

func (p *prober) proxySNI() result {
	t := p.Token.For("proxy-sni").String()
	return first(p.hello(&tls.Config{ServerName: t + ".sandplan-verify.test", NextProtos: []string{t}}),
		p.hello(&tls.Config{ServerName: "www." + strings.Split(p.Declared, ":")[0], NextProtos: []string{t}}))
}

func (p *prober) proxyNoSNI() result {
	return p.hello(&tls.Config{NextProtos: []string{p.Token.For("proxy-no-sni").String()}})
}

// proxyNoTLS speaks HTTP in the declared tunnel.
func (p *prober) proxyNoTLS() result {
	conn, failed := p.declaredTunnel()
	if conn == nil {
		return failed
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n", p.Token.For("proxy-no-tls"), p.Declared)
	n, err := conn.Read(make([]byte, 16))
	if n > 0 {
		return through("somebody answered what is no TLS")
	}
	return held("the proxy closed the tunnel (%v)", err)
}

// proxyOnUplink asks the own proxy at its other address, where it must not listen.
func (p *prober) proxyOnUplink() result {
	if p.ProxyUplink == "" {
		return result{absent: true, detail: "there is no proxy"}
	}
	return first(p.reach("tcp4", []string{p.ProxyUplink}, append(deviceWays(), way{}), p.Token.For("proxy-uplink").String(), patience),
		p.ask(p.ProxyUplink, p.ProxyUplink, p.Token.For("proxy-uplink").String()))
}
