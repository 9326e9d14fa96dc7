package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// errSpent ends a direction whose budget is used up.
var errSpent = errors.New("the bytes of this run are used up")

// ended is how one direction of a tunnel ended.
type ended struct {
	n   int64
	err error // nil: the sender had said all, and the receiver was told so
}

// relay moves bytes both ways until both sides have said all, or one of them fails; then the other
// gets the same end: a half-close for a half-close, a reset for everything else. No clock runs here.
func (t *tunnel) relay(ctx context.Context, upstream net.Conn, first []byte) (reason.Reason, error) {
	s := t.server
	down := make(chan ended, 1)
	go func() {
		n, err := s.pump(t.client, upstream, nil, &s.down)
		if err != nil {
			abort(t.client, upstream)
		}
		down <- ended{n, err}
	}()
	n, err := s.pump(upstream, t.client, first, &s.up)
	if err != nil {
		abort(t.client, upstream)
	}
	d := <-down
	t.up, t.down = n, d.n
	// When one direction fails the other fails with it, on a connection that is already closed: the
	// first cause is the one that says something else.
	if err == nil || errors.Is(err, net.ErrClosed) && d.err != nil {
		err = d.err
	}
	switch {
	case ctx.Err() != nil:
		return reason.Stopping, nil
	case err == nil:
		return reason.Closed, nil
	case s.up.spent():
		return s.up.why, nil
	case s.down.spent():
		return s.down.why, nil
	case errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE):
		return reason.Reset, err
	}
	return reason.Failed, err
}

// pump moves one direction: first, then all that comes from src. A buffer is held only while there is
// something in it, so that a silent tunnel costs two descriptors and two small stacks; a slow reader
// holds one buffer, and everything before it waits.
func (s *server) pump(dst, src net.Conn, first []byte, b *budget) (int64, error) {
	var total int64
	forward := func(p []byte) error {
		if !b.take(len(p)) {
			s.exhaust(b)
			return errSpent
		}
		n, err := dst.Write(p)
		total += int64(n)
		return err
	}
	if len(first) > 0 {
		if err := forward(first); err != nil {
			return total, err
		}
	}
	in := newReader(src, &s.pool)
	for {
		buf, n, err := in.read()
		if n > 0 {
			werr := forward((*buf)[:n])
			s.pool.Put(buf)
			if werr != nil {
				return total, werr
			}
		}
		if errors.Is(err, io.EOF) {
			// The receiver may have reset the connection in the meantime; then there is nobody to tell.
			if err := closeWrite(dst); err != nil && !errors.Is(err, syscall.ENOTCONN) {
				return total, err
			}
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// abort closes connections with a reset, so that neither side takes a torn stream for a whole one.
func abort(conns ...net.Conn) {
	for _, c := range conns {
		if l, ok := c.(interface{ SetLinger(int) error }); ok {
			// It fails only on a connection that is closed already.
			_ = l.SetLinger(0)
		}
		c.Close()
	}
}

// pool gives and takes buffers.
type pool interface {
	Get() any
	Put(any)
}

// reader reads from a connection into a buffer that it takes from a pool only when there is something
// to read.
type reader struct {
	conn net.Conn
	raw  syscall.RawConn // nil when the connection has no descriptor, as in tests
	pool pool
}

func newReader(c net.Conn, p pool) *reader {
	r := &reader{conn: c, pool: p}
	if sc, ok := c.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			r.raw = raw
		}
	}
	return r
}

// read returns a buffer of the pool with n > 0 bytes in it, or no buffer and an error.
func (r *reader) read() (buf *[]byte, n int, err error) {
	if r.raw == nil {
		buf = r.pool.Get().(*[]byte)
		if n, err = r.conn.Read(*buf); n > 0 {
			return buf, n, err
		}
		r.pool.Put(buf)
		return nil, 0, err
	}
	var errno error
	err = r.raw.Read(func(fd uintptr) bool {
		b := r.pool.Get().(*[]byte)
		for {
			n, errno = syscall.Read(int(fd), *b)
			if errno != syscall.EINTR {
				break
			}
		}
		if n > 0 {
			buf = b
			return true
		}
		r.pool.Put(b)
		return errno != syscall.EAGAIN // false: wait until there is something
	})
	switch {
	case err != nil:
		return nil, 0, err
	case errno != nil:
		return nil, 0, errno
	case n == 0:
		return nil, 0, io.EOF
	}
	return buf, n, nil
}
