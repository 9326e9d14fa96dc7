package egress

import (
	"crypto/tls"
	"encoding/hex"
	"io"
	"net"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// TestHelloRetry: a server that asks for a second hello, and one whose client changes its mind.
func TestHelloRetry(t *testing.T) {
	cert := certificate(t, vendorName)
	p := startProxy(t, testConfig(), upstream(t, func(c *net.TCPConn) {
		conn := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}, CurvePreferences: []tls.CurveID{tls.CurveP384}})
		_, _ = io.Copy(conn, conn)
	}))
	c := tls.Client(p.tunnel(vendorName+":443"), &tls.Config{
		ServerName: vendorName, InsecureSkipVerify: true, CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP384},
	})
	if _, err := io.WriteString(c, "ping"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	if s := c.ConnectionState(); !s.HelloRetryRequest {
		t.Error("the server did not ask again: this test tests nothing")
	}

	for name, evil := range map[string][]byte{
		"another name":         helloBytes(t, &tls.Config{ServerName: "evil.example"}),
		"another name, cut up": records(helloBytes(t, &tls.Config{ServerName: "evil.example"}), 3),
	} {
		got := &lines{}
		p = startProxy(t, testConfig(), upstream(t, func(c *net.TCPConn) {
			buf := make([]byte, 1)
			if _, err := io.ReadFull(c, buf); err == nil {
				_, _ = c.Write(retryRequest())
			}
			_, _ = got.Write(buf)
			_, _ = io.Copy(got, c)
		}))
		raw := p.tunnel(vendorName + ":443")
		right := helloBytes(t, &tls.Config{ServerName: vendorName})
		if _, err := raw.Write(right); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(raw, make([]byte, len(retryRequest()))); err != nil {
			t.Fatal(err)
		}
		if _, err := raw.Write(append([]byte{20, 3, 3, 0, 1, 1}, evil...)); err != nil {
			t.Fatal(err)
		}
		e := p.await("closed", func(e Entry) bool { return e.Event == EventClosed })
		if e.Reason != reason.SNIDiffers || got.len() > len(right)+6 {
			t.Errorf("%s: %d bytes were forwarded of %d that may be; log: %+v", name, got.len(), len(right)+6, e)
		}
	}
}

// retryRequest is an answer that asks for another hello.
func retryRequest() []byte {
	random, _ := hex.DecodeString("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
	m := append([]byte{2, 0, 0, 40, 3, 3}, random...)
	m = append(m, 0, 0x13, 1, 0, 0, 0)
	return append([]byte{22, 3, 3, 0, byte(len(m))}, m...)
}

// TestResumedSessions: in TLS 1.2 an encrypted Finished follows the hello at once, and may look like
// anything.
func TestResumedSessions(t *testing.T) {
	cert := certificate(t, vendorName)
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13} {
		server := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: version, MaxVersion: version}
		server.SetSessionTicketKeys([][32]byte{{1}}) // every connection can resume what another one began
		p := startProxy(t, testConfig(), upstream(t, func(c *net.TCPConn) {
			conn := tls.Server(c, server)
			_, _ = io.Copy(conn, conn)
		}))
		cfg := &tls.Config{ServerName: vendorName, InsecureSkipVerify: true, MinVersion: version, MaxVersion: version,
			ClientSessionCache: tls.NewLRUClientSessionCache(1)}
		resumed := 0
		for range 10 {
			c := tls.Client(p.tunnel(vendorName+":443"), cfg)
			if _, err := io.WriteString(c, "ping"); err != nil {
				t.Fatalf("%s: %v", tls.VersionName(version), err)
			}
			if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
				t.Fatalf("%s: %v", tls.VersionName(version), err)
			}
			if c.ConnectionState().DidResume {
				resumed++
			}
			c.Close()
		}
		if resumed == 0 {
			t.Errorf("%s: no session was resumed: this test tests nothing", tls.VersionName(version))
		}
	}
}
