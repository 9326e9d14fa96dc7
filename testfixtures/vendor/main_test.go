package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// start runs the server and returns its address.
func start(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(ctx, append([]string{"-listen=127.0.0.1:0"}, args...), w) }()
	t.Cleanup(func() {
		cancel()
		go func() { _, _ = io.Copy(io.Discard, r) }()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "vendor: ready") {
		t.Fatalf("first line %q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	_, addr, _ := strings.Cut(line, " on ")
	addr, _, _ = strings.Cut(addr, ",")
	return addr
}

func TestAnswersUnderItsName(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	addr := start(t, "-ca-out="+ca, "-name=llm.example,127.0.0.1", "-answer=hi")
	pem, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	call := func(name string) (string, error) {
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: name}}}
		defer c.CloseIdleConnections()
		resp, err := c.Post("https://"+addr+"/v1/x", "text/plain", strings.NewReader("12345"))
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return strings.TrimSpace(string(b)), err
	}
	if got, err := call("llm.example"); err != nil || got != `{"answer":"hi","path":"/v1/x","bytes":5}` {
		t.Errorf("answer %s, %v", got, err)
	}
	if _, err := call("other.example"); err == nil {
		t.Error("it has a certificate for another name too")
	}
}
