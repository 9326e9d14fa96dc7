package dockertest

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// versionPrefix is the API version in front of every path.
var versionPrefix = regexp.MustCompile(`^/v[0-9.]+/`)

// Proxy is a unix socket that forwards to an engine, with the faults that a test asks for.
type Proxy struct {
	// Socket is where clients connect.
	Socket string
	*faults
}

// NewProxy starts a proxy in front of the engine at a socket; it ends with the test.
func NewProxy(t testing.TB, engine string, list ...Fault) *Proxy {
	t.Helper()
	p := &Proxy{faults: newFaults(list)}
	transport := unixTransport(engine)
	t.Cleanup(transport.CloseIdleConnections)
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "docker" },
		Transport:     transport,
		FlushInterval: -1, // streams of logs and events
		ErrorLog:      quiet(),
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.Socket = listen(t, p.wrap(forward, func(r *http.Request) string { return r.Method + " " + plainPath(r) }))
	return p
}

// plainPath is the path of a call without the API version, which no test cares about.
func plainPath(r *http.Request) string { return versionPrefix.ReplaceAllString(r.URL.Path, "/") }

// quiet: a connection cut on purpose is nothing to report.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// listen serves on a unix socket of its own until the test ends.
func listen(t testing.TB, handler http.Handler) (socket string) {
	t.Helper()
	// t.TempDir is too long for the 107 bytes of a socket's path.
	dir, err := os.MkdirTemp("", "spdt")
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "engine.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ErrorLog: quiet()}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		_ = os.RemoveAll(dir)
	})
	return socket
}
