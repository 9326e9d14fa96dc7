package egress

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// Kinds of WebSocket frames (RFC 6455, section 5.2).
const (
	wsContinues byte = 0
	wsText      byte = 1
	wsBinary    byte = 2
	wsClose     byte = 8
	wsPing      byte = 9
	wsPong      byte = 10
)

// webSocket is one end of one, after the handshake. It insists on what the RFC demands of the other end, so that
// a torn or shifted stream is no message.
type webSocket struct {
	net.Conn
	in     *bufio.Reader
	client bool // whose frames are masked
	mu     sync.Mutex
	pongs  []string
}

// wsClosed is how the other end closed.
type wsClosed struct {
	code uint16
	why  string
}

func (e *wsClosed) Error() string { return fmt.Sprintf("closed with %d %q", e.code, e.why) }

// wsAccept answers a key, as RFC 6455 has it in section 4.2.2.
func wsAccept(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (w *webSocket) frame(final bool, kind byte, body []byte) error {
	head := []byte{kind, 0}
	if final {
		head[0] |= 0x80
	}
	switch n := len(body); {
	case n < 126:
		head[1] = byte(n)
	case n < 1<<16:
		head[1] = 126
		head = binary.BigEndian.AppendUint16(head, uint16(n))
	default:
		head[1] = 127
		head = binary.BigEndian.AppendUint64(head, uint64(n))
	}
	if w.client {
		var mask [4]byte
		if _, err := rand.Read(mask[:]); err != nil {
			return err
		}
		head[1] |= 0x80
		head = append(head, mask[:]...)
		body = bytes.Clone(body)
		for i := range body {
			body[i] ^= mask[i%4]
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.Write(append(head, body...))
	return err
}

// send sends a message in fragments.
func (w *webSocket) send(kind byte, body []byte, fragment int) error {
	for len(body) > fragment {
		if err := w.frame(false, kind, body[:fragment]); err != nil {
			return err
		}
		kind, body = wsContinues, body[fragment:]
	}
	return w.frame(true, kind, body)
}

// next reads one frame.
func (w *webSocket) next() (final bool, kind byte, body []byte, err error) {
	var head [14]byte
	if _, err := io.ReadFull(w.in, head[:2]); err != nil {
		return false, 0, nil, err
	}
	final, kind = head[0]&0x80 != 0, head[0]&0x0f
	masked, n := head[1]&0x80 != 0, uint64(head[1]&0x7f)
	if masked == w.client || head[0]&0x70 != 0 || kind >= wsClose && (!final || n > 125) {
		return false, 0, nil, fmt.Errorf("no frame begins with %x", head[:2])
	}
	switch n {
	case 126:
		_, err = io.ReadFull(w.in, head[:2])
		n = uint64(binary.BigEndian.Uint16(head[:]))
	case 127:
		_, err = io.ReadFull(w.in, head[:8])
		n = binary.BigEndian.Uint64(head[:])
	}
	if err != nil || n > 64<<20 {
		return false, 0, nil, fmt.Errorf("a frame of %d bytes: %v", n, err)
	}
	var mask [4]byte
	if masked {
		if _, err := io.ReadFull(w.in, mask[:]); err != nil {
			return false, 0, nil, err
		}
	}
	body = make([]byte, n)
	_, err = io.ReadFull(w.in, body)
	for i := range body {
		body[i] ^= mask[i%4]
	}
	return final, kind, body, err
}

// message reads a whole one, and says in how many fragments it came. It answers pings on the way; what it
// returns when the other end closes is a wsClosed.
func (w *webSocket) message() (kind byte, body []byte, fragments int, err error) {
	for {
		final, k, part, err := w.next()
		switch {
		case err != nil:
			return 0, nil, 0, err
		case k == wsPing:
			if err := w.frame(true, wsPong, part); err != nil {
				return 0, nil, 0, err
			}
			continue
		case k == wsPong:
			w.pongs = append(w.pongs, string(part))
			continue
		case k == wsClose && len(part) >= 2:
			return 0, nil, 0, &wsClosed{binary.BigEndian.Uint16(part), string(part[2:])}
		case (k == wsContinues) != (fragments > 0) || k > wsBinary:
			return 0, nil, 0, fmt.Errorf("a frame of kind %d after %d fragments", k, fragments)
		}
		if fragments++; fragments == 1 {
			kind = k
		}
		if body = append(body, part...); final {
			return kind, body, fragments, nil
		}
	}
}

func (w *webSocket) close(code uint16, why string) error {
	return w.frame(true, wsClose, append(binary.BigEndian.AppendUint16(nil, code), why...))
}

// serveWebSocket sends every message back, in fragments of another size, and a ping in the middle of each. It
// says in what the exchange ended, and the pongs that came.
func serveWebSocket(ended chan<- error, pongs chan<- []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Sec-WebSocket-Key")
		if raw, err := base64.StdEncoding.DecodeString(key); err != nil || len(raw) != 16 || r.Header.Get("Sec-WebSocket-Version") != "13" ||
			!strings.EqualFold(r.Header.Get("Upgrade"), "websocket") || !strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade") {
			http.Error(w, "no WebSocket handshake", http.StatusBadRequest)
			return
		}
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Accept: "+wsAccept(key)+"\r\n\r\n")
		ws := &webSocket{Conn: c, in: rw.Reader}
		err = ws.echo()
		var closed *wsClosed
		if errors.As(err, &closed) {
			// The one that was asked says the same, and ends the stream; then it waits for the other's end.
			_ = ws.close(closed.code, closed.why)
			if half, ok := c.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			_, _ = io.Copy(io.Discard, c)
		}
		ended <- err
		pongs <- ws.pongs
	}
}

func (w *webSocket) echo() error {
	for n := 1; ; n++ {
		kind, body, _, err := w.message()
		if err != nil {
			return err
		}
		half := len(body) / 2
		if err := w.frame(false, kind, body[:half]); err != nil {
			return err
		}
		if err := w.frame(true, wsPing, fmt.Appendf(nil, "ping %d", n)); err != nil {
			return err
		}
		if err := w.send(wsContinues, body[half:], 100_000); err != nil {
			return err
		}
	}
}

// metered is a connection that counts what goes over it.
type metered struct {
	net.Conn
	up, down atomic.Int64
}

func (c *metered) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.up.Add(int64(n))
	return n, err
}

