package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
)

// maxReply bounds what is read of one reply: lists of 10 000 containers stay below it.
const maxReply = 256 << 20

// newTransport talks to a unix socket. observeCalls counts the calls, in test builds only.
func newTransport(socket string, getenv func(string) string) http.RoundTripper {
	var d net.Dialer
	return observeCalls(&http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) },
		// The sweep keeps this many calls going; net/http would keep two connections and dial the rest anew.
		MaxIdleConnsPerHost: 2 * sweepWidth,
		IdleConnTimeout:     30 * time.Second,
		ReadBufferSize:      64 << 10, // a reply in one or two reads
		DisableCompression:  true,
	}, getenv)
}

// get reads one resource of the engine as it is. The SDK decodes lists into its own structs and drops
// what it does not know, which is just what must not go unnoticed: rows need the raw reply, with the fields that the
// SDK's structs do not know.
func (e *Engine) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	var buf bytes.Buffer
	if err := e.getInto(ctx, &buf, path, query); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// getInto is get into a buffer, whose memory may have served for other replies.
func (e *Engine) getInto(ctx context.Context, buf *bytes.Buffer, path string, query url.Values) error {
	buf.Reset()
	resp, err := e.request(ctx, http.MethodGet, "/v"+e.info.API+path, query)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := buf.ReadFrom(io.LimitReader(resp.Body, maxReply+1)); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if buf.Len() > maxReply {
		return fmt.Errorf("the engine's reply to %s is longer than %d bytes", path, maxReply)
	}
	if resp.StatusCode != http.StatusOK {
		return replyError(resp.StatusCode, buf.Bytes())
	}
	return nil
}

func (e *Engine) request(ctx context.Context, method, path string, query url.Values) (*http.Response, error) {
	u := url.URL{Scheme: "http", Host: "docker", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	return e.http.Do(req)
}

// replyError is the engine's own message, as one of the errors that errdefs tells apart.
func replyError(status int, raw []byte) error {
	var said struct{ Message string }
	if json.Unmarshal(raw, &said) != nil || said.Message == "" {
		said.Message = strings.TrimSpace(string(raw))
	}
	switch status {
	case http.StatusNotFound:
		return fmt.Errorf("%s: %w", said.Message, errdefs.ErrNotFound)
	case http.StatusConflict:
		return fmt.Errorf("%s: %w", said.Message, errdefs.ErrConflict)
	}
	return fmt.Errorf("the engine answered %d: %s", status, said.Message)
}

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
