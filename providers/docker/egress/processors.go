package egress

import (
	"sync"
	"sync/atomic"
	"time"
)

// processors are how many of its processors the proxy's scheduler uses: one while there is one thing to do at a
// time, and all of them while there are several.
//
// With a second processor Go wakes a second thread for whatever becomes ready, to look for work that the first
// one does itself: for a tunnel that is opened alone a third more processor time, and a tenth less tunnels.
// Sockets' ends that wait are nothing to do, however many they are.
type processors struct {
	all int       // as declared; with fewer than two there is nothing to choose
	set func(int) // stops everything for some 50 µs
	// tick calls back after calmFor.
	tick func(func())

	busy atomic.Int32 // tunnels that are being opened, and directions of tunnels that carry much
	peak atomic.Int32 // the most of them at once since the last tick

	mu   sync.Mutex
	wide atomic.Bool
}

const (
	// several are more than one processor is good for.
	several = 2
	// calmFor is how long there must not have been several: bursts follow each other.
	calmFor = 100 * time.Millisecond
)

// newProcessors begins with one of them.
func newProcessors(all int, set func(int)) *processors {
	p := &processors{all: all, set: set, tick: func(f func()) { time.AfterFunc(calmFor, f) }}
	if all > 0 {
		set(1)
	}
	return p
}

// begin says that there is one thing more to do, end that it is done.
func (p *processors) begin() {
	n := p.busy.Add(1)
	if n < several || p.all < 2 {
		return
	}
	if n > p.peak.Load() {
		p.peak.Store(n) // which of two peaks remains makes no difference
	}
	if !p.wide.Load() {
		p.widen()
	}
}

func (p *processors) end() { p.busy.Add(-1) }

func (p *processors) widen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wide.Load() {
		return
	}
	p.set(p.all)
	p.wide.Store(true)
	p.tick(p.look)
}

// look goes back to one processor after calm.
func (p *processors) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wide.Store(false) // first: what begins from here on comes to widen, and waits there; the rest is counted
	if max(p.peak.Swap(0), p.busy.Load()) >= several {
		p.wide.Store(true)
		p.tick(p.look)
		return
	}
	p.set(1)
}
