package launch

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"
)

// Egress is what went through the proxy, and what did not.
type Egress struct {
	// Allowed and Refused count by HOST:PORT.
	Allowed map[string]int `json:"allowed,omitempty"`
	Refused map[string]int `json:"refused,omitempty"`
	// Lines is how many lines the proxy wrote; Lost says that the log is not whole.
	Lines int  `json:"lines"`
	Lost  bool `json:"lost,omitempty"`
}

// egressLog keeps the lines of the proxy and counts what they say.
type egressLog struct {
	mu   sync.Mutex
	to   io.Writer
	part []byte
	sum  Egress
	seq  int64
}

func newEgressLog(to io.Writer) *egressLog {
	return &egressLog{to: to, sum: Egress{Allowed: map[string]int{}, Refused: map[string]int{}}}
}

// egressLine is what a run reads of a line of the proxy.
type egressLine struct {
	Event string `json:"event"`
	Seq   int64  `json:"seq"`
	Host  string `json:"host"`
	Allow bool   `json:"allow"`
}

// maxEgressLine is far above any line that the proxy writes: it comes from a process that talks to a
// hostile client.
const maxEgressLine = 64 << 10

// Write implements io.Writer. Its own failures are not the proxy's business.
func (l *egressLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to != nil {
		if _, err := l.to.Write(p); err != nil {
			l.to, l.sum.Lost = nil, true
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
		l.part, l.sum.Lost = nil, true
	}
	return len(p), nil
}

func (l *egressLog) line(b []byte) {
	l.sum.Lines++
	var e egressLine
	if json.Unmarshal(b, &e) != nil {
		l.sum.Lost = true
		return
	}
	if e.Event != "decision" {
		return
	}
	if e.Allow {
		l.sum.Allowed[e.Host]++
	} else {
		l.sum.Refused[e.Host]++
	}
}

func (l *egressLog) summary() Egress {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum
}
