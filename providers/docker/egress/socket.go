package egress

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// socket is one end of a tunnel, whose reads and writes go straight to the kernel.
//
// What the net package calls is announced to Go's scheduler first, since it might block. Such a call wakes
// the scheduler's watcher, a thread that then looks around every 20 µs until all is silent: a third of the
// thread switches of a small round trip, and a seventh of the work for a new tunnel. Calls that cannot block
// need no watching.
//
// One goroutine at a time may read, and one write.
type socket struct {
	net.Conn
	raw syscall.RawConn // nil when the connection has no descriptor, as in tests
	in  attempt
	out attempt

	// Of open, under its lock:
	other   *socket // the other end of the tunnel, once there is one
	dialled bool    // it is the server's
	said    bool    // all was, as a look has seen
	pacing  pace    // at the last look
	torn    error   // that it was reset, when that freed the tunnel
	giveUp  func()  // ends what is waited for while there is no other end yet
}

// attempt is a read or a write that waits until the connection is ready for it.
type attempt struct {
	try  func(fd uintptr) (done bool) // read or write, made a function once: it would be an allocation each time
	p    []byte                       // what is read into, or what is left to write
	pool pool                         // where p is taken from for each try, nil when it is given
	buf  *[]byte
	n    int
	err  error

	stall stall // of writing
}

// pool gives and takes buffers.
type pool interface {
	Get() any
	Put(any)
}

func newSocket(c net.Conn) *socket {
	s := &socket{Conn: c}
	sc, ok := c.(syscall.Conn)
	if !ok || !direct {
		return s
	}
	if raw, err := sc.SyscallConn(); err == nil {
		s.raw, s.in.try, s.out.try = raw, s.in.read, s.out.write
	}
	return s
}

// Read implements net.Conn.
func (s *socket) Read(p []byte) (int, error) {
	if s.raw == nil || len(p) == 0 {
		return s.Conn.Read(p)
	}
	s.in.p, s.in.pool = p, nil
	err := s.raw.Read(s.in.try)
	s.in.p = nil
	return s.outcome(err)
}

// take reads into a buffer that it takes from a pool only when there is something to read. It returns the
// buffer with n > 0 bytes in it, or no buffer and an error.
func (s *socket) take(from pool) (buf *[]byte, n int, err error) {
	if s.raw == nil {
		buf = from.Get().(*[]byte)
		if n, err = s.Conn.Read(*buf); n > 0 {
			return buf, n, err
		}
		from.Put(buf)
		return nil, 0, err
	}
	s.in.pool = from
	err = s.raw.Read(s.in.try)
	buf, s.in.buf = s.in.buf, nil
	n, err = s.outcome(err)
	return buf, n, err
}

// outcome is what a read came to, told as the net package does.
func (s *socket) outcome(err error) (int, error) {
	switch {
	case err != nil:
		return 0, closedOr(err)
	case s.in.err != nil:
		return 0, s.failed("read", s.in.err)
	case s.in.n == 0:
		return 0, io.EOF
	}
	return s.in.n, nil
}

// answer writes that the tunnel stands, unless something has come before: then nothing is written. With wait it
// returns when there is something to read, or none can come any more. It looks in place of the read that would find
// nothing yet, so that it costs no call of its own.
func (s *socket) answer(wait bool) (early bool, err error) {
	if s.raw == nil {
		_, err := io.WriteString(s.Conn, established)
		return false, err
	}
	looked := false
	rerr := s.raw.Read(func(fd uintptr) bool {
		if looked {
			return true
		}
		looked = true
		n, perr := peek(fd)
		switch {
		case n > 0:
			early = true
			return true
		case perr != nil && perr != syscall.EAGAIN:
			err = s.failed("read", perr)
			return true
		}
		_, err = s.Write([]byte(established))
		return err != nil || perr == nil || !wait
	})
	if rerr != nil && !looked {
		err = closedOr(rerr)
	}
	return early, err // what ended the wait is told to whoever reads
}

