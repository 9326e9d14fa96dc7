package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// meddling follows what the engine says happens to the objects of a run. Some of it can be seen in no
// other way: a short exec leaves no trace in inspect, nor does what was changed and changed back.
type meddling struct {
	containers map[string]planner.Address // by engine ID
	network    string                     // the invocation's, "" for a runner
	uplink     string
	// own counts what this run itself does, and so must happen once: each container is attached to, which ends
	// with it, started, and connected to each of its networks.
	own map[string]int
	// found gets the first thing that somebody else did. kick asks for a look at once.
	found chan *Decision
	// drift is the first of it that changed the sandbox, also where something else was found before.
	drift atomic.Pointer[Decision]
	kick  chan struct{}
	// guests are containers that came to the uplink. They are met at once: a look may take long.
	guests chan string
	// joined is set when any other container was started: it may share the namespaces of one of these, or
	// their program's volume, which no event says.
	joined atomic.Bool
	// end is closed when the engine said that the command's container has ended.
	main string
	end  chan struct{}
	dead map[string]bool // containers that have ended
	// detached are containers that an attachment has left.
	detached sync.Map
	// seen is everything about the objects of the run, for the record.
	seen []planner.Signal
	done chan struct{}
}

// maxSeen bounds what is kept: a record is no place for a flood.
const maxSeen = 1000

// listen starts to follow the engine's events, before anything is attached to or started.
func (r *run) listen(ctx context.Context) error {
	life, quit := context.WithCancel(context.WithoutCancel(ctx))
	inTime := context.AfterFunc(ctx, quit)
	since := r.Now()
	signals, err := r.Engine.Watch(life, since)
	if !inTime() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		quit()
		return err
	}
	m := &meddling{
		containers: map[string]planner.Address{}, own: map[string]int{}, dead: map[string]bool{}, main: r.ids[r.main],
		found: make(chan *Decision, 1), kick: make(chan struct{}, 1), guests: make(chan string, maxGuests), end: make(chan struct{}), done: make(chan struct{}),
	}
	if r.Runner == "" {
		m.network, m.uplink = r.ids[r.inv.With(planner.PartNetwork)], r.ids[planner.AddrUplink]
	}
	for _, a := range r.own() {
		id := r.ids[a]
		m.containers[id] = a
		m.own["attach "+id], m.own["detach "+id], m.own["start "+id] = 1, 1, 1
		switch {
		case r.Runner != "":
			m.own[connecting("", id)] = 1 // to the network called none, which engines count as one
		case a.Part() == planner.PartProxy:
			m.own[connecting(m.network, id)], m.own[connecting(m.uplink, id)] = 1, 1
		default:
			m.own[connecting(m.network, id)] = 1
		}
	}
	r.meddling, r.deafen = m, func() { quit(); <-m.done }
	go m.follow(life, &ear{watch: r.Engine.Watch, past: r.Engine.Past, hear: m.hear, since: since}, signals)
	return nil
}

// follow listens until ctx ends. While nobody hears, looks have to do; what they cannot show is told by
// the events themselves, later.
func (m *meddling) follow(ctx context.Context, e *ear, signals <-chan planner.Signal) {
	defer close(m.done)
	err := e.follow(ctx, signals, m.look)
	switch {
	case errors.Is(err, errForgotten):
		m.tell(&Decision{Code: CodeDrift, Reason: "nobody can say what happened to the sandbox meanwhile", Err: fmt.Errorf("the engine's events were lost: %w", err)})
	case err != nil:
		m.tell(&Decision{Code: CodeEngine, Reason: "the engine is lost", Err: err})
	}
}

func (m *meddling) hear(s planner.Signal) {
	if s.Type == "container" && s.Action == "start" && m.containers[s.ID] == "" {
		m.joined.Store(true)
	}
	mine := m.containers[s.ID] != "" || m.containers[s.Container] != "" || s.Type == "network" && (s.ID == m.network || s.ID == m.uplink)
	if !mine {
		return
	}
	if len(m.seen) < maxSeen {
		m.seen = append(m.seen, s)
	}
	if m.dead[s.ID] || m.dead[s.Container] {
		return // whoever waits for it knows that it has ended, and what comes now is no part of the run
	}
	what := ""
	switch s.Type {
	case "container":
		what = m.container(s)
	case "network":
		what = m.connection(s)
	}
	if what != "" {
		m.tell(&Decision{Code: CodeDrift, Reason: "somebody meddled with the sandbox: " + what})
	}
}

