package dockertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"
)

// versionPrefix is the API version in front of every path, which no test cares about.
var versionPrefix = regexp.MustCompile(`^/v[0-9.]+/`)

// Proxy is a unix socket that forwards to an engine, with the faults that a test asks for.
type Proxy struct {
	// Socket is where clients connect.
	Socket string

	mu     sync.Mutex
	calls  []string
	faults []*Fault
}

// Fault is what happens to some calls instead of what the engine does.
type Fault struct {
	// Call selects the calls: a regular expression over "METHOD /path" without the API version and the
	// query, as in `^POST /containers/create$`.
	Call string
	// After lets that many calls through first; Times is how many are hit then, 0 for all.
	After, Times int

	// Delay comes before everything else.
	Delay time.Duration
	// Status answers in place of the engine, with Message.
	Status  int
	Message string
	// Cut closes the connection without an answer: before the engine gets the call, or, with Obeyed,
	// after it has done what it was asked to.
	Cut    bool
	Obeyed bool
	// Edit changes the JSON of the engine's answer.
	Edit func(body any) any

	pattern *regexp.Regexp
	seen    int
}

// NewProxy starts a proxy in front of the engine at a socket; it ends with the test.
func NewProxy(t testing.TB, engine string, faults ...Fault) *Proxy {
	t.Helper()
	// t.TempDir is too long for the 107 bytes of a socket's path.
	dir, err := os.MkdirTemp("", "spdt")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Socket: filepath.Join(dir, "engine.sock")}
	for i := range faults {
		faults[i].pattern = regexp.MustCompile(faults[i].Call)
		p.faults = append(p.faults, &faults[i])
	}
	listener, err := net.Listen("unix", p.Socket)
	if err != nil {
		t.Fatal(err)
	}
	transport := unixTransport(engine)
	quiet := log.New(io.Discard, "", 0) // a connection cut on purpose is nothing to report
	forward := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "docker" },
		Transport:      transport,
		FlushInterval:  -1, // streams of logs and events
		ModifyResponse: p.answer,
		ErrorLog:       quiet,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := &http.Server{Handler: p.handler(forward), ErrorLog: quiet}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		transport.CloseIdleConnections()
		_ = os.RemoveAll(dir)
	})
	return p
}

// Calls are all calls so far, as "METHOD /path".
func (p *Proxy) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.calls...)
}

// Count is how many calls match a regular expression.
func (p *Proxy) Count(call string) int {
	pattern, n := regexp.MustCompile(call), 0
	for _, c := range p.Calls() {
		if pattern.MatchString(c) {
			n++
		}
	}
	return n
}

type faultKey struct{}

func withFault(ctx context.Context, f *Fault) context.Context {
	return context.WithValue(ctx, faultKey{}, f)
}

func (p *Proxy) handler(forward http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := p.record(r.Method + " " + versionPrefix.ReplaceAllString(r.URL.Path, "/"))
		if f == nil {
			forward.ServeHTTP(w, r)
			return
		}
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
			return
		}
		switch {
		case f.Cut && !f.Obeyed:
			panic(http.ErrAbortHandler)
		case f.Status != 0:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(f.Status)
			_ = json.NewEncoder(w).Encode(map[string]string{"message": f.Message})
		default:
			forward.ServeHTTP(w, r.WithContext(withFault(r.Context(), f)))
		}
	})
}

// record notes a call and finds the fault that hits it.
func (p *Proxy) record(call string) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, call)
	for _, f := range p.faults {
		if !f.pattern.MatchString(call) {
			continue
		}
		f.seen++
		if f.seen > f.After && (f.Times == 0 || f.seen <= f.After+f.Times) {
			return f
		}
	}
	return nil
}

var errCut = errors.New("connection cut by the test")

// answer changes the engine's answer, where a fault says so.
func (p *Proxy) answer(resp *http.Response) error {
	f, _ := resp.Request.Context().Value(faultKey{}).(*Fault)
	if f == nil {
		return nil
	}
	if f.Cut {
		return errCut
	}
	if f.Edit == nil || resp.StatusCode >= http.StatusMultipleChoices {
		return nil
	}
	var body any
	dec := json.NewDecoder(resp.Body)
	dec.UseNumber()
	if err := dec.Decode(&body); err != nil {
		return fmt.Errorf("edit the engine's answer: %w", err)
	}
	raw, err := json.Marshal(f.Edit(body))
	if err != nil {
		return fmt.Errorf("edit the engine's answer: %w", err)
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(raw))
	resp.ContentLength = int64(len(raw))
	resp.Header.Set("Content-Length", strconv.Itoa(len(raw)))
	return nil
}
