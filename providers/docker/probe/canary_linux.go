package probe

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"sync"
	"time"
)

// canaryLimit ends a canary that nobody ends.
const canaryLimit = 30 * time.Minute

// firstBytes bounds how much of a connection is looked at for a token, and listenFor how long.
const (
	firstBytes = 4 << 10
	listenFor  = 5 * time.Second
)

// canary listens on every address of the host and on its interfaces, then shows by attempts of its own that
// it is reachable, and tells what comes. It ends with its standard input.
func (p *prober) canary(stdin io.Reader) error {
	var ready Ready
	tcp, err := p.listenTCP(":0", nil)
	if err != nil {
		return err
	}
	defer tcp.Close()
	greet, err := p.greeter()
	if err != nil {
		return err
	}
	secured, err := p.listenTCP(":0", greet)
	if err != nil {
		return err
	}
	defer secured.Close()
	udp, err := p.listenUDP(":0")
	if err != nil {
		return err
	}
	defer udp.Close()
	abstract, err := p.listenAbstract(AbstractName(p.Token.Session, RoleCanary))
	if err != nil {
		return err
	}
	defer abstract.Close()
	ready.TCP, ready.TLS, ready.UDP = tcp.Addr().(*net.TCPAddr).Port, secured.Addr().(*net.TCPAddr).Port, udp.LocalAddr().(*net.UDPAddr).Port
	stop, err := p.capture()
	ready.Capture = err == nil
	if err != nil {
		ready.Why = err.Error()
	} else {
		defer stop()
	}
	p.out.say(Message{Ready: &ready})
	p.TCP, p.UDP, p.Open = ready.TCP, ready.UDP, true
	for _, a := range p.attempts() {
		if try := p.atOnce()[a.ID]; try != nil && a.Control == ControlHost {
			p.report(a.ID, try())
		}
	}
	if p.HostPID != 0 {
		p.report("host-processes", p.hostProcesses())
	}
	p.out.say(Message{Done: true})
	return untilClosed(stdin)
}

// untilClosed waits for the end of standard input.
func untilClosed(stdin io.Reader) error {
	end := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, stdin)
		end <- err
	}()
	select {
	case err := <-end:
		return err
	case <-time.After(canaryLimit):
		return nil
	}
}

// listenTCP reports every connection. Before it is looked at, serve may answer it.
func (p *prober) listenTCP(address string, serve func(net.Conn)) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	go p.accept(l, "TCP", serve)
	return l, nil
}

func (p *prober) listenAbstract(name string) (net.Listener, error) {
	l, err := net.Listen("unix", name)
	if err != nil {
		return nil, err
	}
	go p.accept(l, "unix socket", nil)
	return l, nil
}

func (p *prober) accept(l net.Listener, kind string, serve func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(listenFor))
			how := fmt.Sprintf("%s connection to %s from %s", kind, conn.LocalAddr(), conn.RemoteAddr())
			heard := &hearing{Conn: conn, heard: func(b []byte) { p.see(string(b), how) }}
			if serve != nil {
				serve(heard)
				return
			}
			_, _ = io.Copy(io.Discard, io.LimitReader(heard, firstBytes))
		}()
	}
}

// hearing shows what is read from a connection, all of it each time: a token may come in two parts.
type hearing struct {
	net.Conn
	heard func([]byte)
	buf   bytes.Buffer
}

func (h *hearing) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if h.buf.Len() < firstBytes {
		h.buf.Write(b[:n])
		h.heard(h.buf.Bytes())
	}
	return n, err
}

// see reports the tokens in what came.
func (p *prober) see(text, how string) {
	for _, t := range FindTokens(p.Token.Session, text) {
		p.sighted(Sighting{Token: t, How: how})
	}
}

func (p *prober) sighted(s Sighting) {
	if p.seen.first(s) {
		p.out.say(Message{Sighting: &s})
	}
}

// once remembers what was said.
type once struct {
	mu   sync.Mutex
	said map[string]bool
}

const mostSightings = 5000

func (o *once) first(s Sighting) bool {
	key, err := json.Marshal([]any{s.Token, s.Interface, s.How, s.From})
	if err != nil {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.said == nil {
		o.said = map[string]bool{}
	}
	if o.said[string(key)] || len(o.said) > mostSightings {
		return false
	}
	o.said[string(key)] = true
	return true
}

func (p *prober) listenUDP(address string) (net.PacketConn, error) {
	c, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, err
	}
	go func() {
		buf := make([]byte, firstBytes)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			p.see(string(buf[:n]), "UDP datagram from "+from.String())
		}
	}()
	return c, nil
}

// greeter is the canary's answer over TLS, in whatever protocol is asked for.
func (p *prober) greeter() (func(net.Conn), error) {
	cert, err := newCertificate()
	return func(conn net.Conn) { p.greet(conn, cert) }, err
}

func (p *prober) greet(conn net.Conn, cert tls.Certificate) {
	server := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{cert}, GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: h.SupportedProtos}, nil
	}})
	_, _ = server.Write([]byte(greeting(p.Token.Session)))
	_ = server.Close()
}

// newCertificate is a certificate for this process alone.
func newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
