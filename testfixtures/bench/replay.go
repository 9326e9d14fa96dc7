package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// replay makes recorded calls again, as early and as concurrently as they can be made: a call waits
// for the calls that produced an ID which it names, and nothing else. What orders them beyond that
// (images before all, containers off before their networks) are the stages.
type replay struct {
	engine *bareEngine
	mu     sync.Mutex
	ids    map[string]string // recorded ID → the ID this time
}

// preparedCall is a call and the recorded IDs that it names, found before the clock runs.
type preparedCall struct {
	writeCall
	names []string
}

// prepare finds in each call the IDs that any of the producing calls made.
func prepare(calls, producing []writeCall) []preparedCall {
	out := make([]preparedCall, len(calls))
	for i, c := range calls {
		out[i].writeCall = c
		for _, p := range producing {
			id := p.produced
			// The one large body is an image, which names no ID.
			if id != "" && id != c.produced && (strings.Contains(c.path, id) || len(c.body) < 1<<20 && bytes.Contains(c.body, []byte(id))) {
				out[i].names = append(out[i].names, id)
			}
		}
	}
	return out
}

// stageOf orders the calls of a create or a delete.
func stageOf(c writeCall) int {
	switch {
	case strings.HasPrefix(c.path, "/images/load"), strings.HasPrefix(c.path, "/volumes/create"):
		return 0
	case c.method == "DELETE" && strings.HasPrefix(c.path, "/networks/"):
		return 2
	case c.method == "DELETE" && (strings.HasPrefix(c.path, "/volumes/") || strings.HasPrefix(c.path, "/images/")):
		return 3
	}
	return 1
}

// run makes the calls, at most limit at a time.
func (r *replay) run(calls []preparedCall, limit int) error {
	for stage := range 4 {
		var batch []preparedCall
		for _, c := range calls {
			if stageOf(c.writeCall) == stage {
				batch = append(batch, c)
			}
		}
		if err := r.runStage(batch, limit); err != nil {
			return err
		}
	}
	return nil
}

func (r *replay) runStage(calls []preparedCall, limit int) error {
	done := make(map[string]chan struct{}, len(calls))
	for _, c := range calls {
		if c.produced != "" {
			done[c.produced] = make(chan struct{})
		}
	}
	// A call that waits holds a place, so what it waits for must have one already: in the order of the
	// recording everything that a call names was made before it.
	return concurrently(limit, len(calls), func(i int) error {
		c := calls[i]
		if c.produced != "" {
			defer close(done[c.produced])
		}
		for _, id := range c.names {
			if made, ok := done[id]; ok {
				<-made
			}
		}
		return r.call(c)
	})
}

func (r *replay) call(c preparedCall) error {
	path, body := c.path, c.body
	for _, old := range c.names {
		r.mu.Lock()
		now := r.ids[old]
		r.mu.Unlock()
		path = strings.ReplaceAll(path, old, now)
		body = bytes.ReplaceAll(body, []byte(old), []byte(now))
	}
	answer, err := r.engine.call(c.method, path, c.contentType, body)
	if err != nil && c.method == "DELETE" && strings.HasPrefix(path, "/images/") {
		return nil // somebody else uses the image too, for whom it stays: the call was made all the same
	}
	if err != nil || c.produced == "" {
		return err
	}
	var made struct{ ID string }
	if err := json.Unmarshal(answer, &made); err != nil || made.ID == "" {
		return fmt.Errorf("%s %s: no ID in the answer", c.method, path)
	}
	r.mu.Lock()
	r.ids[c.produced] = made.ID
	r.mu.Unlock()
	return nil
}
