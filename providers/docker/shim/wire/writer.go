package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Writer is sandplan's end of the stream. It may be used by several goroutines at once: each frame
// is one Write, numbered in the order of writing. After an error it stays in error, because a frame
// may have been cut short.
type Writer struct {
	turn    chan struct{} // holds one value while nobody writes
	w       io.Writer
	next    uint64
	bundled bool
	err     error
}

// NewWriter writes frames to w.
func NewWriter(w io.Writer) *Writer {
	out := &Writer{w: w, turn: make(chan struct{}, 1)}
	out.turn <- struct{}{}
	return out
}

// Challenge opens the stream; it must be the first frame.
func (w *Writer) Challenge(c Challenge) error { return w.message(TypeChallenge, c) }

// Bundle hands over what the agent needs, once.
func (w *Writer) Bundle(b Bundle) error { return w.message(TypeBundle, b) }

// Beat says that sandplan is alive.
func (w *Writer) Beat() error { return w.frame(TypeBeat, nil) }

// Stop asks the container to end gracefully.
func (w *Writer) Stop() error { return w.frame(TypeStop, nil) }

// Beats beats every interval until ctx ends, which is no error, or a beat cannot be written. A Write
// that blocks holds it up: close the underlying stream to end it.
func (w *Writer) Beats(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := w.Beat(); err != nil {
				return err
			}
		}
	}
}

func (w *Writer) message(t Type, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	defer clear(body)
	return w.frame(t, body)
}

func (w *Writer) frame(t Type, body []byte) error {
	if bound, _ := t.bound(); len(body) > bound {
		return fmt.Errorf("a %s of %d bytes is too large, at most %d are allowed", t, len(body), bound)
	}
	<-w.turn
	defer func() { w.turn <- struct{}{} }()
	switch {
	case w.err != nil:
		return w.err
	case (w.next == 0) != (t == TypeChallenge):
		return fmt.Errorf("a %s as frame %d: the challenge comes first and once", t, w.next)
	case t == TypeBundle && w.bundled:
		return fmt.Errorf("a second bundle")
	}
	b := Frame{Type: t, Seq: w.next, Body: body}.append(make([]byte, 0, headerSize+len(body)))
	defer clear(b)
	if _, err := w.w.Write(b); err != nil {
		w.err = fmt.Errorf("%s: %w", t, err)
		return w.err
	}
	w.next++
	w.bundled = w.bundled || t == TypeBundle
	return nil
}
