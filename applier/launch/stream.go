package launch

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// firstLine takes the first line out of a stream and passes the rest on.
type firstLine struct {
	rest io.Writer
	line chan []byte // gets the line, without its end
	buf  []byte
	done bool
}

func newFirstLine(rest io.Writer) *firstLine {
	return &firstLine{rest: rest, line: make(chan []byte, 1)}
}

// Write implements io.Writer. A line that is too long is handed over as far as it came: whoever parses
// it refuses it.
func (f *firstLine) Write(p []byte) (int, error) {
	if f.done {
		return f.rest.Write(p)
	}
	i := bytes.IndexByte(p, '\n')
	if i < 0 {
		if f.buf = append(f.buf, p...); len(f.buf) > wire.MaxLine {
			f.deliver()
		}
		return len(p), nil
	}
	f.buf = append(f.buf, p[:i]...)
	f.deliver()
	if len(p) == i+1 {
		return len(p), nil
	}
	n, err := f.rest.Write(p[i+1:])
	return i + 1 + n, err
}

func (f *firstLine) deliver() {
	f.done = true
	f.line <- f.buf
	f.buf = nil
}

// tailSize is enough for a panic's first lines or a usage message.
const tailSize = 2 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if n := len(t.buf) - tailSize; n > 0 {
		t.buf = append(t.buf[:0], t.buf[n:]...)
	}
	return len(p), nil
}

func (t *tail) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.buf)
}

// bound passes on as many bytes as are left of a budget that several streams share, and drops the rest.
// The container's first process keeps the same bound; this one holds when that does not.
type bound struct {
	mu   sync.Mutex
	left int64
	used chan struct{} // closed when the budget is exceeded
	over bool
	// writing counts the writes that are under way, wrote all that have ended.
	writing, wrote atomic.Int64
}

func newBound(n int64) *bound { return &bound{left: n + markRoom, used: make(chan struct{})} }

// markRoom is for the lines in which the container's first process says that it cut the output.
const markRoom = 512

// moving returns a function that reports whether something was written since it was called last, or
// waits for whoever reads to take it.
func (b *bound) moving() func() bool {
	var last int64
	return func() bool {
		n := b.wrote.Load()
		moved := n != last
		last = n
		return moved || b.writing.Load() > 0
	}
}

// writer is one of the streams. Errors of w are remembered and end nothing: an agent does not stop
// because nobody wants to see its output any more.
func (b *bound) writer(w ...io.Writer) io.Writer { return &boundWriter{bound: b, to: w} }

type boundWriter struct {
	bound *bound
	to    []io.Writer
}

func (w *boundWriter) Write(p []byte) (int, error) {
	b := w.bound
	b.writing.Add(1)
	defer func() { b.wrote.Add(1); b.writing.Add(-1) }()
	// Two streams into one log: written under the lock, so that no write is torn.
	b.mu.Lock()
	defer b.mu.Unlock()
	part := p
	if int64(len(p)) > b.left {
		part = p[:b.left]
		if !b.over {
			b.over = true
			close(b.used)
		}
	}
	b.left -= int64(len(part))
	for i, to := range w.to {
		if to == nil || len(part) == 0 {
			continue
		}
		if _, err := to.Write(part); err != nil {
			w.to[i] = nil
		}
	}
	return len(p), nil
}
