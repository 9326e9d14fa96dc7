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
	body, err := e.events(ctx, url.Values{"since": {engineMoment(since)}})
	if err != nil {
		return nil, err
	}
	out := make(chan planner.Signal, 256)
	go func() {
		defer close(out)
		defer body.Close()
		for in := json.NewDecoder(body); ; {
			s, err := nextSignal(in)
			if err != nil {
				return
			}
			select {
			case out <- s:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// Past is what the engine remembers of what happened from a moment on until now.
func (e *Engine) Past(ctx context.Context, since time.Time) ([]planner.Signal, error) {
	// An end that has passed when the engine reads it makes it repeat, and end.
	body, err := e.events(ctx, url.Values{"since": {engineMoment(since)}, "until": {engineMoment(time.Now())}})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var out []planner.Signal
	for in := json.NewDecoder(io.LimitReader(body, maxReply)); ; {
		s, err := nextSignal(in)
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("read the engine's events: %w", err)
		}
		out = append(out, s)
	}
}

// events begins to read the engine's events.
func (e *Engine) events(ctx context.Context, query url.Values) (io.ReadCloser, error) {
	const what = "listen to the engine's events: %w"
	// The client library tells of a request that failed after it has returned, or not in time.
	resp, err := e.request(ctx, http.MethodGet, "/v"+e.info.API+"/events", query)
	if err != nil {
		return nil, fmt.Errorf(what, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
		return nil, fmt.Errorf(what, errors.Join(replyError(resp.StatusCode, raw), err))
	}
	return resp.Body, nil
}

// engineMoment is a time as the engine takes it.
func engineMoment(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }

func nextSignal(in *json.Decoder) (planner.Signal, error) {
	var m events.Message
	if err := in.Decode(&m); err != nil {
		return planner.Signal{}, err
	}
	return planner.Signal{At: time.Unix(0, m.TimeNano), Type: string(m.Type), Action: string(m.Action),
		ID: m.Actor.ID, Container: m.Actor.Attributes["container"]}, nil
}
