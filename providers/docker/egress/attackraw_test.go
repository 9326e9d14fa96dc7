package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// drip sends bytes one by one until the other side has enough, and says what that side answered.
func drip(c *net.TCPConn, b []byte, each time.Duration) string {
	answer := make(chan string, 1)
	go func() {
		got, _ := io.ReadAll(c)
		answer <- string(got)
	}()
	for i := 0; ; i++ {
		select {
		case s := <-answer:
			return s
		case <-time.After(each):
			_, _ = c.Write(b[i%len(b):][:1]) // it fails when the proxy has closed, and then there is an answer
		}
	}
}

// TestAttackDrip: a byte now and then buys no time, since what is bounded is the whole.
func TestAttackDrip(t *testing.T) {
	t.Run("a request", func(t *testing.T) {
		cfg := testConfig()
		cfg.Limits.HeadMS = 500
		p := startProxy(t, cfg, "")
		if s := drip(p.raw("CONNECT "), []byte("a"), 20*time.Millisecond); !strings.HasPrefix(s, "HTTP/1.1 408 ") {
			t.Errorf("answered %q", s)
		}
		p.awaitReason(reason.HeadTooSlow)
	})
	t.Run("a hello", func(t *testing.T) {
		cfg := testConfig()
		cfg.Limits.HelloMS = 500
		got := &lines{}
		p := startProxy(t, cfg, vendor(t, got))
		hello := records(withExtension(helloBytes(t, &tls.Config{ServerName: vendorName}), 21, make([]byte, 4<<10)), 1)
		drip(p.tunnel(okTarget), hello, 20*time.Millisecond)
		p.awaitReason(reason.HelloTooSlow)
		if got.len() > 0 {
			t.Errorf("%d bytes of half a hello were forwarded", got.len())
		}
	})
}

// TestAttackUrgent: an urgent byte is not part of a stream, and what is forwarded is what was looked at.
func TestAttackUrgent(t *testing.T) {
	urgent := func(c *net.TCPConn, b string) {
		t.Helper()
		raw, err := c.SyscallConn()
		if err == nil {
			cerr := raw.Control(func(fd uintptr) { err = syscall.Sendto(int(fd), []byte(b), syscall.MSG_OOB, nil) })
			err = errors.Join(err, cerr)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got := &lines{}
	p := startProxy(t, testConfig(), upstream(t, func(c *net.TCPConn) { _, _ = io.Copy(got, c) }))
	hello := helloBytes(t, &tls.Config{ServerName: vendorName})
	c := p.raw("CONNECT api.vendor.example")
	urgent(c, "!")
	if _, err := io.WriteString(c, ":443 HTTP/1.1\r\nHost: "+okTarget+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len(established))
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != established {
		t.Fatalf("an urgent byte that is not in the stream: %q, %v", answer, err)
	}
	at := bytes.Index(hello, []byte(vendorName)) + 3
	_, err := c.Write(hello[:at])
	urgent(c, "x")
	_, err2 := c.Write(hello[at:])
	if err := errors.Join(err, err2, c.CloseWrite()); err != nil {
		t.Fatal(err)
	}
	p.await("closed", func(e Entry) bool { return e.Event == EventClosed })
	if !bytes.Equal(got.bytes(), hello) {
		t.Errorf("checked was a hello of %d bytes, forwarded were %d, or others", len(hello), got.len())
	}
}

// TestAttackBehindRefusal: a connection that was refused is over, whatever is asked next on it.
func TestAttackBehindRefusal(t *testing.T) {
	p := startProxy(t, testConfig(), vendor(t, nil))
	c := p.raw(connectTo("evil.example:443"))
	if _, err := io.ReadFull(c, make([]byte, 12)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, connectTo(okTarget))
	rest, _ := io.ReadAll(c)
	if bytes.Contains(rest, []byte("HTTP/1.1 ")) {
		t.Errorf("a second answer: %q", rest)
	}
	if lookups, dials := p.seen(); len(lookups)+len(dials) > 0 {
		t.Errorf("it made the lookups %v and the dials %v", lookups, dials)
	}
}

// TestAttackServerSpeaksFirst: without a hello nothing passes in the other direction either.
func TestAttackServerSpeaksFirst(t *testing.T) {
	cfg := testConfig()
	cfg.Limits.HelloMS = 500
	p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "SSH-2.0-evil\r\n")
		_, _ = io.Copy(io.Discard, c)
	}))
	if got, _ := io.ReadAll(p.tunnel(okTarget)); len(got) > 0 {
		t.Errorf("the agent got %q", got)
	}
	p.awaitReason(reason.HelloTooSlow)
}

// TestAttackFINBehindRequest: who has nothing more to say gets no tunnel to listen in.
func TestAttackFINBehindRequest(t *testing.T) {
	p := startProxy(t, testConfig(), upstream(t, func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "evil")
		_, _ = io.Copy(io.Discard, c)
	}))
	c := p.raw(connectTo(okTarget))
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(c); bytes.Contains(got, []byte("evil")) {
		t.Errorf("the agent got %q", got)
	}
	p.awaitReason(reason.Unused)
}

// TestAttackLog: names that the agent chooses make no second line and no terminal do anything.
func TestAttackLog(t *testing.T) {
	for _, tt := range []struct{ name, sni, reason string }{
		{"line", "a\"}\n{\"seq\":9,\"x\":\"", "a line of its own"},
		{"escape", "\x1b]0;evil\x07\x1b[2J...", "an escape sequence"},
		{"eight bits", "\u009b2J\x7f..........", "control characters above ASCII, which JSON leaves as they are"},
		{"direction", "\u202ecod.exe........", "a change of the direction of writing"},
		{"no UTF-8", "\xff\xfe\xc0\x80..........", "bytes that are no text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := (tt.sni + "..................")[:len(vendorName)]
			p := startProxy(t, testConfig(), vendor(t, nil))
			hello := bytes.Replace(helloBytes(t, &tls.Config{ServerName: vendorName}), []byte(vendorName), []byte(name), 1)
			c := p.tunnel(okTarget)
			if _, err := c.Write(hello); err != nil {
				t.Fatal(err)
			}
			if e := p.awaitReason(reason.SNIDiffers); len(e.SNI) < len(name) {
				t.Errorf("%s: the log says %q", tt.reason, e.SNI)
			}
			log := p.log.bytes()
			if i := bytes.IndexFunc(log, func(r rune) bool { return r >= 0x7f || r < ' ' && r != '\n' }); i >= 0 {
				t.Errorf("%s: byte %d of %q", tt.reason, i, log)
			}
			if n := bytes.Count(log, []byte("\n")); n != len(p.log.entries(t)) || n != 1 {
				t.Errorf("%s: %d lines", tt.reason, n)
			}
		})
	}
}
