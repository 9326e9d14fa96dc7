package egress

import (
	"context"
	"sync/atomic"
	"syscall"
	"time"
)

// stalledFor is how long nothing has to have moved towards one end before somebody looks whether the other end of the
// tunnel was reset meanwhile; it may take twice that. What is on its way by then is lost, as with every reset. Who reads
// so slowly that the kernel tells nothing of it for as long (some 20 kB a second) is taken for who reads nothing.
const stalledFor = 2 * time.Second

// stall counts the waits of a write, and is odd during each.
type stall struct{ atomic.Uint32 }

// waits is called before each wait, so that one that has moved something in between is another.
func (s *stall) waits() { s.Store((s.Load() | 1) + 2) }

// over is called when a write has ended, for whatever reason.
func (s *stall) over() {
	if n := s.Load(); n&1 != 0 {
		s.Store(n + 1)
	}
}

// pair adds the second end of a tunnel, which was dialled.
func (o *open) pair(first, second *socket) {
	o.add(second)
	o.mu.Lock()
	defer o.mu.Unlock()
	first.other, second.other = second, first
	second.dialled = true
	first.giveUp = nil
}

// waits says how to end what a tunnel waits for that has one end only, in place of what was said before. It may come to
// that more than once, and late.
func (o *open) waits(c *socket, giveUp func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.giveUp = giveUp
}

// free ends tunnels of which one end was reset and nobody would see it: the proxy waits to write to the other, which
// takes nothing, and reads no more; or it waits for a name or a host.
func (o *open) free(ctx context.Context) {
	tick := time.NewTicker(stalledFor)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			o.freeNow()
		}
	}
}

// pace is how far the writing to a connection has come. A write is not told of each byte that leaves: the kernel wakes
// it when a third of its buffer is free.
type pace struct {
	wait   uint32 // which, 0 for none
	unsent int    // bytes
}

func (s *socket) pace() (p pace) {
	if n := s.out.stall.Load(); n&1 != 0 {
		p = pace{n, s.queued()}
	}
	return p
}

func (o *open) freeNow() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.conns {
		if c.giveUp != nil {
			if c.torn == nil {
				c.torn = c.reset()
			}
			if c.torn != nil {
				c.giveUp() // also when it has come to the next wait meanwhile
			}
			continue
		}
		before := c.pacing
		c.pacing = c.pace()
		if c.other == nil || c.pacing.wait == 0 || c.other.whole() || c.pacing != before || c.other.torn != nil {
			continue
		}
		if c.other.torn = c.other.reset(); c.other.torn != nil {
			abort(c.other.Conn, c.Conn)
		}
	}
}

// whole says that a server has said all. A minute later its machine knows nothing of the connection any more, and
// answers the proxy's own question whether it is there by a reset: not a reason to take from the agent what it is to
// read, however long it reads nothing. It is asked at each look, since a reset hides what was said before.
func (s *socket) whole() bool {
	if s.dialled && !s.said && s.raw != nil {
		_ = s.raw.Control(func(fd uintptr) { s.said = saidAll(fd) }) // it fails on what is closed already
	}
	return s.said
}

// torn is what freed a tunnel, if anything did.
func (o *open) torn(ends ...*socket) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range ends {
		if c.torn != nil {
			return c.torn
		}
	}
	return nil
}

// reset returns an error when the other side has reset the connection and nobody was told.
func (s *socket) reset() (err error) {
	if s.raw == nil {
		return nil
	}
	_ = s.raw.Control(func(fd uintptr) { // it fails on what is closed already
		if stands, untold := connected(fd); !stands && untold != 0 {
			err = s.failed("read", asReset(untold))
		}
	})
	return err
}

// asReset undoes that the kernel calls a reset behind an end by another name.
func asReset(e syscall.Errno) error {
	if e == syscall.EPIPE {
		return syscall.ECONNRESET
	}
	return e
}
