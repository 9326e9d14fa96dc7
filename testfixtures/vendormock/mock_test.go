package vendormock

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// client starts a server and gives a client that takes every name for it.
func client(t *testing.T) (*Server, *http.Client) {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	s, err := Start(t.Context(), "127.0.0.1:0", ca)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	pem, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	c := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: pool},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.Addr())
		},
	}}
	return s, c
}

func post(t *testing.T, c *http.Client, url, body string) string {
	t.Helper()
	resp, err := c.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestMessagesFollowTheScript(t *testing.T) {
	s, c := client(t)
	var last atomic.Int32
	s.Play(Script{Calls: []Call{{Name: "Read", Input: json.RawMessage(`{"file_path":"/work/a"}`)}}, Answer: "done", Last: func() { last.Add(1) }})
	first := `{"model":"m","stream":true,"tools":[{"name":"Read"}],"messages":[{"role":"user","content":"hi"}]}`
	if got := post(t, c, "https://api.anthropic.com/v1/messages", first); !strings.Contains(got, `"name":"Read"`) || !strings.Contains(got, "event: message_stop") {
		t.Errorf("first turn: %s", got)
	}
	if last.Load() != 0 {
		t.Error("the first turn counts as the last")
	}
	second := `{"model":"m","tools":[{"name":"Read"}],"messages":[{"role":"user","content":[{"type":"tool_result","is_error":true,"content":[{"type":"text","text":"no"}]}]}]}`
	if got := post(t, c, "https://api.anthropic.com/v1/messages", second); !strings.Contains(got, `"text":"done"`) {
		t.Errorf("second turn: %s", got)
	}
	if last.Load() != 1 {
		t.Errorf("%d turns count as the last", last.Load())
	}
	all := s.Requests()
	if len(all) != 2 || !slices.Equal(all[0].Tools(), []string{"Read"}) {
		t.Fatalf("recorded %+v", all)
	}
	if got := all[1].Results(); len(got) != 1 || got[0] != (Result{"no", true}) {
		t.Errorf("results %+v", got)
	}
}

func TestResponsesFollowTheScript(t *testing.T) {
	s, c := client(t)
	s.Play(Script{Calls: []Call{{Name: "apply_patch", Input: json.RawMessage(`"*** Begin Patch"`)}, {Name: "f", Input: json.RawMessage(`{"a":1}`)}}, Answer: "done"})
	url := "https://api.openai.com/v1/responses"
	if got := post(t, c, url, `{"input":[]}`); !strings.Contains(got, `"input":"*** Begin Patch"`) || !strings.Contains(got, "custom_tool_call") {
		t.Errorf("first turn: %s", got)
	}
	if got := post(t, c, url, `{"input":[{"type":"custom_tool_call_output","output":"x"}]}`); !strings.Contains(got, `"arguments":"{\"a\":1}"`) {
		t.Errorf("second turn: %s", got)
	}
	if got := post(t, c, url, `{"input":[{"type":"custom_tool_call_output","output":"x"},{"type":"function_call_output","output":"y"}]}`); !strings.Contains(got, `"text":"done"`) {
		t.Errorf("third turn: %s", got)
	}
	s.Play(Script{Status: 401})
	if got := post(t, c, url, `{}`); !strings.Contains(got, "mock error 401") {
		t.Errorf("an error: %s", got)
	}
}

func TestToolsAreFoundWhereverTheyAre(t *testing.T) {
	for _, c := range []struct {
		reason, body string
		want         []string
	}{
		{"none", `{"input":"hi"}`, []string{}},
		{"a vendor's own tool has a type and no name", `{"tools":[{"type":"web_search"},{"type":"function","name":"b"}]}`, []string{"b", "web_search"}},
		{"newer models of Codex have no `tools`", `{"input":[{"type":"additional_tools","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}]}]}`,
			[]string{"functions/exec"}},
	} {
		if got := (Request{Body: []byte(c.body)}).Tools(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.reason, got, c.want)
		}
	}
}

func TestPackedBodiesAreRead(t *testing.T) {
	s, c := client(t)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(`{"tools":[{"name":"x"}]}`))
	z.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://chatgpt.com/backend-api/codex/responses", &packed)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("Authorization", "Bearer t")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if all := s.Requests(); len(all) != 1 || !slices.Equal(all[0].Tools(), []string{"x"}) || all[0].Credential() != "Bearer t" || all[0].Host != "chatgpt.com" {
		t.Errorf("recorded %+v", all)
	}
}

func TestCutAnswersNobody(t *testing.T) {
	s, c := client(t)
	s.Play(Script{Cut: true})
	if resp, err := c.Get("https://api.openai.com/v1/models"); err == nil {
		resp.Body.Close()
		t.Error("a connection that is cut was answered")
	}
	if len(s.Requests()) != 0 {
		t.Error("it was recorded all the same")
	}
}

// TestLoginsFindTheirWorkspace: Codex asks no model before it has this answer.
func TestLoginsFindTheirWorkspace(t *testing.T) {
	_, c := client(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://chatgpt.com/backend-api/wham/accounts/check", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Chatgpt-Account-Id", "account-1")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got struct {
		Accounts []struct {
			ID     string `json:"id"`
			Origin string `json:"workspace_backend_origin"`
		} `json:"accounts"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || len(got.Accounts) != 1 || got.Accounts[0].ID != "account-1" || got.Accounts[0].Origin != "https://chatgpt.com" {
		t.Errorf("%+v, %v", got, err)
	}
}
