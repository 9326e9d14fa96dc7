package dockertest

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stub stands for an engine, so that these tests see exactly what reaches it.
func stub(t *testing.T) (socket string, got *[]string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls = append(calls, r.Method+" "+r.URL.RequestURI())
		if r.Header.Get("Upgrade") == "tcp" {
			hijack(w)
			return
		}
		_, _ = io.WriteString(w, `{"big":9007199254740993,"list":[1]}`)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return socket, &calls
}

// hijack is the engine's side of an attach: it sends back what it is sent.
func hijack(w http.ResponseWriter) {
	conn, buf, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	_, _ = io.Copy(conn, buf)
}

func ask(t *testing.T, socket, method, path string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://docker"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := unixTransport(socket)
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

func TestProxyFaults(t *testing.T) {
	for _, tc := range []struct {
		reason string
		fault  Fault
		// of three calls to GET /v1.41/x?q=1: what each gives
		want    []string
		reached int
	}{
		{"no fault matches", Fault{Call: "^GET /y$", Status: 500}, []string{"200", "200", "200"}, 3},
		{"the path is without version and query", Fault{Call: "^GET /x$", Status: 500}, []string{"500", "500", "500"}, 0},
		{"the second only", Fault{Call: "x", After: 1, Times: 1, Status: 404, Message: "gone"}, []string{"200", `404 {"message":"gone"}`, "200"}, 2},
		{"cut before the engine", Fault{Call: "x", Times: 1, Cut: true}, []string{"cut", "200", "200"}, 2},
		{"cut after the engine", Fault{Call: "x", Times: 1, Cut: true, Obeyed: true}, []string{"cut", "200", "200"}, 3},
		{"an edited answer keeps its digits", Fault{Call: "x", Times: 1, Edit: func(b any) any { b.(map[string]any)["new"] = true; return b }},
			[]string{`200 {"big":9007199254740993,"list":[1],"new":true}`, "200", "200"}, 3},
	} {
		engine, reached := stub(t)
		p := NewProxy(t, engine, tc.fault)
		for i, want := range tc.want {
			status, body, err := ask(t, p.Socket, http.MethodGet, "/v1.41/x?q=1")
			got := http.StatusText(status)
			switch code, text, full := strings.Cut(want, " "); {
			case want == "cut":
				if err == nil {
					t.Errorf("%s: call %d is answered with %s", tc.reason, i, got)
				}
			case err != nil || code != codeOf(status) || full && strings.TrimSpace(body) != text:
				t.Errorf("%s: call %d gives %d %s (%v), want %s", tc.reason, i, status, body, err, want)
			}
		}
		if len(*reached) != tc.reached || p.Count("^GET /x$") != 3 {
			t.Errorf("%s: %q reached the engine, want %d; the proxy counts %q", tc.reason, *reached, tc.reached, p.Calls())
		}
	}
}

func codeOf(status int) string {
	raw, _ := json.Marshal(status)
	return string(raw)
}

func TestProxyDelay(t *testing.T) {
	engine, _ := stub(t)
	p := NewProxy(t, engine, Fault{Call: "x", Delay: 80 * time.Millisecond})
	start := time.Now()
	if status, _, err := ask(t, p.Socket, http.MethodGet, "/x"); err != nil || status != http.StatusOK || time.Since(start) < 80*time.Millisecond {
		t.Errorf("%d, %v after %v", status, err, time.Since(start))
	}
}

func TestProxyForwardsAttach(t *testing.T) {
	engine, _ := stub(t)
	p := NewProxy(t, engine)
	conn, err := net.Dial("unix", p.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, err = io.WriteString(conn, "POST /v1.41/containers/x/attach HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	buf := make([]byte, 256)
	for !strings.HasSuffix(got.String(), "hello") {
		n, err := conn.Read(buf)
		got.Write(buf[:n])
		if strings.HasSuffix(got.String(), "\r\n\r\n") { // as the SDK does: nothing before the answer
			if _, err := io.WriteString(conn, "hello"); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			break
		}
	}
	if !strings.HasPrefix(got.String(), "HTTP/1.1 101 ") || !strings.HasSuffix(got.String(), "hello") {
		t.Errorf("through the proxy comes %q", got.String())
	}
}

func TestEngineSocket(t *testing.T) {
	for _, tc := range []struct{ host, path, problem string }{
		{"", "/var/run/docker.sock", ""},
		{"unix:///x.sock", "/x.sock", ""},
		{"tcp://1.2.3.4", "", "DOCKER_HOST=tcp://1.2.3.4 is no unix socket"},
	} {
		if path, problem := engineSocket(tc.host); path != tc.path || problem != tc.problem {
			t.Errorf("%q: %q, %q", tc.host, path, problem)
		}
	}
	if problem := ping(filepath.Join(t.TempDir(), "none")); !strings.Contains(problem, "no such file") {
		t.Errorf("no socket: %q", problem)
	}
}
