package docker

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// nothingThere is an engine without any object.
type nothingThere struct{}

func (nothingThere) RoundTrip(r *http.Request) (*http.Response, error) {
	lists := map[string]string{"/networks": "[]", "/containers/json": "[]", "/volumes": `{"Volumes":null}`}
	for end, list := range lists {
		if strings.HasSuffix(r.URL.Path, end) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(list)), Request: r}, nil
		}
	}
	return nil, errors.New("nobody asks for " + r.URL.Path)
}

// Lists are read again while somebody works, for seconds. What was read before the first of them says nothing
// of what is there by then, even if the first look had no use for it: a seed that was listed late, or two of them.
func TestBytesReadAheadServeTheFirstListsOnly(t *testing.T) {
	l := &look{engine: &Engine{http: &http.Client{Transport: nothingThere{}}}, scope: planner.Scope{Project: "p", Workspace: "w"}}
	early := &ahead{seed: "seed", view: toolView{content: "as it was"}, done: make(chan struct{})}
	close(early.done)
	l.ahead.Store(early)
	if err := l.load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if l.ahead.Load() != early {
		t.Error("what was read ahead does not serve the first look")
	}
	if err := l.load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if l.ahead.Load() != nil {
		t.Error("what was read before the first lists is trusted with the second ones")
	}
}

// Of bytes that do not come, nobody waits for longer than for all else of the look.
func TestBytesReadAheadAreNotWaitedForInVain(t *testing.T) {
	l := &look{engine: &Engine{http: &http.Client{Transport: nothingThere{}}}}
	l.ahead.Store(&ahead{done: make(chan struct{})})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	over := make(chan error, 1)
	go func() {
		_, err := l.readTool(ctx, "seed", "")
		over <- err
	}()
	select {
	case err := <-over:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the look that was given up ends with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a look that was given up waits for what was read ahead")
	}
}