// Write implements net.Conn.
func (s *socket) Write(p []byte) (int, error) {
	if s.raw == nil {
		return s.Conn.Write(p)
	}
	s.out.p, s.out.err = p, nil
	err := s.raw.Write(s.out.try)
	s.out.stall.over()
	n := len(p) - len(s.out.p)
	s.out.p = nil
	switch {
	case err != nil:
		err = closedOr(err)
	case s.out.err != nil:
		err = s.failed("write", s.out.err)
	}
	return n, err
}

// closedOr is what ended a wait: a deadline, or else that the connection was closed.
func closedOr(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return net.ErrClosed
}

// over says that the other side has ended without a byte that was not read. It does not wait.
func (s *socket) over() bool {
	if s.raw == nil {
		return false
	}
	end := false
	err := s.raw.Control(func(fd uintptr) {
		n, err := peek(fd)
		end = n == 0 && err == nil
	})
	return err == nil && end
}

// ended passes on an end that was read, and stays for a reset behind it, which no read is told any more, until the
// connection is closed or let go. It returns an error when the connection was reset.
//
// An end may be none: the kernel tells of a reset once, to whoever comes first, and an end to all after that. When a
// write was told, nothing is passed on. As long as the connection stands each look waits for the next edge of the
// poller's: a reset is one, while what goes the other way makes none unless it was held up.
func (s *socket) ended(pass func() error) error {
	if s.raw == nil {
		return pass()
	}
	passed := false
	var err error
	rerr := s.raw.Read(func(fd uintptr) bool {
		stands, untold := connected(fd)
		if !passed && (stands || untold != 0) {
			passed = true
			if err = pass(); err != nil {
				return true
			}
		}
		if stands {
			return false
		}
		if untold == 0 {
			untold = syscall.ECONNRESET
		}
		err = s.failed("read", asReset(untold)) // else its other side is gone: nobody reset it
		return true
	})
	if rerr != nil && !passed && !errors.Is(rerr, os.ErrDeadlineExceeded) {
		return closedOr(rerr)
	}
	return err
}

// letGo ends the waiting for a reset behind an end.
func (s *socket) letGo() {
	if s.raw != nil {
		_ = s.SetReadDeadline(time.Unix(1, 0)) // it fails only on a connection that is closed, and nobody waits for that
	}
}

// unsent says that there are bytes in front of the end that the other side has not taken yet.
func (s *socket) unsent() bool { return s.queued() > 1 } // the end itself counts as one

// queued are the bytes that were written and that the other side has not taken, with the end as one of them.
func (s *socket) queued() (n int) {
	if s.raw != nil {
		_ = s.raw.Control(func(fd uintptr) { n = queued(fd) }) // it fails on what is closed already
	}
	return n
}

// CloseWrite ends what is written, and leaves the other direction alone.
func (s *socket) CloseWrite() error {
	if s.raw == nil {
		if h, ok := s.Conn.(interface{ CloseWrite() error }); ok {
			return h.CloseWrite()
		}
		return s.Conn.Close()
	}
	var err error
	if cerr := s.raw.Control(func(fd uintptr) { err = shutdown(fd) }); cerr != nil {
		return closedOr(cerr)
	}
	if err != nil {
		return s.failed("close", err)
	}
	return nil
}

// failed says which of a tunnel's ends an error is of.
func (s *socket) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: err}
}

// read says false when there is nothing to read yet.
func (a *attempt) read(fd uintptr) bool {
	p := a.p
	if a.pool != nil {
		a.buf = a.pool.Get().(*[]byte)
		p = *a.buf
	}
	a.n, a.err = receive(fd, p)
	if a.n == 0 && a.pool != nil {
		a.pool.Put(a.buf)
		a.buf = nil
	}
	return a.err != syscall.EAGAIN
}

// write says false when no more can be written yet.
func (a *attempt) write(fd uintptr) bool {
	for len(a.p) > 0 {
		n, err := send(fd, a.p)
		if err == syscall.EAGAIN {
			a.stall.waits()
			return false
		}
		if err != nil {
			a.err = err
			return true
		}
		a.p = a.p[n:]
	}
	return true
}
