package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/sandplan/sandplan/providers/docker/probe"
)

// collector reads what a probe says. It is the writer of the probe's standard output.
type collector struct {
	mu        sync.Mutex
	part      []byte
	ready     *probe.Ready
	done      bool
	outcomes  map[string]probe.Outcome
	sightings []probe.Sighting
	lost      int
	// news is closed and made anew whenever something came.
	news chan struct{}
}

func newCollector() *collector {
	return &collector{outcomes: map[string]probe.Outcome{}, news: make(chan struct{})}
}

// maxLine is far above any line of a probe.
const maxLine = 64 << 10

// Write implements io.Writer. A line that is none of the probe's is passed over: then what it would have
// said is missing, which no attempt survives as held.
func (c *collector) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.part = append(c.part, p...)
	for {
		i := bytes.IndexByte(c.part, '\n')
		if i < 0 {
			break
		}
		var m probe.Message
		if json.Unmarshal(c.part[:i], &m) == nil {
			c.take(m)
		}
		c.part = c.part[i+1:]
	}
	if len(c.part) > maxLine {
		c.part = nil
	}
	close(c.news)
	c.news = make(chan struct{})
	return len(p), nil
}

func (c *collector) take(m probe.Message) {
	switch {
	case m.Ready != nil:
		c.ready = m.Ready
	case m.Outcome != nil:
		c.outcomes[m.Outcome.ID] = *m.Outcome
	case m.Sighting != nil:
		c.sightings = append(c.sightings, *m.Sighting)
	case m.Lost > 0:
		c.lost += m.Lost
	case m.Done:
		c.done = true
	}
}

// until waits until a condition holds, or the program ends, or time is up.
func (c *collector) until(ctx context.Context, ended <-chan error, holds func(*collector) bool) error {
	for {
		c.mu.Lock()
		ok, news := holds(c), c.news
		c.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-news:
		case err := <-ended:
			c.mu.Lock()
			ok := holds(c)
			c.mu.Unlock()
			if ok {
				return nil
			}
			return fmt.Errorf("it ended too early: %w", orEnd(err))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// outcome is what the probe said of an attempt.
func (c *collector) outcome(id string) (probe.Outcome, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.outcomes[id]
	return o, ok
}

// seen is the first sighting of a token that counts. What came to a listener says more than a packet.
func (c *collector) seen(t probe.Token, counts func(probe.Sighting) bool) (probe.Sighting, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out probe.Sighting
	found := false
	for _, s := range c.sightings {
		if s.Token == t && (counts == nil || counts(s)) && (!found || out.Interface != "" && s.Interface == "") {
			out, found = s, true
		}
	}
	return out, found
}

// missed is how many packets the canary could not look at.
func (c *collector) missed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

func orEnd(err error) error {
	if err == nil {
		return errors.New("its output is over")
	}
	return err
}
