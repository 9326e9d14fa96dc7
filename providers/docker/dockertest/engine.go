package dockertest

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// Socket is the socket of the real engine: the one that DOCKER_HOST names, else Docker's own. Without
// an engine the test fails; it is never skipped, for a skipped test proves nothing.
func Socket(t testing.TB) string {
	t.Helper()
	path, err := engineSocket(os.Getenv("DOCKER_HOST"))
	if err == "" {
		err = ping(path)
	}
	if err != "" {
		t.Fatalf("this test needs a Docker engine: %s; start one with scripts/engine", err)
	}
	return path
}

func engineSocket(host string) (path, problem string) {
	if host == "" {
		return "/var/run/docker.sock", ""
	}
	path, ok := strings.CutPrefix(host, "unix://")
	if !ok {
		return "", "DOCKER_HOST=" + host + " is no unix socket"
	}
	return path, ""
}

func ping(socket string) (problem string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // it may have much to do
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/_ping", nil)
	if err != nil {
		return err.Error()
	}
	transport := unixTransport(socket)
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err.Error()
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "it answers a ping with " + resp.Status
	}
	return ""
}

func unixTransport(socket string) *http.Transport {
	var d net.Dialer
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) },
		// As many as a sweep of the provider keeps going, so that the proxy does not slow it down.
		MaxIdleConnsPerHost: 32,
		DisableCompression:  true,
	}
}
