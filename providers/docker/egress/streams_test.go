package egress

import (
	"bufio"
	"context"
	"crypto/tls"
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

// startVendor is an HTTPS server behind the proxy, with HTTP/2.
func startVendor(t *testing.T, mux *http.ServeMux) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(mux)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t, vendorName)}}
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (p *proxy) client(http2 bool) *http.Client {
	through := &url.URL{Scheme: "http", Host: p.addr}
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		Proxy: http.ProxyURL(through), ForceAttemptHTTP2: http2,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}},
	}}
}

func TestHTTPClients(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Proto", r.Proto)
		_, _ = io.Copy(w, r.Body)
	})
	p := startProxy(t, testConfig(), startVendor(t, mux).Listener.Addr().String())
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
	mux := http.NewServeMux()
	mux.HandleFunc("/events", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			if i > 0 {
				<-next
			}
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
		}
	})
	p := startProxy(t, testConfig(), startVendor(t, mux).Listener.Addr().String())
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

// TestSlowReaderHoldsOneBuffer: what a client does not read waits at the server, and not here.
func TestSlowReaderHoldsOneBuffer(t *testing.T) {
	wrote, chunk := make(chan int, 1), make([]byte, 1<<20) // before anything is measured, however late it is used
	p := startProxy(t, plainConfig(), upstream(t, func(c *net.TCPConn) {
		n := 0
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
