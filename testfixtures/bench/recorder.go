package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// writeCall is one call that changed the engine, as a client made it.
type writeCall struct {
	method, path, contentType string
	body                      []byte
	produced                  string // the ID in the answer, "" when there is none
}

// recorder stands between a client and the engine and keeps every call that changes something, so that
// the very same calls can be made again without the client.
type recorder struct {
	mu    sync.Mutex
	calls []writeCall
	reads int
}

var apiVersion = regexp.MustCompile(`^/v1\.[0-9]+`)

// listen serves on a unix socket until the listener is closed.
func (r *recorder) listen(socket string, engine *bareEngine) (net.Listener, error) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	proxy.Transport = recordingTransport{r, engine.client.Transport}
	go func() { _ = http.Serve(l, proxy) }() // ends with an error when the listener is closed
	return l, nil
}

// take returns what was recorded since the last take.
func (r *recorder) take() (writes []writeCall, reads int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	writes, reads = r.calls, r.reads
	r.calls, r.reads = nil, 0
	return writes, reads
}

type recordingTransport struct {
	recorder *recorder
	next     http.RoundTripper
}

func (t recordingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		t.recorder.mu.Lock()
		t.recorder.reads++
		t.recorder.mu.Unlock()
		return t.next.RoundTrip(req)
	}
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		req.ContentLength, req.TransferEncoding = int64(len(body)), nil
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	if resp.StatusCode > 299 {
		return resp, nil // refused: it changed nothing
	}
	call := writeCall{
		method: req.Method, path: apiVersion.ReplaceAllString(req.URL.RequestURI(), ""),
		contentType: req.Header.Get("Content-Type"), body: body,
	}
	var made struct{ ID string }
	if strings.Contains(call.path, "/create") && json.Unmarshal(answer, &made) == nil {
		call.produced = made.ID
	}
	t.recorder.mu.Lock()
	t.recorder.calls = append(t.recorder.calls, call)
	t.recorder.mu.Unlock()
	return resp, nil
}
