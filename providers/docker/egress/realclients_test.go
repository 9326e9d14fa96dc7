//go:build sandplanclients

package egress

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/testfixtures/tlsserver"
)

// TestRealClients sends what people use through the proxy: curl, wget, git, npm, Node's fetch and its WebSocket,
// Python's urllib. It needs a build tag, since they are not on every machine: make clients, a part of make
// test, brings them. HTTP/1.1, HTTP/2 and WebSockets are tried without them, and in more ways, beside this.
func TestRealClients(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	ended, pongs := make(chan error, 1), make(chan []string, 1)
	p := startProxy(t, testConfig(), startSite(t, dir, ca, serveWebSocket(ended, pongs)))
	proxyURL := "http://" + p.addr
	env := append(os.Environ(), "HOME="+dir, "NO_PROXY=", "no_proxy=", "NODE_USE_ENV_PROXY=1",
		"HTTP_PROXY="+proxyURL, "http_proxy="+proxyURL, "HTTPS_PROXY="+proxyURL, "https_proxy="+proxyURL,
		"SSL_CERT_FILE="+ca, "CURL_CA_BUNDLE="+ca, "GIT_SSL_CAINFO="+ca, "NODE_EXTRA_CA_CERTS="+ca, "npm_config_cafile="+ca,
		"npm_config_registry=https://"+vendorName+"/npm/", "npm_config_fetch_retries=0", "npm_config_update_notifier=false")
	const url, other = "https://" + vendorName + "/hello", "https://github.com/"
	python := `import urllib.request,sys; print(urllib.request.urlopen(sys.argv[1]).read().decode())`
	fetch := `fetch(process.argv[1]).then(r=>r.text()).then(console.log,e=>{console.error(e,e.cause);process.exit(1)})`
	// The server pings in the middle of each message that it sends back.
	socket := `const ws = new WebSocket(process.argv[1]);
		ws.onopen = () => ws.send("x".repeat(3 << 20));
		ws.onmessage = e => { console.log("echoed", e.data === "x".repeat(3 << 20)); ws.close(4001, "that is all") };
		ws.onclose = e => console.log("closed", e.code, e.reason, e.wasClean);
		ws.onerror = e => { console.error(e.error, e.error?.cause); process.exit(1) }`
	tests := []struct {
		name    string
		argv    []string
		says    string
		refused string // what the client shows of a refusal, "" where it succeeds
	}{
		{"curl", []string{"curl", "-sS", url}, "hello", ""},
		{"curl, HTTP/2", []string{"curl", "-sS", "--http2", "-w", "%{http_version}", url}, "hello2", ""},
		{"curl, refused", []string{"curl", "-sS", other}, "", "403"},
		{"wget", []string{"wget", "-q", "-O", "-", "--ca-certificate=" + ca, url}, "hello", ""},
		{"wget, refused", []string{"wget", "-O", "-", "--tries=1", other}, "", "host_not_declared"},
		{"git", []string{"git", "clone", "-q", "https://" + vendorName + "/repo.git", filepath.Join(dir, "clone")}, "", ""},
		{"git, refused", []string{"git", "ls-remote", other + "x/y"}, "", "403"},
		{"npm", []string{"npm", "view", "left", "version"}, "1.2.3", ""},
		{"node", []string{"node", "-e", fetch, url}, "hello", ""},
		{"node, refused", []string{"node", "-e", fetch, other}, "", "403"},
		{"node, WebSocket", []string{"node", "-e", socket, "wss://" + vendorName + "/ws"}, "echoed true\nclosed 4001 that is all true", ""},
		{"node, WebSocket refused", []string{"node", "-e", socket, "wss://github.com/ws"}, "", "TypeError"}, // as in a browser: at once, and without a why
		{"python", []string{"python3", "-c", python, url}, "hello", ""},
		{"python, refused", []string{"python3", "-c", python, other}, "", "host_not_declared"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			start := time.Now()
			cmd := exec.CommandContext(ctx, tt.argv[0], tt.argv[1:]...)
			cmd.Env, cmd.Dir = env, dir
			out, err := cmd.CombinedOutput()
			t.Logf("%s: %s", time.Since(start).Round(time.Millisecond), out)
			switch {
			case tt.refused == "" && (err != nil || !strings.Contains(string(out), tt.says)):
				t.Errorf("%v, want %q", err, tt.says)
			case tt.refused != "" && (err == nil || !strings.Contains(string(out), tt.refused)):
				t.Errorf("%v, want a failure that says %q", err, tt.refused)
			}
		})
	}
	var closed *wsClosed
	select {
	case err := <-ended:
		if got := <-pongs; !errors.As(err, &closed) || closed.code != 4001 || len(got) != 1 {
			t.Errorf("the server's WebSocket ends with %v, and a ping was answered with %q", err, got)
		}
	case <-time.After(patience):
		t.Error("the server's WebSocket does not end")
	}
	for _, e := range p.log.entries(t) {
		if e.Decision == Refuse && e.Host != "github.com" {
			t.Errorf("refused: %+v", e)
		}
	}
	t.Run("node, http", func(t *testing.T) { tryHTTP(t, fetch) })
}

// tryHTTP reaches hosts without TLS: Node leaves a port out of Host where it is the scheme's own.
func tryHTTP(t *testing.T, fetch string) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer site.Close()
	for _, port := range []int{80, 8080} {
		cfg := plainConfig()
		cfg.Hosts[0].Port = port
		p := startProxy(t, cfg, site.Listener.Addr().String())
		cmd := exec.CommandContext(t.Context(), "node", "-e", fetch, fmt.Sprintf("http://%s:%d/", vendorName, port))
		cmd.Env = append(os.Environ(), "NODE_USE_ENV_PROXY=1", "HTTP_PROXY=http://"+p.addr, "http_proxy=http://"+p.addr, "NO_PROXY=", "no_proxy=")
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "hello" {
			t.Errorf("port %d: %v, %s", port, err, out)
		}
	}
}

// startSite is a vendor with a page, a git repository, a package and a WebSocket.
func startSite(t *testing.T, dir, ca string, ws http.Handler) string {
	t.Helper()
	authority, err := tlsserver.Load(ca)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := authority.Issue([]string{vendorName})
	if err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join(dir, "site", "repo.git")
	script := `git init -q work && cd work && git -c user.name=t -c user.email=t@t.example commit -q --allow-empty -m x &&
		git clone -q --bare . "$0" && cd "$0" && git update-server-info`
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, repo)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	mux.Handle("/ws", ws)
	mux.Handle("/repo.git/", http.FileServer(http.Dir(filepath.Join(dir, "site"))))
	mux.HandleFunc("/npm/left", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"name": "left", "dist-tags": map[string]string{"latest": "1.2.3"},
			"versions": map[string]any{"1.2.3": map[string]any{"name": "left", "version": "1.2.3", "dist": map[string]string{
				"tarball": "https://" + vendorName + "/npm/left.tgz", "shasum": "00"}}},
		})
	})
	s := httptest.NewUnstartedServer(mux)
	s.TLS, s.EnableHTTP2 = &tls.Config{Certificates: []tls.Certificate{cert}}, true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}
