package egress

import (
	"encoding/json"
	"io"
	"sort"
	"sync"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// Event is the kind of a log line.
type Event string

// The events.
const (
	EventDecision Event = "decision" // a request was let through or refused, its hello included
	EventClosed   Event = "closed"   // a tunnel that was let through ended
	EventRepeated Event = "repeated" // further refusals of one kind that were counted and not logged each
	EventLimit    Event = "limit"    // a bound of the whole run is used up
	EventTrouble  Event = "trouble"  // the proxy itself lacks something, descriptors for example
	EventEnd      Event = "end"      // the last line: counts of everything
)

// The decisions.
const (
	Allow  = "allow"
	Refuse = "refuse"
)

// Entry is one log line. It never holds anything of what goes through a tunnel, its hello's name apart.
type Entry struct {
	Seq        uint64        `json:"seq"` // from 1, without a gap
	Time       string        `json:"time"`
	Event      Event         `json:"event"`
	Invocation string        `json:"invocation"`
	Tunnel     uint64        `json:"tunnel,omitempty"`
	Host       string        `json:"host,omitempty"`
	Port       int           `json:"port,omitempty"`
	Address    string        `json:"address,omitempty"`
	Decision   string        `json:"decision,omitempty"`
	Reason     reason.Reason `json:"reason,omitempty"`
	Decl       string        `json:"decl,omitempty"`
	SNI        string        `json:"sni,omitempty"`
	Up         int64         `json:"up"`
	Down       int64         `json:"down"`
	DurationMS int64         `json:"duration_ms"`
	Error      string        `json:"error,omitempty"`
	// Count is how many refusals a line of EventRepeated stands for.
	Count int64 `json:"count,omitempty"`
	// Counts are all reasons of the run with how often each was decided, on the line of EventEnd.
	Counts map[reason.Reason]int64 `json:"counts,omitempty"`
}

// repeatAfter is how soon a refusal like an earlier one is counted instead of logged.
const repeatAfter = time.Second

// maxRepeats bounds how many kinds of refusals are told apart at once.
const maxRepeats = 512

// repeatKey says which refusals are alike.
type repeatKey struct {
	host   string
	port   int
	reason reason.Reason
}

type repeat struct {
	logged time.Time
	count  int64
}

// Log writes one JSON line per entry. A slow reader slows the proxy down: what cannot be told does not
// happen.
type Log struct {
	mu         sync.Mutex
	w          io.Writer
	now        func() time.Time
	invocation string
	seq        uint64
	left       int64
	full       chan struct{} // closed when the budget is used up
	isFull     bool
	err        error
	repeats    map[repeatKey]*repeat
	counts     map[reason.Reason]int64
	up, down   int64
}

func newLog(w io.Writer, now func() time.Time, invocation string, budget int64) *Log {
	return &Log{
		w: w, now: now, invocation: invocation, left: budget,
		full:    make(chan struct{}),
		repeats: map[repeatKey]*repeat{}, counts: map[reason.Reason]int64{},
	}
}

// Full is closed when the log has used up its budget, or cannot be written.
func (l *Log) Full() <-chan struct{} { return l.full }

// Write writes an entry. Refusals like one that was written within the last second are only counted.
func (l *Log) Write(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Event == EventDecision || e.Event == EventLimit {
		l.counts[e.Reason]++
	}
	if e.Event == EventClosed {
		l.up += e.Up
		l.down += e.Down
	}
	if e.Event == EventDecision && e.Decision == Refuse && l.repeated(e) {
		return
	}
	l.write(e)
}

func (l *Log) repeated(e Entry) bool {
	k := repeatKey{host: e.Host, port: e.Port, reason: e.Reason}
	r, ok := l.repeats[k]
	if !ok && len(l.repeats) >= maxRepeats {
		k = repeatKey{reason: e.Reason} // names that differ each time must not make the table grow
		r, ok = l.repeats[k]
	}
	if ok && l.now().Sub(r.logged) < repeatAfter {
		r.count++
		return true
	}
	if !ok {
		r = &repeat{}
		l.repeats[k] = r
	}
	r.logged = l.now()
	return false
}

// Flush writes what was counted and forgets refusals that have stopped. It is called every second.
func (l *Log) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush(repeatAfter)
}

func (l *Log) flush(age time.Duration) {
	var due []repeatKey
	for k, r := range l.repeats {
		if l.now().Sub(r.logged) >= age {
			due = append(due, k)
		}
	}
	sort.Slice(due, func(i, j int) bool {
		a, b := due[i], due[j]
		if a.host != b.host {
			return a.host < b.host
		}
		if a.port != b.port {
			return a.port < b.port
		}
		return a.reason < b.reason
	})
	for _, k := range due {
		r := l.repeats[k]
		if r.count == 0 {
			delete(l.repeats, k)
			continue
		}
		l.write(Entry{Event: EventRepeated, Host: k.host, Port: k.port, Decision: Refuse, Reason: k.reason, Count: r.count})
		r.count, r.logged = 0, l.now()
	}
}

// End writes what is still counted, and the last line.
func (l *Log) End(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush(0)
	l.write(Entry{Event: EventEnd, Up: l.up, Down: l.down, Counts: l.counts, Error: why})
}

// write is called with the lock held. The line that says that the budget is used up, and the last one,
// are written beyond it.
func (l *Log) write(e Entry) {
	if l.left < 0 && e.Event != EventEnd || l.err != nil {
		return
	}
	l.line(e)
	if l.left < 0 && e.Event != EventEnd {
		l.line(Entry{Event: EventLimit, Reason: reason.LogLimit})
		l.fill()
	}
}

func (l *Log) fill() {
	if !l.isFull {
		l.isFull = true
		close(l.full)
	}
}

func (l *Log) line(e Entry) {
	l.seq++
	e.Seq, e.Time, e.Invocation = l.seq, l.now().UTC().Format(time.RFC3339Nano), l.invocation
	b, err := json.Marshal(e)
	if err == nil {
		b = append(b, '\n')
		l.left -= int64(len(b))
		_, err = l.w.Write(b)
	}
	if err != nil {
		l.err = err
		l.fill()
	}
}
