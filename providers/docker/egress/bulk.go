package egress

import (
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// The kernel can move bytes from one connection to another without a copy (splice), several times as
// fast for a quarter of the work. It needs a pipe for it, two descriptors each way: worth it for a
// tunnel that carries much, and ruinous for thousands that are silent. So a direction begins with
// copying, moves on to splicing when it turns out to be bulk, and goes back when it slows down.
const (
	// pipeSize is Linux's limit for a pipe of somebody without privileges (/proc/sys/fs/pipe-max-size).
	pipeSize = 1 << 20

	bulkBytes  = 1 << 20         // moved within bulkWithin: bulk
	bulkWithin = time.Second     // also how long a slow chunk may hold the pipe
	bulkChunk  = int64(16 << 20) // between two looks at the clock
)

// burst counts what one direction moves at a time.
type burst struct {
	now   func() time.Time
	since time.Time
	bytes int
}

func newBurst(now func() time.Time) *burst { return &burst{now: now, since: now()} }

// grows counts n more bytes and says whether this is bulk.
func (b *burst) grows(n int) bool {
	if b.bytes += n; b.bytes < bulkBytes {
		return false
	}
	now := b.now()
	bulk := now.Sub(b.since) <= bulkWithin
	b.bytes, b.since = 0, now
	return bulk
}

// bulk splices until the direction slows down or seems to end (nil), or fails. Whether it ends a read has to say: a
// splice stops before a byte that was sent as urgent, and says that nothing follows when the sender has said all.
func (f *flow) bulk() error {
	if f.src.raw == nil || f.dst.raw == nil {
		return nil
	}
	s, err := newSplicer(f.dst, f.src)
	if err != nil {
		return nil // copying goes on without one
	}
	f.server.cores.begin()
	defer f.server.cores.end()
	defer s.close()
	for {
		n, err := f.splice(s)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && n >= bulkBytes:
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, io.EOF), errors.Is(err, errNearBound):
			return f.hurry(time.Time{})
		case err != nil:
			return err
		}
	}
}

// hurry bounds the waits for src.
func (f *flow) hurry(at time.Time) error {
	if f.src.SetReadDeadline(at) != nil {
		return net.ErrClosed // by the other direction, whose cause is the one to tell
	}
	return nil
}

// errNearBound ends a splice near the end of a budget, which copying finds exactly.
var errNearBound = errors.New("near the end of a budget")

// splice moves up to bulkChunk bytes, with a moment for them. What it reserves of the budget is what the pipe holds:
// with more, whoever reads slowly has what others lack.
func (f *flow) splice(s *splicer) (moved int64, err error) {
	if err := f.hurry(f.server.world.now().Add(bulkWithin)); err != nil {
		return 0, err
	}
	for moved < bulkChunk {
		want := f.budget.reserve(pipeSize)
		if want < bulkBytes {
			f.budget.giveBack(want)
			return moved, errNearBound
		}
		n, err := s.move(want)
		f.budget.giveBack(want - n)
		f.moved += n
		f.budget.passed.Add(n)
		moved += n
		if err != nil {
			return moved, err
		}
		if n == 0 {
			return moved, io.EOF
		}
	}
	return moved, nil
}
