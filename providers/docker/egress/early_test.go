package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// TestDataBeforeTheAnswer: what the agent sends before it knows that the tunnel stands has one answer, in whatever
// packets it comes, and goes nowhere.
func TestDataBeforeTheAnswer(t *testing.T) {
	for _, tt := range []struct {
		name, target string
		tls          bool
		send         []byte
		code         int
		why          reason.Reason
	}{
		{"a hello", okTarget, true, helloBytes(t, &tls.Config{ServerName: vendorName}), 400, reason.EarlyData},
		{"a second CONNECT", okTarget, false, []byte(connectTo("evil.example:443")), 400, reason.EarlyData},
		{"much", okTarget, false, make([]byte, 60<<10), 400, reason.EarlyData},
		{"a second CONNECT behind one for another host", "evil.example:443", false, []byte(connectTo(okTarget)), 403, reason.HostNotDeclared},
	} {
		for _, later := range []bool{false, true} {
			t.Run(tt.name+map[bool]string{false: ", at once", true: ", later"}[later], func(t *testing.T) {
				cfg := testConfig()
				cfg.Hosts[0].TLS = tt.tls
				got := &lines{}
				p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(got, c) }))
				looking, sent := make(chan struct{}), make(chan struct{})
				p.set(func() {
					p.resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) {
						close(looking)
						select {
						case <-sent:
						case <-ctx.Done():
						}
						return []netip.Addr{netip.MustParseAddr(vendorAddr)}, ctx.Err()
					}
				})
				var c *net.TCPConn
				wrote := make(chan error, 1)
				if later {
					c = p.raw(connectTo(tt.target))
					if tt.code == 400 {
						<-looking
					}
					go func() { // a kernel may take only some of it until the proxy reads
						_, err := c.Write(tt.send)
						wrote <- err
					}()
					if tt.code == 400 {
						awaitBytes(t, p)
					}
				} else {
					c = p.raw(connectTo(tt.target) + string(tt.send))
					wrote <- nil
				}
				close(sent)
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				if resp.StatusCode != tt.code || resp.Header.Get("X-Sandplan-Reason") != string(tt.why) {
					t.Errorf("%s, want %d %s", resp.Status, tt.code, tt.why)
				}
				if b, err := io.ReadAll(resp.Body); err != nil || len(b) == 0 {
					t.Errorf("the answer is cut off: %q, %v", b, err)
				}
				if err := <-wrote; err != nil {
					t.Error(err)
				}
				if e := p.awaitReason(tt.why); e.Decision != Refuse {
					t.Errorf("%+v", e)
				}
				if got.len() > 0 {
					t.Errorf("%d bytes are forwarded", got.len())
				}
			})
		}
	}
}

// awaitBytes waits until something has come that the proxy's only connection has not read.
func awaitBytes(t *testing.T, p *proxy) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		there := false
		p.server.open.mu.Lock()
		for c := range p.server.open.conns {
			if err := c.raw.Control(func(fd uintptr) { n, err := peek(fd); there = n > 0 && err == nil }); err != nil {
				t.Error(err)
			}
		}
		p.server.open.mu.Unlock()
		if there {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing comes")
		}
	}
}

// TestEndBeforeTheAnswer: who has nothing to say may still listen where the host has no hello.
func TestEndBeforeTheAnswer(t *testing.T) {
	p := startProxy(t, plainConfig(), upstream(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, "greeting") }))
	c := p.raw(connectTo(okTarget))
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); string(b) != established+"greeting" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// TestHalfARecordIsNoEnd: a client that ends in the middle of what is held back has not said all, and its server is
// not told so.
func TestHalfARecordIsNoEnd(t *testing.T) {
	ended := make(chan error, 1)
	p := startProxy(t, testConfig(), upstream(t, func(c *net.TCPConn) {
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Error(err)
		}
		if _, err := c.Write(acceptingAnswer()); err != nil {
			t.Error(err)
		}
		_, err := io.Copy(io.Discard, c)
		ended <- err
	}))
	c := p.tunnel(okTarget)
	if _, err := c.Write(helloBytes(t, &tls.Config{ServerName: vendorName})); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, len(acceptingAnswer()))); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte{22, 3, 3, 0, 40}); err != nil { // a record's header
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the server takes it for whole")
	}
	p.awaitReason(reason.HelloMissing)
}

// TestHalfARecordWhenTheOtherEnds: nor is it one when the server says all at that moment, so that nobody looks behind
// the client's end any more.
func TestHalfARecordWhenTheOtherEnds(t *testing.T) {
	f, far := halfARecord(t)
	if err := far.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	f.src.letGo() // as the other direction's end does
	var refused *refusedError
	if err := f.end(); !errors.As(err, &refused) || refused.why != reason.HelloMissing {
		t.Errorf("it ends with %v", err)
	}
}
