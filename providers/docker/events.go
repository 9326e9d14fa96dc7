package docker

import (
	"context"
	"fmt"
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
	messages, failed := e.cli.Events(ctx, events.ListOptions{Since: fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond())})
	select {
	case err := <-failed: // the request itself was refused
		return nil, fmt.Errorf("listen to the engine's events: %w", err)
	default:
	}
	out := make(chan planner.Signal, 256)
	go func() {
		defer close(out)
		for {
			select {
			case m := <-messages:
				out <- planner.Signal{At: time.Unix(0, m.TimeNano), Type: string(m.Type), Action: string(m.Action),
					ID: m.Actor.ID, Container: m.Actor.Attributes["container"]}
			case <-failed:
				return
			}
		}
	}()
	return out, nil
}
