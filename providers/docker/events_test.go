package docker

import (
	"context"
	"slices"
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	e := openEngine(t)
	id := armed(t, e, stepsImage(t, e), "say=x")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	since := time.Now()
	// Started before the watch begins: what has just happened is told, too.
	if err := e.Start(ctx, id); err != nil {
		t.Fatal(err)
	}
	signals, err := e.Watch(ctx, since)
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	timeout := time.After(soon)
	for !slices.Contains(actions, "die") {
		select {
		case s := <-signals:
			switch {
			case s.ID == id:
				actions = append(actions, s.Action)
			case s.Container == id:
				actions = append(actions, s.Type+" "+s.Action)
			default:
				continue
			}
			if s.At.Before(since) || s.At.After(time.Now()) {
				t.Errorf("%s at %s", s.Action, s.At)
			}
		case <-timeout:
			t.Fatalf("the container's end was not told; heard %v", actions)
		}
	}
	// Engine 20.10 tells of the end first and of leaving the network then, 26.1 and 28.5 the other way round.
	actions = slices.DeleteFunc(actions, func(a string) bool { return a == "network disconnect" })
	if want := []string{"network connect", "start", "die"}; !slices.Equal(actions, want) {
		t.Errorf("heard %v, want %v", actions, want)
	}
	// What the engine remembers is told by an answer that ends. That is its last 256 events, whoever makes them.
	const remembers = 256
	heard := slices.Clone(actions)
	remembered, err := e.Past(ctx, since)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range remembered {
		heard = slices.DeleteFunc(heard, func(a string) bool {
			return s.ID == id && a == s.Action || s.Container == id && a == s.Type+" "+s.Action
		})
	}
	if len(heard) > 0 && len(remembered) < remembers {
		t.Errorf("of what was heard the engine does not remember %v", heard)
	}
	cancel()
	for range signals { // it ends
	}
	if _, err := e.Watch(ctx, since); err == nil {
		t.Error("a watch that cannot begin gave no error")
	}
}
