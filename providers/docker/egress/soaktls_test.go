package egress

import (
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
)

// soakSecure is the port of the soak's vendor at which a tunnel begins with a hello, and a TLS server echoes.
const soakSecure = 8445

// soakVendor is that server. It knows one group, so that a client who prefers another is asked for a second hello.
func soakVendor(t *testing.T) func(*net.TCPConn) {
	cfg := &tls.Config{Certificates: []tls.Certificate{certificate(t, vendorName)}, CurvePreferences: []tls.CurveID{tls.CurveP256}}
	return func(c *net.TCPConn) {
		conn := tls.Server(c, cfg)
		defer conn.Close()
		_, _ = io.Copy(conn, conn)
	}
}

// soakTLS is a TLS connection in a tunnel: for another name than the tunnel's, torn during the handshake or behind
// it, or carried to its end, both sides of which are ended one after the other.
func soakTLS(t *testing.T, c *net.TCPConn, r *rand.Rand) {
	cfg := &tls.Config{ServerName: vendorName, InsecureSkipVerify: true, CurvePreferences: []tls.CurveID{tls.CurveP256}}
	if r.IntN(2) == 0 {
		cfg.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
	}
	kind := r.IntN(8)
	switch kind {
	case 0: // the front would serve another site
		cfg.ServerName = "evil.example"
		if err := tls.Client(c, cfg).Handshake(); err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("a hello for another name: %v", err)
		}
		return
	case 1: // a hello that does not end
		begin := []byte{22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}
		if _, err := c.Write(begin[:1+r.IntN(len(begin))]); err != nil {
			t.Errorf("half a hello: %v", err)
		}
		return
	}
	conn := tls.Client(c, cfg)
	if err := conn.Handshake(); err != nil {
		t.Errorf("handshake: %v", err)
		return
	}
	if kind == 2 { // reset behind the handshake
		_ = c.SetLinger(0)
		return
	}
	size := r.IntN(64 << 10)
	if r.IntN(10) == 0 {
		size += 2 << 20
	}
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(make([]byte, size))
		if err == nil {
			err = conn.CloseWrite()
		}
		if err == nil {
			err = c.CloseWrite()
		}
		sent <- err
	}()
	n, err := io.Copy(io.Discard, conn)
	if serr := <-sent; err != nil || serr != nil || n != int64(size) {
		t.Errorf("%d of %d bytes came back over TLS: %v, %v", n, size, err, serr)
	}
}
