package egress

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/sandplan/sandplan/providers/docker/egress/hello"
	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// relay moves bytes both ways until both sides have said all, or one of them fails; then the other
// gets the same end: a half-close for a half-close, a reset for everything else. No clock runs here
// that could end a tunnel.
func (t *tunnel) relay(ctx context.Context, upstream *socket, first []byte) (reason.Reason, error) {
	s := t.server
	var ended atomic.Int32
	up := &flow{server: s, dst: upstream, src: t.client, budget: &s.up, ended: &ended, line: t.line}
	down := &flow{server: s, dst: t.client, src: upstream, budget: &s.down, ended: &ended, line: t.line}
	if t.rule.TLS {
		up.guard, down.guard = hello.NewGuard(t.rule.Host, s.cfg.Limits.HelloBytes)
	}
	over := make(chan error, 1)
	go func() {
		err := down.run()
		if err != nil {
			abort(t.client.Conn, upstream.Conn)
		}
		over <- err
	}()
	err := up.begin(first[:t.helloLength], first[t.helloLength:])
	t.release()
	t.opened()
	if err == nil {
		err = up.told() // meanwhile the server thinks about its answer, which need not wait for the line then
	}
	if err == nil {
		err = up.run()
	}
	if err != nil {
		abort(t.client.Conn, upstream.Conn)
	}
	derr := <-over
	t.up, t.down = up.moved, down.moved
	// When one direction fails the other fails with it, on a connection that is already closed: the
	// first cause is the one that says something else.
	if err == nil || errors.Is(err, net.ErrClosed) && derr != nil {
		err = derr
	}
	if errors.Is(err, net.ErrClosed) {
		err = cmp.Or(s.open.torn(t.client, upstream), err)
	}
	var refused *refusedError
	switch {
	case errors.As(err, &refused) || errors.As(derr, &refused): // whatever else befell it
		t.refused(refused)
		return refused.why, nil
	case ctx.Err() != nil:
		return reason.Stopping, nil
	case err == nil:
		return reason.Closed, nil
	case errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE):
		return reason.Reset, err
	}
	return reason.Failed, err
}

// refusedError ends a tunnel for a reason of the proxy's own.
type refusedError struct {
	why reason.Reason
	sni string // of the hello that was refused, if it was for one
}

func (e *refusedError) Error() string { return e.why.Text() }

// guard looks at the beginning of one direction, and says what of it may be forwarded.
type guard interface {
	Feed([]byte) ([]byte, reason.Reason)
	Holds() bool // something that was fed, and not let through yet
	Over() bool
	Refused() string
}

// flow is one direction of a tunnel.
type flow struct {
	server   *server
	dst, src *socket
	budget   *budget
	guard    guard         // nil when nothing needs to be looked at
	ended    *atomic.Int32 // of the two directions of a tunnel, how many have
	line     uint64        // of the log, which must be written before anything is forwarded; 0 when it is
	moved    int64
}

// begin moves the hello, which waits for nothing, and what came behind it.
func (f *flow) begin(hello, behind []byte) error {
	if err := f.forward(hello); err != nil || len(behind) == 0 {
		return err
	}
	return f.look(behind)
}

// run moves all that comes from src. A buffer is held only while there is something in it, so that a
// silent tunnel costs two descriptors and two small stacks; a slow reader holds one buffer, and
// everything before it waits.
func (f *flow) run() error {
	burst := newBurst(f.server.world.now)
	for {
		buf, n, err := f.src.take(&f.server.pool)
		if n > 0 {
			werr := f.look((*buf)[:n])
			f.server.pool.Put(buf)
			if werr != nil {
				return werr
			}
			if burst.grows(n) && f.guarded() == nil {
				if err = f.bulk(); err == nil {
					burst = newBurst(f.server.world.now)
					continue
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return f.end()
		}
		if err != nil && !errors.Is(err, net.ErrClosed) {
			return cmp.Or(f.told(), err) // nothing of an answer passes untold, its reset neither
		}
		if err != nil {
			return err
		}
	}
}

// end passes on that src has said all, and stays until the tunnel is over: src may still be reset, and nobody else
// reads it any more.
func (f *flow) end() error {
	if err := f.told(); err != nil {
		return err
	}
	var torn error // not all of it has passed
	if g := f.guarded(); g != nil && g.Holds() {
		torn = &refusedError{why: reason.HelloMissing}
	}
	if f.ended.Add(1) == 2 {
		f.dst.letGo()
		return torn // both directions have ended: closing says it all
	}
	passed := false
	err := f.src.ended(func() error {
		if torn != nil {
			return torn
		}
		passed = true
		// The receiver may have reset the connection in the meantime; then there is nobody to tell.
		if err := f.dst.CloseWrite(); err != nil && !errors.Is(err, syscall.ENOTCONN) {
			return err
		}
		return nil
	})
	if err != nil && passed && f.dst.unsent() {
		// What was said before the end is whole, and a reset would take it out of the kernel's hands. So does a
		// receiver who speaks before it has read all, as without a proxy.
		f.dst.Close()
	}
	return cmp.Or(err, torn) // the other direction's end may have let go before anybody looked
}

// guarded is the guard that still has to look, nil when none has.
func (f *flow) guarded() guard {
	if f.guard != nil && f.guard.Over() {
		f.guard = nil
	}
	return f.guard
}

// told returns when the log has the line that says that the tunnel is let through.
func (f *flow) told() error {
	if f.line != 0 && !f.server.log.Await(f.line) {
		return &refusedError{why: reason.LogLimit}
	}
	f.line = 0
	return nil
}

// look forwards what the guard, if there is one, lets through.
func (f *flow) look(p []byte) error {
	if err := f.told(); err != nil {
		return err
	}
	if g := f.guarded(); g != nil {
		var why reason.Reason
		if p, why = g.Feed(p); why != reason.None {
			return &refusedError{why, g.Refused()}
		}
	}
	return f.forward(p)
}

func (f *flow) forward(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if !f.budget.take(int64(len(p))) {
		f.server.exhaust(f.budget)
		return &refusedError{why: f.budget.why}
	}
	n, err := f.dst.Write(p)
	f.moved += int64(n)
	f.budget.passed.Add(int64(n))
	return err
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
