// Package wire is what sandplan and the first process of a container say to each other.
//
// Towards the container, over its standard input, go frames: a challenge, then a beat every second,
// one bundle (the prompt, the credentials, "go") once the container has proven itself, and a stop.
// Back come lines of JSON: a report (agents, runners) or a ready line (proxies) as the first line of
// standard output, and an exit record as the very last bytes of standard error.
//
// The open stream is also a lease: whoever holds it ends what it runs when the stream ends or falls
// silent, so that nothing outlives sandplan, the engine, or the link between them.
//
// The package does no network and no file access and knows nothing of Docker. Start with Reader
// (which frames may come, and when), then Lease (what silence means), then report.go and exit.go.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

const (
	// BeatEvery is how often a Writer beats.
	BeatEvery = time.Second
	// Silence is how long a Lease lasts without a frame, unless its holder was declared another bound.
	Silence = 5 * time.Second
)

// Type is the type of a frame.
type Type byte

// The types. Their numbers are part of the protocol.
const (
	TypeChallenge Type = 1
	TypeBeat      Type = 2
	TypeBundle    Type = 3
	TypeStop      Type = 4
)

func (t Type) String() string {
	switch t {
	case TypeChallenge:
		return "challenge"
	case TypeBeat:
		return "beat"
	case TypeBundle:
		return "bundle"
	case TypeStop:
		return "stop"
	}
	return fmt.Sprintf("type %d", byte(t))
}

// Bounds of the bodies. A prompt is text that a model reads, so that 32 MiB is far above any of use,
// and far below the smallest memory limit of an agent.
const (
	MaxChallenge = 64 << 10
	MaxBundle    = 32 << 20
)

func (t Type) bound() (int, bool) {
	switch t {
	case TypeChallenge:
		return MaxChallenge, true
	case TypeBeat, TypeStop:
		return 0, true
	case TypeBundle:
		return MaxBundle, true
	}
	return 0, false
}

// ErrProtocol says that the other side broke the protocol. Nothing that follows can be trusted.
var ErrProtocol = errors.New("protocol broken")

// Frame is one message to a container.
type Frame struct {
	Type Type
	Seq  uint64
	Body []byte
}

// A header is the length of the body (4 bytes), the type (1) and the sequence number (8), big endian.
const headerSize = 4 + 1 + 8

func (f Frame) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.Body)))
	b = append(b, byte(f.Type))
	b = binary.BigEndian.AppendUint64(b, f.Seq)
	return append(b, f.Body...)
}

// Reader reads frames and enforces their order: the challenge first and once, the bundle at most once
// and only after AllowBundle, numbers without a gap from 0. After an error it stays in error.
type Reader struct {
	r       io.Reader
	next    uint64
	bundled bool
	allowed atomic.Bool
	err     error
}

// NewReader reads frames from r.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// AllowBundle permits the one bundle. A container calls it immediately before it prints its report;
// one that never expects a bundle (a proxy) never calls it. It may be called while Next blocks.
func (r *Reader) AllowBundle() { r.allowed.Store(true) }

// Next returns the next frame. The error is io.EOF at an end between two frames, and an ErrProtocol
// for all that should not have come.
func (r *Reader) Next() (Frame, error) {
	if r.err != nil {
		return Frame{}, r.err
	}
	f, err := r.read()
	if err != nil {
		r.err = err
		return Frame{}, err
	}
	r.next++
	return f, nil
}

func (r *Reader) read() (Frame, error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return Frame{}, fmt.Errorf("%w: the stream ends within a frame", ErrProtocol)
		}
		return Frame{}, err
	}
	f := Frame{Type: Type(head[4]), Seq: binary.BigEndian.Uint64(head[5:])}
	if err := r.expect(f); err != nil {
		return Frame{}, err
	}
	size := binary.BigEndian.Uint32(head[:4])
	bound, known := f.Type.bound()
	if !known || uint64(size) > uint64(bound) {
		return Frame{}, fmt.Errorf("%w: a %s of %d bytes, at most %d are allowed", ErrProtocol, f.Type, size, bound)
	}
	f.Body = make([]byte, size)
	if _, err := io.ReadFull(r.r, f.Body); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return Frame{}, fmt.Errorf("%w: the stream ends within a %s", ErrProtocol, f.Type)
		}
		return Frame{}, err
	}
	if f.Type == TypeBundle {
		r.bundled = true
	}
	return f, nil
}

// expect judges a header before its body is read.
func (r *Reader) expect(f Frame) error {
	first := r.next == 0
	switch {
	case f.Seq != r.next:
		return fmt.Errorf("%w: frame %d came where %d was due", ErrProtocol, f.Seq, r.next)
	case first != (f.Type == TypeChallenge):
		return fmt.Errorf("%w: a %s as frame %d; the challenge comes first and once", ErrProtocol, f.Type, f.Seq)
	case f.Type == TypeBundle && r.bundled:
		return fmt.Errorf("%w: a second bundle", ErrProtocol)
	case f.Type == TypeBundle && !r.allowed.Load():
		return fmt.Errorf("%w: a bundle before the report", ErrProtocol)
	}
	return nil
}
