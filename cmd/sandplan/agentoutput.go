package main

import (
	"bytes"
	"io"
	"sync"

	"github.com/sandplan/sandplan/planner"
)

// agentWriter is where an agent's output goes: to the stream of the same name, as it is, with its address
// where others print there, too, or with -json as lines among the others.
func (u *ui) agentWriter(addr planner.Address, name string) io.Writer {
	switch {
	case u.stream != nil || u.together:
		return &agentOutput{ui: u, addr: addr, name: name}
	case name == "stderr":
		return u.plain(u.app.stderr)
	}
	return u.plain(u.app.stdout)
}

// plain is a stream as the agent writes it. Only a terminal has something to make room for; a pipe that
// nobody reads must keep nobody else from writing.
func (u *ui) plain(s stream) io.Writer {
	if s.columns > 0 {
		return passage{u, s}
	}
	return s
}

type passage struct {
	ui *ui
	to stream
}

func (p passage) Write(b []byte) (int, error) { return p.ui.pass(p.to, b) }

// longestPiece is how much of a line without an end one JSON object carries.
const longestPiece = 64 << 10

// agentOutput makes pieces of an agent's output into lines: one per line of the agent.
type agentOutput struct {
	ui   *ui
	addr planner.Address
	name string
	mu   sync.Mutex
	rest []byte
}

func (w *agentOutput) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, p...)
	for len(w.rest) > 0 {
		n := bytes.IndexByte(w.rest, '\n') + 1
		if n == 0 && len(w.rest) < longestPiece {
			break
		}
		if n == 0 || n > longestPiece {
			n = longestPiece
		}
		w.tell(w.rest[:n])
		w.rest = append(w.rest[:0], w.rest[n:]...)
	}
	return len(p), nil
}

// flush tells what came after the last line break.
func (w *agentOutput) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		w.tell(w.rest)
		w.rest = nil
	}
}

func (w *agentOutput) tell(b []byte) {
	switch {
	case w.ui.stream != nil:
		w.ui.print(w.ui.stream.AgentOutput(w.addr, w.name, b))
	case w.name == "stderr":
		w.ui.printErr(prefixed(w.addr, b))
	default:
		w.ui.print(prefixed(w.addr, b))
	}
}
