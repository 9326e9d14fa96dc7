package egress

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"
)

// TestTunnelOutlivesItsOpening: what bounds a request, a lookup, a dial and a hello bounds nothing behind them, on real
// sockets, whose deadlines are the kernel's and the scheduler's business.
func TestTunnelOutlivesItsOpening(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		server func(*testing.T) string
		begin  func(net.Conn) (net.Conn, error)
	}{
		{"tls", func(t *testing.T) string { return vendor(t, nil) }, func(c net.Conn) (net.Conn, error) {
			conn := tls.Client(c, &tls.Config{ServerName: vendorName, InsecureSkipVerify: true})
			return conn, conn.Handshake()
		}},
		{"plain", func(t *testing.T) string {
			return upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(struct{ io.Writer }{c}, c) })
		}, func(c net.Conn) (net.Conn, error) { return c, nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig()
			cfg.Hosts[0].TLS = tt.name == "tls"
			l := &cfg.Limits
			l.HeadMS, l.LookupMS, l.DialMS, l.HelloMS = 1000, 1000, 1000, 1000
			p := startProxy(t, cfg, tt.server(t))
			dial := dialOut()
			p.set(func() { p.dialer = dial })
			var conn net.Conn
			for start := time.Now(); conn == nil; { // a machine that is busy meets the bounds
				if time.Since(start) > patience {
					t.Fatal("no tunnel opens")
				}
				c := p.raw(connectTo(okTarget))
				answer := make([]byte, len(established))
				if _, err := io.ReadFull(c, answer); err != nil || string(answer) != established {
					continue
				}
				if begun, err := tt.begin(c); err == nil {
					conn = begun
				}
			}
			time.Sleep(ms(l.HeadMS) + 200*time.Millisecond) // the latest of the bounds
			for range 2 {
				if _, err := io.WriteString(conn, "ping"); err != nil {
					t.Fatalf("up, behind every bound: %v", err)
				}
				buf := make([]byte, 4)
				if _, err := io.ReadFull(conn, buf); err != nil || string(buf) != "ping" {
					t.Fatalf("down, behind every bound: %q, %v", buf, err)
				}
			}
		})
	}
}
