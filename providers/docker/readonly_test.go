package docker

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestReadOnly: every call that can change an engine, as the SDK spells it, is refused before it is sent.
func TestReadOnly(t *testing.T) {
	for _, tt := range []struct {
		call   string
		sent   bool
		reason string
	}{
		{"GET /_ping", true, "the first word"},
		{"HEAD /_ping", true, "another spelling of it"},
		{"GET /v1.41/info", true, "what the engine says of itself"},
		{"GET /v1.41/networks", true, "a list"},
		{"GET /v1.41/networks/0123", true, "one network"},
		{"GET /v1.41/containers/json", true, "a list"},
		{"GET /v1.41/containers/0123/json", true, "one container"},
		{"GET /v1.41/containers/0123/changes", true, "what was written in it"},
		{"GET /v1.41/containers/0123/archive", true, "the shim's bytes"},
		{"HEAD /v1.41/containers/0123/archive", true, "what stands at a path"},
		{"GET /v1.41/volumes/x", true, "one volume"},
		{"GET /v1.41/images/registry.example/a/b:1/json", true, "a name has slashes"},
		{"GET /v1.41/containers/0123/attach/ws", false, "a GET that writes"},
		{"GET /v1.41/containers/0123/logs", false, "nothing asks for it"},
		{"GET /v1.41/images/x/get", false, "nothing asks for it"},
		{"PUT /v1.41/containers/0123/archive", false, "writes a file"},
		{"POST /v1.41/containers/create", false, "makes a container"},
		{"POST /v1.41/containers/0123/start", false, "starts one"},
		{"POST /v1.41/containers/0123/exec", false, "runs something"},
		{"POST /v1.41/networks/create", false, "makes a network"},
		{"POST /v1.41/networks/0123/connect", false, "widens a sandbox"},
		{"POST /v1.41/volumes/create", false, "makes a volume"},
		{"POST /v1.41/images/load", false, "loads an image"},
		{"POST /v1.41/images/create", false, "pulls one"},
		{"DELETE /v1.41/containers/0123", false, "removes"},
		{"DELETE /v1.41/networks/0123", false, "removes"},
		{"DELETE /v1.41/volumes/x", false, "removes"},
		{"DELETE /v1.41/images/x", false, "removes"},
		{"POST /v1.41/containers/0123/json", false, "the path of a read with another method"},
	} {
		wire := &counting{}
		method, path, _ := strings.Cut(tt.call, " ")
		req, err := http.NewRequest(method, "http://docker"+path+"?x=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := readOnly{wire}.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if (wire.calls == 1) != tt.sent || (err == nil) != tt.sent {
			t.Errorf("%s (%s): sent %d times, error %v; want it sent: %v", tt.call, tt.reason, wire.calls, err, tt.sent)
		}
	}
}

type counting struct{ calls int }

func (c *counting) RoundTrip(*http.Request) (*http.Response, error) {
	c.calls++
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("")), Header: http.Header{}}, nil
}
