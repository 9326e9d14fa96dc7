package egress

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// stuck is a log that is written only when the test says so, and lets go at the test's end at the latest.
type stuck struct {
	read chan struct{}
	*lines
}

func (s stuck) Write(p []byte) (int, error) {
	<-s.read
	return s.lines.Write(p)
}

// release has it written from now on.
func (s stuck) release() {
	select {
	case <-s.read:
	default:
		close(s.read)
	}
}

// stick makes a proxy's log one that nobody reads.
func (p *proxy) stick() stuck {
	s := stuck{make(chan struct{}), p.log}
	p.server.log.mu.Lock()
	defer p.server.log.mu.Unlock()
	p.server.log.w = s
	p.t.Cleanup(s.release)
	return s
}

// answersHellos is a server that answers hellos, and counts all that it gets.
func answersHellos(t *testing.T, got *lines) string {
	t.Helper()
	said := answer(t)
	return upstream(t, func(c *net.TCPConn) {
		buf := make([]byte, 16<<10)
		for {
			n, err := c.Read(buf)
			_, _ = got.Write(buf[:n])
			if err != nil {
				return
			}
			if buf[0] == 22 { // a hello
				_, _ = c.Write(said)
			}
		}
	})
}

// saysNothing says that nothing comes for a moment.
func saysNothing(t *testing.T, c *net.TCPConn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(2 * soonAfter)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes have come, and %v", n, err)
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
}

func awaitLen(t *testing.T, got *lines, want int) {
	t.Helper()
	for start := time.Now(); got.len() < want; time.Sleep(time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatalf("%d bytes have come of %d", got.len(), want)
		}
	}
}

// TestNothingPassesUntold: while a decision cannot be written the hello may leave, and nothing else passes: nothing
// that the agent says behind it, and nothing of the answer. Without TLS not a byte.
func TestNothingPassesUntold(t *testing.T) {
	alert := []byte{21, 3, 3, 0, 2, 1, 112}
	t.Run("tls", func(t *testing.T) {
		got := &lines{}
		p := startProxy(t, testConfig(), answersHellos(t, got))
		log := p.stick()
		conn := p.tunnel(okTarget)
		hello := helloBytes(t, &tls.Config{ServerName: vendorName})
		if _, err := conn.Write(append(slices.Clip(hello), alert...)); err != nil {
			t.Fatal(err)
		}
		awaitLen(t, got, len(hello))
		saysNothing(t, conn)
		if n := got.len(); n != len(hello) {
			t.Errorf("%d bytes have passed, want the hello's %d", n, len(hello))
		}
		log.release()
		if _, err := io.ReadFull(conn, make([]byte, len(answer(t)))); err != nil {
			t.Fatalf("the answer, once the line is written: %v", err)
		}
		if e := p.log.entries(t); e[0].Decision != Allow {
			t.Errorf("an answer has passed, and the log says %+v", e)
		}
		awaitLen(t, got, len(hello)+len(alert))
	})
	t.Run("tls, no answer", func(t *testing.T) {
		got := &lines{}
		p := startProxy(t, testConfig(), upstream(t, func(c *net.TCPConn) {
			buf := make([]byte, 16<<10)
			n, _ := c.Read(buf)
			_, _ = got.Write(buf[:n])
		}))
		log := p.stick()
		conn := p.tunnel(okTarget)
		hello := helloBytes(t, &tls.Config{ServerName: vendorName})
		if _, err := conn.Write(hello); err != nil {
			t.Fatal(err)
		}
		awaitLen(t, got, len(hello))
		saysNothing(t, conn) // the end neither
		log.release()
		if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("the server's end, once the line is written: %d bytes, %v", n, err)
		}
	})
	t.Run("plain", func(t *testing.T) {
		got := &lines{}
		p := startProxy(t, plainConfig(), upstream(t, func(c *net.TCPConn) {
			_, _ = c.Write([]byte("220 hello"))
			_, _ = io.Copy(got, c)
		}))
		log := p.stick()
		conn := p.tunnel(okTarget)
		if _, err := conn.Write(alert); err != nil {
			t.Fatal(err)
		}
		saysNothing(t, conn)
		if n := got.len(); n != 0 {
			t.Errorf("%d bytes have passed", n)
		}
		log.release()
		if _, err := io.ReadFull(conn, make([]byte, 9)); err != nil {
			t.Fatalf("what the server says, once the line is written: %v", err)
		}
		awaitLen(t, got, len(alert))
	})
}

// TestHellosWaitForTheLog: with a log that nobody reads no more than a few hellos leave, however many tunnels there
// are, and no answer comes; with one that is read again all of them go on.
func TestHellosWaitForTheLog(t *testing.T) {
	t.Parallel()
	const tunnels = 2 * maxAhead
	got := &lines{}
	p := startProxy(t, testConfig(), answersHellos(t, got))
	log := p.stick()
	hello := helloBytes(t, &tls.Config{ServerName: vendorName})
	var conns []*net.TCPConn
	for range tunnels {
		c := p.tunnel(okTarget)
		if _, err := c.Write(hello); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	awaitLen(t, got, maxAhead*len(hello))
	for _, c := range conns {
		saysNothing(t, c)
	}
	if n := got.len(); n != maxAhead*len(hello) {
		t.Errorf("%d bytes are at the server, want %d hellos of %d", n, maxAhead, len(hello))
	}
	log.release()
	for _, c := range conns {
		if _, err := io.ReadFull(c, make([]byte, len(answer(t)))); err != nil {
			t.Fatalf("the answer, once the lines are written: %v", err)
		}
	}
}

// TestNothingGoesOnWithoutALog: where a log cannot be written, or is full, no answer comes and no name is looked up.
func TestNothingGoesOnWithoutALog(t *testing.T) {
	got := &lines{}
	p := startProxy(t, testConfig(), answersHellos(t, got))
	p.server.log.mu.Lock()
	p.server.log.w = broken{}
	p.server.log.mu.Unlock()
	conn := p.tunnel(okTarget)
	if _, err := conn.Write(helloBytes(t, &tls.Config{ServerName: vendorName})); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(conn); len(b) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes of the answer have come, and %v", len(b), err)
	}
	before, _ := p.seen()
	resp, _ := p.ask(connectTo(okTarget))
	if after, _ := p.seen(); resp.Header.Get("X-Sandplan-Reason") != string(reason.LogLimit) || len(after) != len(before) {
		t.Errorf("a new tunnel: %s, after %d lookups", resp.Status, len(after)-len(before))
	}

	cfg := testConfig()
	cfg.Limits.LogBytes = 1
	got = &lines{}
	p = startProxy(t, cfg, answersHellos(t, got))
	conn = p.tunnel(okTarget) // let through before the log is full, and not told yet
	p.ask(connectTo("evil.example:443"))
	if _, err := conn.Write(helloBytes(t, &tls.Config{ServerName: vendorName})); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(conn); len(b) > 0 || errors.Is(err, os.ErrDeadlineExceeded) || got.len() > 0 {
		t.Errorf("%d bytes have passed, %d have come, and %v", got.len(), len(b), err)
	}
	p.server.log.End("over")
	es := p.log.entries(t)
	if last := es[len(es)-1]; last.Counts[reason.LogLimit] != 1 || last.Counts[reason.Allowed] != 0 || !strings.Contains(last.Error, "over") {
		t.Errorf("the last line: %+v", last)
	}
}
