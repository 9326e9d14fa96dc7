package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// http2Client keeps to one connection.
func http2Client(p *proxy) *http.Client {
	c := p.client(true)
	c.Timeout = 4 * patience
	tr := c.Transport.(*http.Transport)
	tr.TLSClientConfig.NextProtos, tr.MaxConnsPerHost = []string{"h2"}, 1
	p.t.Cleanup(tr.CloseIdleConnections)
	return c
}

// tunnels are how many were let through.
func (p *proxy) tunnels() (n int) {
	for _, e := range p.log.entries(p.t) {
		if e.Event == EventDecision && e.Decision == Allow {
			n++
		}
	}
	return n
}

// TestHTTP2Multiplexes: streams of one tunnel go on at the same time. No one's request is read before all have
// begun, and each has trailers both ways.
func TestHTTP2Multiplexes(t *testing.T) {
	const streams, size = 24, 512 << 10
	var begun atomic.Int64
	all := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		if begun.Add(1) == streams {
			close(all)
		}
		select {
		case <-all:
		case <-r.Context().Done(): // the client has given up
			return
		}
		w.Header().Set("Trailer", "X-Bytes")
		n, err := io.Copy(w, r.Body)
		w.Header().Set("X-Bytes", fmt.Sprintf("%d %s %v", n, r.Trailer.Get("X-Name"), err))
	})
	p := startProxy(t, testConfig(), startVendor(t, mux).Listener.Addr().String())
	c := http2Client(p)
	var wg sync.WaitGroup
	for i := range streams {
		wg.Go(func() {
			name, body := fmt.Sprintf("stream-%d", i), bytes.Repeat([]byte{byte(i + 1)}, size)
			// A body of no known length, as one with trailers has.
			req, err := http.NewRequest(http.MethodPost, "https://"+vendorName+"/echo", io.MultiReader(bytes.NewReader(body)))
			if err != nil {
				t.Error(err)
				return
			}
			req.Trailer = http.Header{"X-Name": {name}}
			resp, err := c.Do(req)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if want := fmt.Sprintf("%d %s <nil>", size, name); err != nil || !bytes.Equal(got, body) || resp.ProtoMajor != 2 || resp.Trailer.Get("X-Bytes") != want {
				t.Errorf("%s: %d bytes, %s, trailer %q, want %q: %v", name, len(got), resp.Proto, resp.Trailer.Get("X-Bytes"), want, err)
			}
		})
	}
	wg.Wait()
	if n := p.tunnels(); n != 1 {
		t.Errorf("%d tunnels for streams of one connection", n)
	}
}

// TestHTTP2FlowControl: a stream that nobody reads is held up at its sender by HTTP/2's own windows, and the
// others of its tunnel go on.
func TestHTTP2FlowControl(t *testing.T) {
	const size = 24 << 20 // more than the window of a stream, which is 4 MiB here
	var wrote atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 64<<10)
		for wrote.Load() < size {
			n, err := w.Write(chunk)
			if wrote.Add(int64(n)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/small", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "small") })
	p := startProxy(t, testConfig(), startVendor(t, mux).Listener.Addr().String())
	c := http2Client(p)
	large, err := c.Get("https://" + vendorName + "/large")
	if err != nil {
		t.Fatal(err)
	}
	defer large.Body.Close()
	for deadline := time.Now().Add(patience); wrote.Load() < 1<<20 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	for i := range 50 {
		small, err := c.Get("https://" + vendorName + "/small")
		if err != nil {
			t.Fatalf("%d, beside a stream that nobody reads: %v", i, err)
		}
		b, err := io.ReadAll(small.Body)
		small.Body.Close()
		if string(b) != "small" || err != nil {
			t.Fatalf("%q, %v", b, err)
		}
	}
	if n := wrote.Load(); n < 1<<20 || n >= size {
		t.Errorf("the server wrote %d of %d bytes to a client that reads none", n, size)
	}
	if n, err := io.Copy(io.Discard, large.Body); n != size || err != nil {
		t.Errorf("then %d of %d bytes came: %v", n, size, err)
	}
	if n := p.tunnels(); n != 1 {
		t.Errorf("%d tunnels", n)
	}
}

// TestHTTP2GoesAway: a server that shuts down says so on the tunnel, finishes the streams that have begun, pushes
// nothing, and closes. Frame by frame, since clients keep such things to themselves.
func TestHTTP2GoesAway(t *testing.T) {
	begun, finish := make(chan struct{}, 3), make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/wait", func(w http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		<-finish
		fmt.Fprint(w, "whole")
	})
	vendor := startVendor(t, mux)
	let := sync.OnceFunc(func() { close(finish) })
	t.Cleanup(let)
	p := startProxy(t, testConfig(), vendor.Listener.Addr().String())
	c := tls.Client(p.tunnel(okTarget), &tls.Config{ServerName: vendorName, InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	fr := openStreams(t, c, 1, 3, 5)
	for range 3 {
		<-begun
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	down := make(chan error, 1)
	go func() { down <- vendor.Config.Shutdown(ctx) }()
	bodies, last := map[uint32]string{}, uint32(0)
	for {
		f, err := fr.ReadFrame()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch f := f.(type) {
		case *http2.PushPromiseFrame, *http2.RSTStreamFrame:
			t.Errorf("%v", f)
		case *http2.GoAwayFrame:
			if f.ErrCode != http2.ErrCodeNo {
				t.Errorf("%v", f)
			}
			last = f.LastStreamID
			let() // nothing ends before the client knows
		case *http2.DataFrame:
			bodies[f.StreamID] += string(f.Data())
			if f.StreamEnded() {
				bodies[f.StreamID] += "."
			}
		}
	}
	if want := fmt.Sprint(map[uint32]string{1: "whole.", 3: "whole.", 5: "whole."}); fmt.Sprint(bodies) != want || last != 5 {
		t.Errorf("streams %v, the last one is %d, want %v", bodies, last, want)
	}
	if err := <-down; err != nil {
		t.Errorf("the server's end: %v", err)
	}
	c.NetConn().Close()
	p.await("closed", func(e Entry) bool { return e.Event == EventClosed })
}

// openStreams begins HTTP/2 on a connection and asks for /wait on each of the streams.
func openStreams(t *testing.T, c *tls.Conn, ids ...uint32) *http2.Framer {
	t.Helper()
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if proto := c.ConnectionState().NegotiatedProtocol; proto != "h2" {
		t.Fatalf("the server speaks %q", proto)
	}
	fr := http2.NewFramer(c, c)
	if err := fr.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0}); err != nil {
		t.Fatal(err)
	}
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, id := range ids {
		block.Reset()
		for _, h := range []string{":method GET", ":scheme https", ":authority " + vendorName, ":path /wait"} {
			name, value, _ := strings.Cut(h, " ")
			if err := enc.WriteField(hpack.HeaderField{Name: name, Value: value}); err != nil {
				t.Fatal(err)
			}
		}
		if err := fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
	}
	return fr
}
