package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// startVendor is an HTTPS server behind the proxy, with HTTP/2, server-sent events and a WebSocket. Each event
// but the first waits for a value of next.
func startVendor(t *testing.T, next <-chan struct{}) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Proto", r.Proto)
		_, _ = io.Copy(w, r.Body)
	})
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			if i > 0 {
				<-next
			}
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
		for {
			body, err := readFrame(rw.Reader)
			if err != nil {
				return
			}
			_, _ = c.Write(append([]byte{0x82, byte(len(body))}, body...))
		}
	})
	s := httptest.NewUnstartedServer(mux)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t, vendorName)}}
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// readFrame reads one short WebSocket frame, masked or not.
func readFrame(in *bufio.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	n, mask := int(head[1]&0x7f), make([]byte, 4)
	if n == 126 {
		var long [2]byte
		if _, err := io.ReadFull(in, long[:]); err != nil {
			return nil, err
		}
		n = int(binary.BigEndian.Uint16(long[:]))
	}
	if head[1]&0x80 == 0 {
		mask = nil
	} else if _, err := io.ReadFull(in, mask); err != nil {
		return nil, err
	}
	body := make([]byte, n)
	_, err := io.ReadFull(in, body)
	for i := range body {
		if mask != nil {
			body[i] ^= mask[i%4]
		}
	}
	return body, err
}

func (p *proxy) client(http2 bool) *http.Client {
	through := &url.URL{Scheme: "http", Host: p.addr}
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		Proxy: http.ProxyURL(through), ForceAttemptHTTP2: http2,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}},
	}}
}

func TestHTTPClients(t *testing.T) {
	p := startProxy(t, testConfig(), startVendor(t, nil))
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		c := p.client(proto == "HTTP/2.0")
		if proto == "HTTP/2.0" {
			c.Transport.(*http.Transport).TLSClientConfig.NextProtos = []string{"h2"}
		}
		body := strings.Repeat("x", 1<<20)
		for range 3 {
			resp, err := c.Post("https://"+vendorName+"/echo", "text/plain", strings.NewReader(body))
			if err != nil {
				t.Fatalf("%s: %v", proto, err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || string(got) != body || resp.Header.Get("X-Proto") != proto {
				t.Errorf("%s: %d bytes by %s, %v", proto, len(got), resp.Header.Get("X-Proto"), err)
			}
		}
		_, err := c.Get("https://github.com/")
		if err == nil || !strings.Contains(err.Error(), "host_not_declared") || !strings.Contains(err.Error(), "do not retry") {
			t.Errorf("%s: a refusal is %v: the client's user does not learn why", proto, err)
		}
		c.CloseIdleConnections()
	}
}

// TestEventsArriveAtOnce: server-sent events are not gathered on the way. The server sends none before the
// client has the one before.
func TestEventsArriveAtOnce(t *testing.T) {
	next := make(chan struct{}, 1)
	defer close(next)
	p := startProxy(t, testConfig(), startVendor(t, next))
	resp, err := p.client(false).Get("https://" + vendorName + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n := 0
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		if strings.HasPrefix(in.Text(), "data: ") {
			n++
			next <- struct{}{}
		}
	}
	if n != 3 {
		t.Errorf("%d events", n)
	}
}

func TestWebSocket(t *testing.T) {
	p := startProxy(t, testConfig(), startVendor(t, nil))
	c := tls.Client(p.tunnel(okTarget), &tls.Config{ServerName: vendorName, InsecureSkipVerify: true})
	if _, err := io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: "+vendorName+"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("%v, %v", resp, err)
	}
	for i := range 20 {
		body := []byte(fmt.Sprintf("message %d", i))
		frame := append([]byte{0x82, 0x80 | byte(len(body)), 1, 2, 3, 4}, body...)
		for j := range body {
			frame[6+j] ^= byte(1 + j%4)
		}
		if _, err := c.Write(frame); err != nil {
			t.Fatal(err)
		}
		if got, err := readFrame(in); err != nil || string(got) != string(body) {
			t.Fatalf("%q, %v", got, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if resp, _ := p.ask(connectTo("ws.example:443")); resp.StatusCode != 403 {
		t.Errorf("another host: %s", resp.Status)
	}
}

// TestSlowReaderHoldsOneBuffer: what a client does not read waits at the server, and not here.
func TestSlowReaderHoldsOneBuffer(t *testing.T) {
	wrote := make(chan int, 1)
	p := startProxy(t, plainConfig(), upstream(t, func(c *net.TCPConn) {
		n, chunk := 0, make([]byte, 1<<20)
		for n < 256<<20 {
			if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
				return
			}
			k, err := c.Write(chunk)
			if n += k; err != nil {
				break
			}
		}
		wrote <- n
		_, _ = io.Copy(io.Discard, c)
	}))
	var before, after runtime.MemStats
	runtime.GC()
	c := p.tunnel(okTarget)
	time.Sleep(50 * time.Millisecond)
	runtime.ReadMemStats(&before)
	n := <-wrote
	runtime.ReadMemStats(&after)
	// What got away lies in the kernel's buffers, which its own limits bound.
	if n >= 256<<20 || n == 0 {
		t.Errorf("the server was held up after %d bytes", n)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("%d bytes of heap for a reader that does not read", grown)
	}
	c.Close()
	p.await("closed", func(e Entry) bool { return e.Event == EventClosed && e.Reason != reason.Closed })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(p.server.slots) > 0 && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Error("a client that left is held on to")
	}
}
