package main

import (
	"sync"
	"time"

	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/planner"
)

// runProgress tells what runs do. On a terminal it shows below everything else what each of them is at, and
// for how long: an agent may think for minutes without a word.
type runProgress struct {
	app  *app
	ui   *ui
	live bool
	quit chan struct{}
	done chan struct{}

	mu    sync.Mutex
	runs  map[planner.Address]runUnderWay
	frame int
}

type runUnderWay struct {
	doing string
	since time.Time
}

func (a *app) runProgress(u *ui) *runProgress {
	p := &runProgress{app: a, ui: u, runs: map[planner.Address]runUnderWay{}, quit: make(chan struct{}), done: make(chan struct{})}
	p.live = u.stream == nil && a.renderer(a.stderr).Color
	if !p.live {
		close(p.done)
		return p
	}
	go p.tick()
	return p
}

// begin shows a run from before its first event: to observe a large scope takes a moment.
func (p *runProgress) begin(addr planner.Address) { p.set(addr, "comparing") }

// over takes a run away, whatever its last event was.
func (p *runProgress) over(addr planner.Address) { p.set(addr, "") }

func (p *runProgress) event(e launch.Event) {
	text := p.ui.err.RunEvent(e)
	if p.live && e.Kind != launch.EventEgress { // which leaves the run at what it is at
		p.set(e.Addr, render.Doing(e.Kind))
	}
	p.ui.printErr(text)
}

// runEvent tells of a run, with or without somebody who shows more of it.
func (u *ui) runEvent(e launch.Event) {
	if u.runs != nil {
		u.runs.event(e)
		return
	}
	u.printErr(u.err.RunEvent(e))
}

func (p *runProgress) set(addr planner.Address, doing string) {
	if !p.live {
		return
	}
	p.mu.Lock()
	switch was := p.runs[addr]; {
	case doing == "":
		delete(p.runs, addr)
	case was.doing != doing:
		p.runs[addr] = runUnderWay{doing, p.app.now()}
	}
	p.mu.Unlock()
	p.draw()
}

func (p *runProgress) tick() {
	defer close(p.done)
	t := time.NewTicker(drawEvery)
	defer t.Stop()
	for {
		select {
		case <-p.quit:
			return
		case <-t.C:
			p.draw()
		}
	}
}

// draw shows the runs in the order of their addresses, so that none of them jumps.
func (p *runProgress) draw() {
	r := p.app.renderer(p.app.stderr)
	p.mu.Lock()
	defer p.mu.Unlock()
	var addrs []planner.Address
	for a := range p.runs {
		addrs = append(addrs, a)
	}
	planner.SortAddresses(addrs)
	var lines []string
	for i, a := range addrs {
		if i == mostLive {
			lines = append(lines, r.MoreRunning(len(addrs)-i))
			break
		}
		run := p.runs[a]
		lines = append(lines, r.RunUnderWay(a, run.doing, p.app.now().Sub(run.since), p.frame))
	}
	p.frame++
	p.ui.below(lines)
}

func (p *runProgress) end() {
	if p.live {
		close(p.quit)
	}
	<-p.done
	if p.live {
		p.ui.below(nil)
	}
}
