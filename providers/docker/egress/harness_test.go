package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// vendorName is the host that the tests' proxy allows, at a public address that only the tests' world
// leads anywhere.
const (
	vendorName = "api.vendor.example"
	vendorAddr = "198.50.0.1"
)

// patience is how long a test waits for what must come: the machine may have other things to do.
const patience = 30 * time.Second

func testConfig() *Config {
	return &Config{
		Invocation: "invocation.a", Declaration: "vendor.v", Listen: "127.0.0.1:0", Agent: "127.0.0.1",
		Hosts:  []Host{{Name: vendorName, Port: 443, TLS: true, Decl: "vendor.v"}},
		DNS:    []string{"192.0.2.53"},
		Limits: DefaultLimits(64 << 20),
	}
}

// lines is a log that tests can read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) entries(t *testing.T) []Entry {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Entry
	for _, s := range strings.Split(strings.TrimSpace(l.buf.String()), "\n") {
		var e Entry
		if s == "" {
			continue
		}
		if err := json.Unmarshal([]byte(s), &e); err != nil {
			t.Fatalf("log line %q: %v", s, err)
		}
		if err := checkLine(s); err != nil {
			t.Errorf("log line %q: %v", s, err)
		}
		out = append(out, e)
	}
	return out
}

// proxy is a server at work on loopback, in a world of the test's making.
type proxy struct {
	t      *testing.T
	addr   string
	log    *lines
	server *server
	end    func() // of the run

	mu      sync.Mutex
	lookups []string
	dials   []string
	answer  []netip.Addr                                            // of the next lookups
	failed  error                                                   // of the next lookups
	to      string                                                  // where every dial really leads
	resolve func(context.Context, string) ([]netip.Addr, error)     // instead of answer
	dialer  func(context.Context, netip.AddrPort) (net.Conn, error) // instead of the net package's
}

// startProxy serves cfg until the test ends; dials lead to the address upstream.
func startProxy(t *testing.T, cfg *Config, upstream string) *proxy {
	t.Helper()
	return startProxyAt(t, cfg, upstream, time.Now)
}

// startProxyAt is startProxy with another clock.
func startProxyAt(t *testing.T, cfg *Config, upstream string, now func() time.Time) *proxy {
	t.Helper()
	p := &proxy{t: t, log: &lines{}, to: upstream, answer: []netip.Addr{netip.MustParseAddr(vendorAddr)}}
	w := world{now: now, lookup: p.lookup, dial: p.dialUpstream, own: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	s, err := newServer(cfg, w, newLog(p.log, w.now, cfg.Invocation, cfg.Limits.LogBytes))
	if err != nil {
		t.Fatal(err)
	}
	p.server = s
	l, err := listen(t.Context(), cfg.Listen)
	if err != nil {
		t.Fatal(err)
	}
	p.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx, l) }()
	p.end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(p.end)
	return p
}

// set changes what the next lookups say.
func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *proxy) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	p.mu.Lock()
	p.lookups = append(p.lookups, name)
	resolve, answer, failed := p.resolve, p.answer, p.failed
	p.mu.Unlock()
	if resolve != nil {
		return resolve(ctx, name)
	}
	return answer, failed
}

func (p *proxy) dialUpstream(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	p.mu.Lock()
	p.dials = append(p.dials, to.String())
	real, dialer := p.to, p.dialer
	p.mu.Unlock()
	if real == "" {
		return nil, errors.New("nothing there")
	}
	if dialer != nil {
		return dialer(ctx, netip.MustParseAddrPort(real))
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", real)
}

// seen are the lookups and dials so far.
func (p *proxy) seen() (lookups, dials []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.lookups...), append([]string(nil), p.dials...)
}

// raw opens a connection to the proxy and sends bytes.
func (p *proxy) raw(send string) *net.TCPConn {
	p.t.Helper()
	c, err := net.Dial("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	if _, err := io.WriteString(c, send); err != nil {
		p.t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

func connectTo(target string) string {
	return fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
}

// ask sends a request and reads the answer to its end.
func (p *proxy) ask(send string) (*http.Response, string) {
	p.t.Helper()
	c := p.raw(send)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		p.t.Fatalf("no answer to %q: %v", send, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatalf("the answer to %q: %v", send, err)
	}
	return resp, string(body)
}

// tunnel opens one, and returns it behind the 200.
func (p *proxy) tunnel(target string) *net.TCPConn {
	p.t.Helper()
	c := p.raw(connectTo(target))
	buf := make([]byte, len(established))
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != established {
		p.t.Fatalf("CONNECT %s: %q, %v", target, buf, err)
	}
	return c
}

// await waits for a log line that match accepts.
func (p *proxy) await(what string, match func(Entry) bool) Entry {
	p.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for _, e := range p.log.entries(p.t) {
			if match(e) {
				return e
			}
		}
	}
	p.t.Fatalf("no log line: %s; there are %+v", what, p.log.entries(p.t))
	return Entry{}
}

func (p *proxy) awaitReason(why reason.Reason) Entry {
	p.t.Helper()
	return p.await(string(why), func(e Entry) bool { return e.Reason == why })
}

// certificate is a fresh one for a name.
func certificate(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// upstream is a TCP server that hands every connection to serve, and counts the bytes it got.
func upstream(t *testing.T, serve func(*net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			}()
		}
	}()
	return l.Addr().String()
}

// vendor is a TLS server that echoes, behind a raw recorder of everything that reaches it.
func vendor(t *testing.T, raw *lines) string {
	cfg := &tls.Config{Certificates: []tls.Certificate{certificate(t, vendorName)}}
	return upstream(t, func(c *net.TCPConn) {
		conn := tls.Server(recorded{c, raw}, cfg)
		_, _ = io.Copy(conn, conn)
	})
}

type recorded struct {
	*net.TCPConn
	raw *lines
}

func (r recorded) Read(p []byte) (int, error) {
	n, err := r.TCPConn.Read(p)
	if r.raw != nil {
		_, _ = r.raw.Write(p[:n])
	}
	return n, err
}

func (l *lines) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Len()
}

func (l *lines) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.buf.Bytes())
}

// hello are the bytes of a real ClientHello.
func helloBytes(t *testing.T, cfg *tls.Config) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go func() { _ = tls.Client(a, cfg).Handshake() }()
	buf := make([]byte, 16<<10)
	if err := b.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	n, err := b.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}
