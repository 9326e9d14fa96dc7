package dockertest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// journal is what an engine tells of what happens.
type journal struct {
	all       []event // the last 256, as engines keep them
	listeners []chan event
	last      time.Time
	closed    bool
}

type event struct {
	at  time.Time
	raw []byte
}

// tell writes an event down and is called with mu held.
func (f *Fake) tell(kind, action, id string, attributes tree) {
	if attributes == nil {
		attributes = tree{}
	}
	at := time.Now()
	if !at.After(f.events.last) { // no two at the same moment
		at = f.events.last.Add(time.Nanosecond)
	}
	f.events.last = at
	raw, err := json.Marshal(tree{"Type": kind, "Action": action, "Actor": tree{"ID": id, "Attributes": attributes}, "scope": "local",
		"time": at.Unix(), "timeNano": at.UnixNano(), "status": action, "id": id})
	if err != nil {
		panic(err)
	}
	const kept = 256
	e := event{at, append(raw, '\n')}
	f.events.all = append(f.events.all, e)
	f.events.all = f.events.all[max(0, len(f.events.all)-kept):]
	for _, l := range f.events.listeners {
		select {
		case l <- e:
		default: // engines drop what is not read in time
		}
	}
}

func (j *journal) close() {
	j.closed = true
	for _, l := range j.listeners {
		close(l)
	}
	j.listeners = nil
}

// DropEvents ends the stream of everybody who listens, as an engine does that is restarted.
func (f *Fake) DropEvents() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.events.listeners {
		close(l)
	}
	f.events.listeners = nil
}

func (f *Fake) streamEvents(w http.ResponseWriter, r *http.Request) {
	since, until := moment(r.URL.Query().Get("since")), moment(r.URL.Query().Get("until"))
	f.mu.Lock()
	var past []event
	for _, e := range f.events.all {
		if !since.IsZero() && !e.at.Before(since) && (until.IsZero() || !e.at.After(until)) {
			past = append(past, e)
		}
	}
	l := make(chan event, 1000)
	if f.events.closed || !until.IsZero() {
		close(l)
	} else {
		f.events.listeners = append(f.events.listeners, l)
	}
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush()
	answered(r)
	hit := faultOf(r)
	write := func(e event) {
		raw := e.raw
		if hit.Twice {
			raw = append(append([]byte(nil), raw...), raw...)
		}
		if hit.Half {
			_, _ = w.Write(raw[:len(raw)/2])
			_ = flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(raw)
		_ = flush()
	}
	for _, e := range past {
		write(e)
	}
	for {
		select {
		case e, open := <-l:
			if !open {
				return
			}
			write(e)
		case <-r.Context().Done():
			return
		}
	}
}

// moment reads seconds with a fraction.
func moment(s string) time.Time {
	whole, fraction, _ := strings.Cut(s, ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}
	}
	nano, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	return time.Unix(sec, nano)
}
