package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/docker/docker/api/types/events"

	"github.com/sandplan/sandplan/planner"
)

// Watch tells everything that happens on the engine from a moment on, until ctx ends or the engine is
// lost; then the channel is closed. The first signals may be older than the call: an engine remembers
// its last 256, and says nothing about those that it has forgotten, so that the moment must be recent.
//
// Nothing is filtered on the engine's side: events of networks carry no labels, and engines differ in
// what their filters mean. Whoever listens must not fall behind: engines drop what is not read in time.
func (e *Engine) Watch(ctx context.Context, since time.Time) (<-chan planner.Signal, error) {
	const what = "listen to the engine's events: %w"
	// The client library tells of a request that failed after it has returned, or not in time.
	resp, err := e.request(ctx, http.MethodGet, "/v"+e.info.API+"/events",
		url.Values{"since": {fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond())}})
	if err != nil {
		return nil, fmt.Errorf(what, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
		return nil, fmt.Errorf(what, errors.Join(replyError(resp.StatusCode, raw), err))
	}
	out := make(chan planner.Signal, 256)
	go func() {
		defer close(out)
		defer resp.Body.Close()
		for in := json.NewDecoder(resp.Body); ; {
			var m events.Message
			if in.Decode(&m) != nil {
				return
			}
			select {
			case out <- planner.Signal{At: time.Unix(0, m.TimeNano), Type: string(m.Type), Action: string(m.Action),
				ID: m.Actor.ID, Container: m.Actor.Attributes["container"]}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}
