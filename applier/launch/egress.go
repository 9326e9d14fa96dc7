package launch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
)

// Egress is what went through the proxy, and what did not.
type Egress struct {
	// Allowed and Refused count by HOST:PORT. What asked for something else stands under what it asked for,
	// quoted, what asked for nothing under NoTarget, and what the proxy counted without its target under Unlisted. A
	// tunnel that was let through and refused for what was said in it later is in both.
	Allowed map[string]int64 `json:"allowed,omitempty"`
	Refused map[string]int64 `json:"refused,omitempty"`
	// Up and Down are the bytes of closed tunnels.
	Up   int64 `json:"up"`
	Down int64 `json:"down"`
	// Lines is how many lines the proxy wrote. Incomplete says that some are missing: why, or "".
	Lines      int64  `json:"lines"`
	Incomplete string `json:"incomplete,omitempty"`
}

// egressLog keeps the lines of the proxy and counts what they say.
type egressLog struct {
	mu    sync.Mutex
	to    io.Writer
	part  []byte
	sum   Egress
	ended bool
	// limit gets the reason when a bound of the whole run is used up.
	limit chan string
}

func newEgressLog(to io.Writer) *egressLog {
	return &egressLog{to: to, limit: make(chan string, 1),
		sum: Egress{Allowed: map[string]int64{}, Refused: map[string]int64{}}}
}

// egressLine is what a run reads of a line of the proxy.
type egressLine struct {
	Seq      int64  `json:"seq"`
	Event    string `json:"event"`
	Host     string `json:"host"`
	Port     int    `json:"port"`
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
	Up       int64  `json:"up"`
	Down     int64  `json:"down"`
	Count    int64  `json:"count"`
}

const (
	// NoTarget counts refusals of what named no target: it was no request of a proxy at all.
	NoTarget = "(no target)"
	// Unlisted counts refusals of more targets at once than the proxy tells apart.
	Unlisted = "(not listed)"
)

func (e egressLine) target() string {
	switch {
	case e.Host == "":
		return NoTarget
	case e.Port == 0:
		return strconv.Quote(e.Host)
	}
	return net.JoinHostPort(e.Host, strconv.Itoa(e.Port))
}

// stopping is the proxy's reason for what the run's end cut short.
const stopping = "stopping"

// maxEgressLine is far above any line that the proxy writes: it comes from a process that talks to a
// hostile client.
const maxEgressLine = 64 << 10

// Write implements io.Writer. Its own failures are not the proxy's business.
func (l *egressLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to != nil {
		if _, err := l.to.Write(p); err != nil {
			l.to = nil
			l.incomplete("it could not be written: " + err.Error())
		}
	}
	l.part = append(l.part, p...)
	for {
		i := bytes.IndexByte(l.part, '\n')
		if i < 0 {
			break
		}
		l.line(l.part[:i])
		l.part = l.part[i+1:]
	}
	if len(l.part) > maxEgressLine {
		l.part = nil
		l.incomplete("a line was too long")
	}
	return len(p), nil
}

// incomplete keeps the first reason.
func (l *egressLog) incomplete(why string) {
	if l.sum.Incomplete == "" {
		l.sum.Incomplete = why
	}
}

func (l *egressLog) line(b []byte) {
	var e egressLine
	if json.Unmarshal(b, &e) != nil {
		l.incomplete("a line is no JSON")
		return
	}
	if l.sum.Lines++; e.Seq != l.sum.Lines {
		l.incomplete(fmt.Sprintf("line %d came where %d was due", e.Seq, l.sum.Lines))
		l.sum.Lines = e.Seq
	}
	where := e.target()
	switch {
	case e.Event == "decision" && e.Decision == "allow":
		l.sum.Allowed[where]++
	case e.Event == "decision" && e.Reason == stopping:
		// The run's end cut it short: nobody was refused.
	case e.Event == "decision":
		l.sum.Refused[where]++
	case e.Event == "repeated":
		l.sum.Refused[where] += e.Count
	case e.Event == "unlisted":
		l.sum.Refused[Unlisted] += e.Count
	case e.Event == "closed":
		l.sum.Up += e.Up
		l.sum.Down += e.Down
	case e.Event == "limit":
		select {
		case l.limit <- e.Reason:
		default:
		}
	case e.Event == "end":
		l.ended = true
	}
}

// summary is the sum of all lines, once no more can come.
func (l *egressLog) summary() Egress {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.incomplete("the proxy did not write its last line")
	}
	return l.sum
}
