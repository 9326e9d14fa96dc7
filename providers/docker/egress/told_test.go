package egress

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// moved is a clock that stands still until it is moved.
type moved struct {
	from time.Time
	by   atomic.Int64
}

func (m *moved) now() time.Time { return m.from.Add(time.Duration(m.by.Load())) }

// TestClosedLineTellsHowLong: from the connection's first moment to its last.
func TestClosedLineTellsHowLong(t *testing.T) {
	t.Parallel()
	clock := &moved{from: time.Now()}
	p := startProxyAt(t, patientConfig(), upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }), clock.now)
	c := p.tunnel(okTarget)
	clock.by.Store(int64(12_345 * time.Millisecond))
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	e := p.await("closed", func(e Entry) bool { return e.Event == EventClosed })
	if e.DurationMS != 12_345 {
		t.Errorf("a tunnel of 12.345 s: %+v", e)
	}
}

// talk opens a tunnel, sends and receives, and ends it; the line of its end is in the log when it returns.
func (p *proxy) talk(t *testing.T, up, down int) {
	t.Helper()
	closed := func() (n int) {
		for _, e := range p.log.entries(t) {
			if e.Event == EventClosed {
				n++
			}
		}
		return n
	}
	before := closed()
	c := p.tunnel(okTarget)
	if _, err := c.Write(make([]byte, up)); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, struct{ io.Reader }{c}); err != nil || n != int64(down) {
		t.Fatalf("%d bytes came down, %v", n, err)
	}
	for deadline := time.Now().Add(patience); closed() == before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no line says that the tunnel has ended")
		}
	}
}

// answering is a server that reads all, and says so many bytes for it.
func answering(t *testing.T, size int) string {
	return upstream(t, func(c *net.TCPConn) {
		if _, err := io.Copy(io.Discard, struct{ io.Reader }{c}); err == nil {
			_, _ = c.Write(make([]byte, size))
		}
	})
}

// TestEndLineTellsAllBytes: of all tunnels that have ended, each way by itself.
func TestEndLineTellsAllBytes(t *testing.T) {
	t.Parallel()
	p := startProxy(t, patientConfig(), answering(t, 30_000))
	p.talk(t, 100, 30_000)
	p.talk(t, 70_000, 30_000)
	p.server.log.End("over")
	e := p.await("end", func(e Entry) bool { return e.Event == EventEnd })
	if e.Up != 70_100 || e.Down != 60_000 {
		t.Errorf("70100 bytes up and 60000 down: %+v", e)
	}
}

// TestWhatTheAgentSaysIsClipped: a name of any length takes 300 bytes of the log.
func TestWhatTheAgentSaysIsClipped(t *testing.T) {
	t.Parallel()
	const kept, sent = 300, 1000
	want := strings.Repeat("a", kept) + "…"
	p := startProxy(t, testConfig(), vendor(t, nil))
	p.ask(connectTo(strings.Repeat("a", sent) + ":443"))
	if e := p.awaitReason(reason.BadTarget); e.Host != want {
		t.Errorf("a target of %d bytes: %d bytes %q", sent, len(e.Host), e.Host)
	}
	c := p.tunnel(okTarget)
	if _, err := c.Write(helloBytes(t, &tls.Config{ServerName: strings.Repeat("a", sent)})); err != nil {
		t.Fatal(err)
	}
	if e := p.awaitReason(reason.SNIDiffers); e.SNI != want {
		t.Errorf("a name of %d bytes in a hello: %d bytes %q", sent, len(e.SNI), e.SNI)
	}
	for n, want := range map[int]int{0: 0, 1: 1, kept: kept, kept + 1: kept + len("…")} {
		if got := len(clip(strings.Repeat("a", n))); got != want {
			t.Errorf("%d bytes are %d, want %d", n, got, want)
		}
	}
}

// TestRepeatsAreOfOnePort: a scan of one host's ports is no repetition of its first port.
func TestRepeatsAreOfOnePort(t *testing.T) {
	t.Parallel()
	c := &clock{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	out := &lines{}
	l := newLog(out, c.now, "invocation.a", 1<<20)
	ports := []int{22, 80, 8443}
	for range 3 {
		for _, port := range ports {
			e := refusal("a.example")
			e.Port = port
			l.Write(e)
		}
	}
	c.at = c.at.Add(repeatAfter)
	l.Flush()
	told, counted := map[int]int{}, map[int]int64{}
	for _, e := range out.entries(t) {
		if e.Event == EventDecision {
			told[e.Port]++
		} else if e.Event == EventRepeated {
			counted[e.Port] += e.Count
		}
	}
	for _, port := range ports {
		if told[port] != 1 || counted[port] != 2 {
			t.Errorf("port %d was refused thrice: %d lines, and %d more counted", port, told[port], counted[port])
		}
	}
}

// TestOnlyWrongMethodsAreToldTheRight: RFC 9110, 15.5.6 wants it of a 405, and of nothing else.
func TestOnlyWrongMethodsAreToldTheRight(t *testing.T) {
	t.Parallel()
	p := startProxy(t, testConfig(), "")
	for _, c := range []struct {
		send  string
		code  int
		allow string
	}{
		{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 405, "CONNECT"},
		{"POST http://x/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405, "CONNECT"},
		{connectTo("github.com:443"), 403, ""},
		{connectTo(vendorName), 400, ""},
	} {
		resp, _ := p.ask(c.send)
		if got := strings.Join(resp.Header.Values("Allow"), ", "); resp.StatusCode != c.code || got != c.allow {
			t.Errorf("%q: %s, Allow: %q, want %q", c.send, resp.Status, got, c.allow)
		}
	}
}