// container judges what happened to a container, and says what is wrong with it.
func (m *meddling) container(s planner.Signal) string {
	action, _, _ := strings.Cut(s.Action, ":") // exec_create: /bin/sh -c …
	switch action {
	case "attach":
		if m.once("attach " + s.ID) {
			return ""
		}
	case "detach":
		// Engines tell it of an attachment that they end with its container, 26.1 and 28.5 even before they tell of
		// that end. Where the container runs on, it was somebody else's: the look finds that out.
		if m.once("detach " + s.ID) {
			m.detached.Store(s.ID, true)
			m.look()
			return ""
		}
	case "die":
		if s.ID == m.main {
			close(m.end)
		} else if !m.dead[m.main] {
			m.tell(&Decision{Code: CodeProxy, Reason: "the proxy is lost", Err: errors.New("the engine says that it has ended"), beforeEnd: true})
		}
		m.dead[s.ID] = true
		return ""
	case "create":
		return "" // what has its ID was made before the run, whatever the clock says of that
	case "start":
		if !m.once("start " + s.ID) {
			m.look()
		}
		return ""
	case "stop", "kill", "restart", "oom", "destroy":
		// What they do to the process shows at the process: it ends, or is another one.
		m.look()
		return ""
	case "top", "resize":
		return ""
	}
	return fmt.Sprintf("%s: %.200s", m.containers[s.ID], s.Action)
}

// connection judges what happened between a network and a container.
func (m *meddling) connection(s planner.Signal) string {
	addr, ours := m.containers[s.Container], s.ID == m.network && m.network != ""
	switch {
	case s.Action == "create" && s.Container == "":
		return "" // as of containers
	case s.Action == "disconnect" && (addr != "" || s.ID == m.uplink):
		m.look() // it may have ended; if it still runs, the look finds it missing
		return ""
	case s.Action == "connect" && addr != "":
		if m.once(connecting(s.ID, s.Container)) || m.network == "" && m.once(connecting("", s.Container)) {
			return ""
		}
		return fmt.Sprintf("%s was connected to network %.12s", addr, s.ID)
	case ours && s.Container != "":
		return fmt.Sprintf("container %.12s: %s to its network", s.Container, s.Action)
	case ours:
		return "its network: " + s.Action
	}
	if s.Action == "connect" && s.Container != "" {
		select {
		case m.guests <- s.Container:
		default: // so many at once: the look finds them
		}
	}
	m.look() // the uplink's other users come and go
	return ""
}

// maxGuests is how many may wait to be met.
const maxGuests = 64

// meet asks of everybody who comes to the uplink who it is, until ctx ends: only proxies of the scope have
// anything to do there. Whoever only pretends to be one is told by the look that was asked for as well.
func (r *run) meet(ctx context.Context) {
	for {
		var id string
		select {
		case <-ctx.Done():
			return
		case id = <-r.meddling.guests:
		}
		limited, cancel := context.WithTimeout(ctx, lookLimit)
		ours, err := r.Engine.IsProxy(limited, r.Scope, id)
		cancel()
		if err == nil && !ours {
			r.meddling.tell(&Decision{Code: CodeDrift, Reason: fmt.Sprintf(
				"somebody meddled with the sandbox: container %.12s, which is no proxy of %s, was connected to %s", id, r.Scope, planner.AddrUplink)})
		}
	}
}

func connecting(network, container string) string { return "connect " + network + " " + container }

// once reports whether this run does the thing itself, and has not done it yet.
func (m *meddling) once(what string) bool {
	m.own[what]--
	return m.own[what] >= 0
}

func (m *meddling) tell(d *Decision) {
	if d.Code == CodeDrift {
		m.drift.CompareAndSwap(nil, d)
	}
	select {
	case m.found <- d:
	default:
	}
}

func (m *meddling) look() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// meddled is what somebody did so far, or nil.
func (r *run) meddled() error {
	if d := r.meddling.told(); d != nil {
		return d
	}
	return nil
}

// told is what somebody did so far, what changed the sandbox before all else, or nil.
func (m *meddling) told() *Decision {
	if d := m.drift.Load(); d != nil {
		return d
	}
	select {
	case d := <-m.found:
		return d
	default:
		return nil
	}
}

// signalLimit is how long the engine may take to say that a container has ended, once it is known.
const signalLimit = linkLimit

// hearOut waits until everything that happened before the command's end was heard: what was done to it
// in its last moment counts, too.
func (r *run) hearOut() {
	timer := time.NewTimer(signalLimit)
	defer timer.Stop()
	select {
	case <-r.meddling.end:
	case <-r.meddling.done: // nobody hears any more
	case <-timer.C:
	}
	if d := r.meddling.told(); d != nil && d.Code != CodeEngine { // an engine that tells no more has not ended the command
		r.decide(d)
	}
	select {
	case <-r.meddling.end:
	default:
		r.unsettled = append(r.unsettled, fmt.Errorf("the engine did not report the end of %s: what was done to it meanwhile is not known in full", r.main))
	}
}

// detachedFrom is the decision about a container that runs although an attachment has left it. It is asked for before
// the look at the container: this run's own attachment stays as long as that runs.
func (r *run) detachedFrom(c *container) *Decision {
	if _, left := r.meddling.detached.Load(c.id); !left {
		return nil
	}
	return &Decision{Code: CodeDrift, Reason: fmt.Sprintf("somebody meddled with the sandbox: %s: detach", c.addr)}
}
