package egress

import (
	"io"
	"sort"
	"sync"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

const (
	// soonAfter is how long a line may wait to be written that nothing waits for.
	soonAfter = 50 * time.Millisecond
	// maxPending bounds what waits to be written.
	maxPending = 64 << 10
)

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

// Log writes one JSON line per entry. A refusal is written before it is answered, and a tunnel that is let
// through before the agent's first byte behind its hello leaves: what cannot be told does not happen, and a
// slow reader slows the proxy down. Many lines at once share a write, and those that nothing waits for
// wait for the next one, soonAfter at most.
type Log struct {
	mu         sync.Mutex
	w          io.Writer
	pending    []byte     // lines that are not written
	spare      []byte     // the buffer of the write before
	writing    bool       // somebody writes
	written    uint64     // the last line that is
	wrote      *sync.Cond // told after each write
	armed      bool       // a timer will write what waits
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
	l := &Log{
		w: w, now: now, invocation: invocation, left: budget,
		full:    make(chan struct{}),
		repeats: map[repeatKey]*repeat{}, counts: map[reason.Reason]int64{},
	}
	l.wrote = sync.NewCond(&l.mu)
	return l
}

// Full is closed when the log has used up its budget, or cannot be written.
func (l *Log) Full() <-chan struct{} { return l.full }

// Write writes an entry. Refusals like one that was written within the last second are only counted.
func (l *Log) Write(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(e)
	l.commit(l.seq)
}

// Queue has an entry written soon. What it returns is for Await.
func (l *Log) Queue(e Entry) (line uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(e)
	if len(l.pending) < maxPending {
		l.later()
	} else {
		l.commit(l.seq)
	}
	return l.seq
}

// Await returns when a line is written, or none can be any more.
func (l *Log) Await(line uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commit(line)
}

func (l *Log) enter(e Entry) {
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
	l.commit(l.seq)
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
	l.commit(l.seq)
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
	before := len(l.pending)
	l.pending = append(appendEntry(l.pending, e), '\n')
	l.left -= int64(len(l.pending) - before)
}

func (l *Log) fail(err error) {
	l.err = err
	l.pending = nil
	l.fill()
	l.wrote.Broadcast()
}

// later has what waits written soon, if nobody writes before.
func (l *Log) later() {
	if l.armed || l.err != nil {
		return
	}
	l.armed = true
	time.AfterFunc(soonAfter, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.armed = false
		l.commit(l.seq)
	})
}

// commit returns when every line up to the last is written, or none can be any more. It is called with the
// lock held, and gives it away meanwhile.
func (l *Log) commit(last uint64) {
	for l.written < last && l.err == nil {
		if l.writing {
			l.wrote.Wait()
			continue
		}
		lines, upTo := l.pending, l.seq
		l.pending, l.writing = l.spare[:0], true
		l.mu.Unlock()
		_, err := l.w.Write(lines)
		l.mu.Lock()
		l.spare, l.writing, l.written = lines, false, upTo
		if err != nil {
			l.fail(err)
		}
		l.wrote.Broadcast()
	}
}