func (c *metered) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.down.Add(int64(n))
	return n, err
}

// dialWebSocket opens a tunnel, TLS in it, and a WebSocket in that.
func dialWebSocket(t *testing.T, p *proxy) (*webSocket, *metered) {
	t.Helper()
	raw := &metered{Conn: p.tunnel(okTarget)}
	c := tls.Client(raw, &tls.Config{ServerName: vendorName, InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	const key = "dGhlIHNhbXBsZSBub25jZQ==" // the RFC's own, whose answer stands there, too
	if _, err := io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: "+vendorName+"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: "+key+"\r\nSec-WebSocket-Version: 13\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Fatalf("%v, %v", resp, err)
	}
	return &webSocket{Conn: c, in: in, client: true}, raw
}

// TestWebSocket: messages of every size in fragments both ways with pings among them, silence, and a close that
// both sides see. What the log counts is what went over the wire.
func TestWebSocket(t *testing.T) {
	ended, pongs, mux := make(chan error, 1), make(chan []string, 1), http.NewServeMux()
	mux.Handle("/ws", serveWebSocket(ended, pongs))
	p := startProxy(t, testConfig(), startVendor(t, mux).Listener.Addr().String())
	ws, raw := dialWebSocket(t, p)
	exchanges := []struct {
		kind     byte
		size     int
		fragment int
		silence  time.Duration
	}{
		{wsText, 2, 1, 0}, {wsText, 125, 125, 0}, {wsBinary, 126, 50, 0}, {wsBinary, 1 << 16, 1 << 16, 0},
		{wsBinary, 6 << 20, 300_000, 0},
		{wsText, 300, 100, bulkWithin + 200*time.Millisecond}, // the relay has gone back from bulk, and forgets nobody
		{wsBinary, 3 << 20, 3 << 20, 0},
	}
	for i, x := range exchanges {
		time.Sleep(x.silence)
		body := make([]byte, x.size)
		if _, err := rand.Read(body); err != nil {
			t.Fatal(err)
		}
		if err := ws.frame(true, wsPing, fmt.Appendf(nil, "client's %d", i)); err != nil {
			t.Fatal(err)
		}
		if err := ws.send(x.kind, body, x.fragment); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		kind, got, fragments, err := ws.message()
		if err != nil || kind != x.kind || sha256.Sum256(got) != sha256.Sum256(body) || fragments < 2 {
			t.Fatalf("message %d of %d bytes: %d bytes of kind %d in %d fragments, or others: %v", i, x.size, len(got), kind, fragments, err)
		}
		if want := fmt.Sprintf("client's %d", i); len(ws.pongs) != i+1 || ws.pongs[i] != want {
			t.Fatalf("pongs %q, want %q as the last", ws.pongs, want)
		}
	}
	if err := ws.close(4001, "that is all"); err != nil {
		t.Fatal(err)
	}
	var closed *wsClosed
	if _, _, _, err := ws.message(); !errors.As(err, &closed) || *closed != (wsClosed{4001, "that is all"}) {
		t.Errorf("the client sees %v", err)
	}
	if n, err := io.Copy(io.Discard, ws.in); n != 0 || err != nil {
		t.Errorf("behind the end there are %d bytes, %v", n, err)
	}
	ws.Close()
	if err := <-ended; !errors.As(err, &closed) || *closed != (wsClosed{4001, "that is all"}) {
		t.Errorf("the server sees %v", err)
	}
	if got := <-pongs; len(got) != len(exchanges) || got[0] != "ping 1" {
		t.Errorf("the server's pings were answered with %q", got)
	}
	e := p.await("closed", func(e Entry) bool { return e.Event == EventClosed })
	if e.Reason != reason.Closed || e.Up != raw.up.Load() || e.Down != raw.down.Load() || e.Up < 9<<20 || e.Down < 9<<20 {
		t.Errorf("%d bytes went up and %d down; the log: %+v", raw.up.Load(), raw.down.Load(), e)
	}
}

// TestWebSocketTorn: a server that falls over in the middle of a message is no end of it.
func TestWebSocketTorn(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Accept: "+wsAccept(r.Header.Get("Sec-WebSocket-Key"))+"\r\n\r\n")
		ws := &webSocket{Conn: c}
		_ = ws.frame(false, wsText, []byte("to be cont"))
		tcp := c.(*tls.Conn).NetConn().(*net.TCPConn)
		_, _ = tcp.Read(make([]byte, 1)) // the client has it
		_ = tcp.SetLinger(0)
		tcp.Close()
	})
	p := startProxy(t, testConfig(), startVendor(t, mux).Listener.Addr().String())
	ws, _ := dialWebSocket(t, p)
	if final, _, body, err := ws.next(); final || string(body) != "to be cont" || err != nil {
		t.Fatalf("%q, %v", body, err)
	}
	if err := ws.frame(true, wsPing, nil); err != nil {
		t.Fatal(err)
	}
	var closed *wsClosed
	if _, _, _, err := ws.message(); err == nil || errors.Is(err, io.EOF) || errors.As(err, &closed) {
		t.Errorf("a torn WebSocket ends with %v", err)
	}
	p.awaitReason(reason.Reset)
}

// TestWebSocketRefused: it fails at once and for a reason, and not by a clock somewhere.
func TestWebSocketRefused(t *testing.T) {
	p := startProxy(t, testConfig(), "")
	fastest := patience
	for range 10 { // of which a busy machine may slow some
		start := time.Now()
		resp, body := p.ask(connectTo("ws.example:443"))
		if resp.StatusCode != http.StatusForbidden || !strings.Contains(body, string(reason.HostNotDeclared)) {
			t.Errorf("another host: %s, %s", resp.Status, body)
		}
		if fastest = min(fastest, time.Since(start)); fastest < time.Second {
			break
		}
	}
	if fastest >= time.Second {
		t.Errorf("a refusal takes %s at best", fastest)
	}
	if lookups, dials := p.seen(); len(lookups)+len(dials) != 0 {
		t.Errorf("lookups %v, dials %v", lookups, dials)
	}
}
