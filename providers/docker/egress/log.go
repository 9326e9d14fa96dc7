package egress

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

const (
	// soonAfter is how long a line may wait to be written that nothing waits for.
	soonAfter = 50 * time.Millisecond
	// maxPending bounds what waits to be written.
	maxPending = 64 << 10
	// maxAhead is how many hellos may be on their way while the lines about them are not written. While the log is
	// read there is one, or a few; more are there only when it is stuck.
	maxAhead = 8
)

// repeatAfter is how soon a refusal like an earlier one is counted instead of logged.
const repeatAfter = time.Second

// maxRepeats bounds how many kinds of refusals are told apart at once: names that differ each time must not make the
// table grow. What finds no place in it is counted as not listed.
const maxRepeats = 512

// repeatKey says which refusals are alike: those that leave the same evidence.
type repeatKey struct {
	host, sni, address string
	port               int
	reason             reason.Reason
}

func (k repeatKey) compare(o repeatKey) int {
	return cmp.Or(cmp.Compare(k.host, o.host), cmp.Compare(k.port, o.port), cmp.Compare(k.reason, o.reason),
		cmp.Compare(k.sni, o.sni), cmp.Compare(k.address, o.address))
}

type repeat struct {
	logged time.Time
	count  int64
}

// Log writes one JSON line per entry. A refusal is written before it is answered, and a tunnel that is let
// through before the server's answer to its hello and the agent's first byte behind it pass: what cannot be told
// does not happen, and a slow reader slows the proxy down. Many lines at once share a write, and those that nothing
// waits for wait for the next one, soonAfter at most.
type Log struct {
	mu         sync.Mutex
	w          io.Writer
	pending    []byte        // lines that are not written
	spare      []byte        // the buffer of the write before
	writing    bool          // somebody writes
	written    atomic.Uint64 // the last line that is
	ahead      int           // lines of Pass that are not written
	wrote      *sync.Cond    // told after each write
	armed      bool          // a timer will write what waits
	now        func() time.Time
	invocation string
	seq        uint64
	left       int64
	full       chan struct{} // closed when the budget is used up
	isFull     bool
	err        error
	repeats    map[repeatKey]*repeat
	unlisted   map[reason.Reason]int64 // refusals that found no place in repeats, since the last flush
	counts     map[reason.Reason]int64 // decisions
	up, down   int64                   // of closed tunnels
	passed     func() (up, down int64) // of all tunnels, nil when nobody counts
}

func newLog(w io.Writer, now func() time.Time, invocation string, budget int64) *Log {
	l := &Log{
		w: w, now: now, invocation: invocation, left: budget,
		full:    make(chan struct{}),
		repeats: map[repeatKey]*repeat{}, unlisted: map[reason.Reason]int64{}, counts: map[reason.Reason]int64{},
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

// over says that nothing more can be told.
func (l *Log) over() bool {
	select {
	case <-l.full:
		return true
	default:
		return false
	}
}

// Pass enters that a tunnel is let through, and says whether its hello may leave: at once, unless maxAhead others did
// whose lines are not written. Everything else waits for the line with Await.
func (l *Log) Pass(e Entry) (line uint64, told bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left < 0 || l.err != nil {
		l.counts[reason.LogLimit]++
		return 0, false
	}
	l.enter(e)
	line = l.seq
	if l.ahead++; l.ahead > maxAhead {
		return line, l.commit(line)
	}
	l.later()
	return line, true
}

// Queue has an entry written soon.
func (l *Log) Queue(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(e)
	if len(l.pending) < maxPending {
		l.later()
	} else {
		l.commit(l.seq)
	}
}

// Await returns true when a line is written, and false when none can be any more.
func (l *Log) Await(line uint64) bool {
	if l.written.Load() >= line {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.commit(line)
}

func (l *Log) enter(e Entry) {
	if e.Event == EventDecision {
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

// repeated says that a refusal was counted, and needs no line.
func (l *Log) repeated(e Entry) bool {
	k := repeatKey{host: e.Host, sni: e.SNI, address: e.Address, port: e.Port, reason: e.Reason}
	r, ok := l.repeats[k]
	switch {
	case ok && l.now().Sub(r.logged) < repeatAfter:
		r.count++
		return true
	case !ok && len(l.repeats) >= maxRepeats:
		l.unlisted[e.Reason]++
		return true
	case !ok:
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
	slices.SortFunc(due, repeatKey.compare)
	for _, k := range due {
		r := l.repeats[k]
		if r.count == 0 {
			delete(l.repeats, k)
			continue
		}
		l.write(Entry{Event: EventRepeated, Host: k.host, Port: k.port, SNI: k.sni, Address: k.address,
			Decision: Refuse, Reason: k.reason, Count: r.count})
		r.count, r.logged = 0, l.now()
	}
	for _, why := range slices.Sorted(maps.Keys(l.unlisted)) {
		l.write(Entry{Event: EventUnlisted, Decision: Refuse, Reason: why, Count: l.unlisted[why]})
	}
	clear(l.unlisted)
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
		full := Entry{Event: EventLimit, Reason: reason.LogLimit}
		if l.passed != nil {
			full.Up, full.Down = l.passed()
		}
		l.line(full)
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

// commit returns true when every line up to the last is written, and false when none can be any more. It is called
// with the lock held, and gives it away meanwhile.
func (l *Log) commit(last uint64) bool {
	for l.written.Load() < last && l.err == nil {
		if l.writing {
			l.wrote.Wait()
			continue
		}
		lines, upTo, ahead := l.pending, l.seq, l.ahead
		l.pending, l.writing = l.spare[:0], true
		l.mu.Unlock()
		_, err := l.w.Write(lines)
		l.mu.Lock()
		l.spare, l.writing = lines, false
		l.ahead -= ahead
		if err != nil {
			l.fail(err)
			break
		}
		l.written.Store(upTo)
		l.wrote.Broadcast()
	}
	return l.written.Load() >= last
}
