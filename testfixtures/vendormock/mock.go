// Package vendormock is both vendors' API for tests: a TLS server that speaks Anthropic's Messages and
// OpenAI's Responses, streams answers, makes the CLI call the tools that a test names, and records every
// request. No model is behind it.
//
// Start gives a server, Play the script of the next run, and Requests what came: which tools a request
// offers (Request.Tools, which knows where each vendor's CLI puts them) and what became of the calls
// (Request.Results) is read from the requests themselves, because nothing but the wire tells the truth.
package vendormock

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/sandplan/sandplan/testfixtures/tlsserver"
)

// Hosts are the names that the server has a certificate for.
func Hosts() []string { return []string{"api.anthropic.com", "api.openai.com", "chatgpt.com"} }

// Script is how the server behaves until the next one.
type Script struct {
	// Calls are made by the "model" one after another: call n when a request holds n results.
	Calls []Call `json:"calls"`
	// Answer is the text of the last turn.
	Answer string `json:"answer"`
	// Status answers every turn with this error instead, when it is not 0.
	Status int `json:"status"`
	// Settings are the managed settings that Anthropic's server would deliver to Claude Code.
	Settings json.RawMessage `json:"settings"`
	// Cut closes every connection before the first byte of an answer.
	Cut bool `json:"cut"`
	// Last is called before the answer of the last turn, while the CLI waits for it.
	Last func() `json:"-"`
}

// Call is one call of a tool. Input is a JSON object, or for a tool of Codex that takes text a string.
type Call struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// Server is a running mock.
type Server struct {
	http *http.Server
	addr net.Addr
	done chan error

	mu       sync.Mutex
	script   Script
	requests []Request
}

// Start listens on ADDRESS:PORT, with a certificate of the authority in caFile, which is made unless it is
// there.
func Start(ctx context.Context, address, caFile string) (*Server, error) {
	ca, err := tlsserver.Load(caFile)
	if err != nil {
		return nil, err
	}
	cert, err := ca.Issue(Hosts())
	if err != nil {
		return nil, err
	}
	ln, err := tlsserver.Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	s := &Server{addr: ln.Addr(), done: make(chan error, 1)}
	s.http = &http.Server{
		Handler:   s,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		// Connections that end before they begin are how sandplan proves that there is a way.
		ErrorLog:          log.New(io.Discard, "", 0),
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() { s.done <- s.http.ServeTLS(cutter{ln, s}, "", "") }()
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.addr.String() }

// Close ends the server.
func (s *Server) Close() error {
	err := s.http.Close()
	if end := <-s.done; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// Play sets the script, and forgets what came until now.
func (s *Server) Play(script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.requests = script, nil
}

// Requests are all that came since the last Play.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

func (s *Server) playing() Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.script
}

// cutter closes connections where the script says so.
type cutter struct {
	net.Listener
	server *Server
}

func (c cutter) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil || !c.server.playing().Cut {
			return conn, err
		}
		conn.Close()
	}
}

// maxBody is above any request of a test.
const maxBody = 64 << 20

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	host, _, _ := strings.Cut(r.Host, ":")
	req := Request{Method: r.Method, Host: host, Path: r.URL.Path, Header: r.Header, Body: body}
	s.mu.Lock()
	s.requests = append(s.requests, req)
	script := s.script
	s.mu.Unlock()
	switch {
	case r.Header.Get("Upgrade") != "":
		http.Error(w, `{"error":"no websockets here"}`, http.StatusUpgradeRequired)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages":
		answerMessages(w, req, script)
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/responses"):
		answerResponses(w, req, script)
	case r.URL.Path == "/api/claude_code/settings" && script.Settings != nil:
		writeJSON(w, http.StatusOK, object{"uuid": "u-1", "checksum": "sha256:x", "settings": script.Settings})
	case strings.HasPrefix(r.URL.Path, backend):
		answerBackend(w, req)
	default:
		writeJSON(w, http.StatusNotFound, object{"error": object{"type": "not_found_error", "message": "the mock has no " + r.URL.Path}})
	}
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "":
		return body, nil
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(z, maxBody))
	case "zstd":
		z, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderMaxMemory(maxBody))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return io.ReadAll(io.LimitReader(z, maxBody))
	default:
		return nil, fmt.Errorf("the mock does not read %s", encoding)
	}
}

type object = map[string]any

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// stream writes server-sent events, one flush each, as vendors do.
func stream(w http.ResponseWriter, events []object) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			panic(err) // maps of strings and numbers have a JSON form
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e["type"], data)
		_ = http.NewResponseController(w).Flush()
	}
}
