package verify

import (
	"bytes"
	"fmt"
	"sync"
)

// tail keeps the end of what a probe wrote to standard error.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 1 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if n := len(t.buf) - tailSize; n > 0 {
		t.buf = append(t.buf[:0], t.buf[n:]...)
	}
	return len(p), nil
}

// text is the end of a sentence, or nothing.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := bytes.TrimSpace(t.buf); len(last) > 0 {
		return fmt.Sprintf("; its last words: %q", last)
	}
	return ""
}
