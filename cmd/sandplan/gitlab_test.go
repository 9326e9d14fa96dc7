package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// gitLab takes comments as GitLab's API does: with a token, as a form.
type gitLab struct {
	url   string
	mu    sync.Mutex
	notes map[string]string // the last one at each path
}

func newGitLab(t *testing.T) *gitLab {
	t.Helper()
	g := &gitLab{notes: map[string]string{}}
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	g.url = s.URL + "/api/v4"
	return g
}

func (g *gitLab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch body := r.PostFormValue("body"); {
	case r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, "/api/v4/"):
		http.NotFound(w, r)
	case r.Header.Get("PRIVATE-TOKEN") != "t":
		http.Error(w, "401 Unauthorized", http.StatusUnauthorized)
	case body == "":
		http.Error(w, "400 body is missing", http.StatusBadRequest)
	default:
		g.mu.Lock()
		defer g.mu.Unlock()
		g.notes[strings.TrimPrefix(r.URL.Path, "/api/v4/")] = body
		w.WriteHeader(http.StatusCreated)
	}
}

// last takes the last comment at a path.
func (g *gitLab) last(path string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	note := g.notes[path]
	delete(g.notes, path)
	return note
}
