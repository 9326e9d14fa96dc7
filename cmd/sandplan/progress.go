package main

import (
	"slices"
	"sync"
	"time"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/planner"
)

// stillEvery is how often an operation that takes long says that it goes on.
const stillEvery = 10 * time.Second

// drawEvery is how often a terminal shows anew what is under way, mostLive how much of it.
const (
	drawEvery = 100 * time.Millisecond
	mostLive  = 12
)

// progress prints a line when an operation starts and ends, and while it takes long. On a terminal it shows
// what is under way below the lines, instead of telling that it started.
type progress struct {
	app     *app
	ui      *ui
	mu      sync.Mutex
	running map[planner.Address]underway
	live    bool
	frame   int
	quit    chan struct{}
	done    chan struct{}
}

type underway struct {
	event applier.Event
	since time.Time
	told  time.Duration
}

func (a *app) progress(u *ui) *progress {
	p := &progress{app: a, ui: u, running: map[planner.Address]underway{}, quit: make(chan struct{}), done: make(chan struct{})}
	p.live = u.stream == nil && !u.quiet && u.human.Color
	go p.tick()
	return p
}

func (p *progress) event(e applier.Event) {
	p.mu.Lock()
	if e.Type == applier.EventStart {
		p.running[e.Addr] = underway{event: e, since: p.app.now()}
	} else {
		delete(p.running, e.Addr)
	}
	p.mu.Unlock()
	if p.live {
		p.draw() // what has ended is gone before its line comes
		if e.Type == applier.EventStart {
			return
		}
	}
	p.say(p.text(e))
}

func (p *progress) text(e applier.Event) string {
	if p.ui.quiet {
		return p.ui.err.Event(e)
	}
	return p.ui.out.Event(e)
}

func (p *progress) say(text string) {
	if p.ui.quiet {
		p.ui.printErr(text)
	} else {
		p.ui.print(text)
	}
}

func (p *progress) tick() {
	defer close(p.done)
	every := time.Second
	if p.live {
		every = drawEvery
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-p.quit:
			return
		case <-t.C:
			if p.live {
				p.draw()
			} else {
				p.still()
			}
		}
	}
}

// still tells of every operation whose next ten seconds are over.
func (p *progress) still() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var addrs []planner.Address
	for a := range p.running {
		addrs = append(addrs, a)
	}
	planner.SortAddresses(addrs)
	for _, a := range addrs {
		w := p.running[a]
		if elapsed := p.app.now().Sub(w.since); elapsed-w.told >= stillEvery {
			w.told = elapsed.Truncate(stillEvery)
			p.running[a] = w
			p.say(p.ui.out.Still(w.event, w.told))
		}
	}
}

// draw shows what is under way now, the longest first.
func (p *progress) draw() {
	p.mu.Lock()
	var addrs []planner.Address
	for a := range p.running {
		addrs = append(addrs, a)
	}
	planner.SortAddresses(addrs)
	slices.SortStableFunc(addrs, func(a, b planner.Address) int { return p.running[a].since.Compare(p.running[b].since) })
	var lines []string
	for i, a := range addrs {
		if i == mostLive {
			lines = append(lines, p.ui.human.MoreRunning(len(addrs)-i))
			break
		}
		w := p.running[a]
		lines = append(lines, p.ui.human.Running(w.event, p.app.now().Sub(w.since), p.frame))
	}
	p.frame++
	p.mu.Unlock()
	p.ui.below(lines)
}

func (p *progress) end() {
	close(p.quit)
	<-p.done
	if p.live {
		p.ui.below(nil)
	}
}
