package egress

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// TestDownloadLimitEndsAllDownloads: all tunnels share what may come down, what does not fit does not come,
// and no new tunnel is opened then.
func TestDownloadLimitEndsAllDownloads(t *testing.T) {
	cfg := plainConfig()
	cfg.Limits.DownloadBytes = 1000
	answer := make(chan struct{}, 1)
	p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			<-answer
			_, _ = c.Write(make([]byte, 600))
		}
		_, _ = io.Copy(io.Discard, c)
	}))
	a, b := p.tunnel(vendorName+":443"), p.tunnel(vendorName+":443")
	if _, err := a.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	answer <- struct{}{}
	if _, err := io.ReadFull(a, make([]byte, 600)); err != nil {
		t.Fatalf("within the limit: %v", err)
	}
	p.awaitPassed(1, 600)
	if _, err := b.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	p.awaitPassed(2, 600)
	answer <- struct{}{}
	if got, err := io.ReadAll(b); !errors.Is(err, syscall.ECONNRESET) || len(got) != 0 {
		t.Errorf("the tunnel over the limit got %d bytes and ends with %v", len(got), err)
	}
	l := p.await("limit", func(e Entry) bool { return e.Event == EventLimit && e.Reason == reason.DownloadLimit })
	if l.Up != 2 || l.Down != 600 { // what did not fit did not pass
		t.Errorf("of the run it says %d up, %d down", l.Up, l.Down)
	}
	e := p.await("closed", func(e Entry) bool { return e.Event == EventClosed })
	if e.Reason != reason.DownloadLimit || e.Down != 0 || e.Up != 1 {
		t.Errorf("log: %+v", e)
	}
	if resp, _ := p.ask(connectTo(vendorName + ":443")); resp.Header.Get("X-Sandplan-Reason") != string(reason.DownloadLimit) {
		t.Errorf("a new tunnel after the limit: %s", resp.Status)
	}
}

// TestLogLimitSaysWhatPassed: the line that ends a full log is about the run as those of other limits are.
func TestLogLimitSaysWhatPassed(t *testing.T) {
	cfg := plainConfig()
	cfg.Limits.LogBytes = 300 // the first line, and not the second one
	p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c) }))
	c := p.tunnel(okTarget)
	if _, err := c.Write(make([]byte, 600)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 600)); err != nil {
		t.Fatal(err)
	}
	p.awaitPassed(600, 600)
	p.ask(connectTo("evil.example:443"))
	if e := p.awaitReason(reason.LogLimit); e.Event != EventLimit || e.Up != 600 || e.Down != 600 {
		t.Errorf("600 bytes have passed each way: %+v", e)
	}
}

// TestRefusalWinsOverAReset: who resets a tunnel at the moment when it is refused is refused.
func TestRefusalWinsOverAReset(t *testing.T) {
	cfg := plainConfig()
	cfg.Limits.DownloadBytes = 10
	p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			_, _ = c.Write(make([]byte, 100))
		}
		_, _ = io.Copy(io.Discard, c)
	}))
	c := p.tunnel(okTarget)
	p.awaitReason(reason.Allowed)
	log := p.stick() // the refusal waits for its line
	if _, err := c.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); !p.server.down.spent(); time.Sleep(time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatal("the limit is not reached")
		}
	}
	abort(c)
	time.Sleep(2 * soonAfter) // the other direction meets the reset
	log.release()
	if e := p.await("closed", func(e Entry) bool { return e.Event == EventClosed }); e.Reason != reason.DownloadLimit {
		t.Errorf("its end is told as %+v", e)
	}
	p.await("the refusal", func(e Entry) bool {
		return e.Event == EventDecision && e.Reason == reason.DownloadLimit && e.Decision == Refuse
	})
}

// awaitPassed waits until so much has passed: whoever reads a byte may know of it before the proxy does.
func (p *proxy) awaitPassed(wantUp, wantDown int64) {
	p.t.Helper()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		up, down := p.server.passed()
		if up == wantUp && down == wantDown {
			return
		}
		if time.Since(start) > patience {
			p.t.Fatalf("%d bytes up, %d down", up, down)
		}
	}
}

// TestBulkKeepsTheDownloadBudget: splicing counts as copying does.
func TestBulkKeepsTheDownloadBudget(t *testing.T) {
	cfg := plainConfig()
	cfg.Limits.DownloadBytes = 20 << 20
	p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) {
		for buf := make([]byte, 256<<10); ; {
			if _, err := c.Write(buf); err != nil {
				return
			}
		}
	}))
	n, err := io.Copy(io.Discard, p.tunnel(vendorName+":443"))
	if !errors.Is(err, syscall.ECONNRESET) || n > cfg.Limits.DownloadBytes {
		t.Errorf("a download over its budget ends with %v after %d bytes", err, n)
	}
	e := p.await("closed", func(e Entry) bool { return e.Event == EventClosed })
	if e.Reason != reason.DownloadLimit || e.Down > cfg.Limits.DownloadBytes || e.Down < cfg.Limits.DownloadBytes-2*bufferSize {
		t.Errorf("log: %+v", e)
	}
}
