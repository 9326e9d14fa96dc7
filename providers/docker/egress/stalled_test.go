package egress

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// stuff has one side write until it is closed, and the other take some of it, and then nothing more. It returns when the
// proxy has waited for that one for a while.
func (p *proxy) stuff(from, to *net.TCPConn) {
	p.t.Helper()
	go func() {
		for chunk := make([]byte, 256<<10); ; {
			if _, err := from.Write(chunk); err != nil {
				return
			}
		}
	}()
	if _, err := io.CopyN(io.Discard, struct{ io.Reader }{to}, 4*bulkBytes); err != nil {
		p.t.Fatal(err)
	}
	awaitStall(p.t, func() (waits pace) {
		p.server.open.mu.Lock()
		defer p.server.open.mu.Unlock()
		for c := range p.server.open.conns {
			if at := c.pace(); at.wait != 0 {
				waits = at
			}
		}
		return waits
	})
}

// awaitStall waits until a write has waited for a while, and nothing has moved meanwhile.
func awaitStall(t *testing.T, at func() pace) {
	t.Helper()
	last, same := pace{}, 0
	for deadline := time.Now().Add(patience); same < 20; time.Sleep(10 * time.Millisecond) {
		if now := at(); now.wait != 0 && now == last {
			same++
		} else {
			last, same = now, 0
		}
		if time.Now().After(deadline) {
			t.Fatal("the write does not wait")
		}
	}
}

// TestResetWhileTheOtherReadsNothing: whoever resets while the proxy waits for the other side, which takes nothing, ends
// the tunnel all the same; the other side is told, and the place is free.
func TestResetWhileTheOtherReadsNothing(t *testing.T) {
	eachSide(t, func(t *testing.T, p *proxy, from, to *net.TCPConn) {
		p.stuff(from, to)
		abort(from)
		awaitGone(t, to)
		if e := p.awaitReason(reason.Reset); e.Up+e.Down < bulkBytes || e.Error == "" {
			t.Errorf("%+v", e)
		}
		p.awaitFree()
	})
}

// eachSide opens a tunnel for each of its sides in turn.
func eachSide(t *testing.T, test func(t *testing.T, p *proxy, from, to *net.TCPConn)) {
	for _, side := range []string{"the client", "the server"} {
		t.Run(side, func(t *testing.T) {
			servers := make(chan *net.TCPConn, 1)
			p := startProxy(t, plainConfig(), upstream(t, func(c *net.TCPConn) { servers <- c; <-t.Context().Done() }))
			from := p.tunnel(okTarget)
			to := <-servers
			if side == "the server" {
				from, to = to, from
			}
			test(t, p, from, to)
		})
	}
}

// muchMore is more than the kernel keeps for a connection.
const muchMore = 64 << 20

// TestStalledOnly: what is freed has moved nothing between two looks, and its other end was reset, that of a server not
// when all had been said.
func TestStalledOnly(t *testing.T) {
	for _, tt := range []struct {
		reason      string
		ends, reset bool // the other end, or rather who is there
		between     bool // a look, before the reset
		agent       bool // it is the agent's, not the server's
		stall       bool
		takes       int // bytes that the one who stalls takes between the looks
		free        bool
	}{
		{reason: "both stand", stall: true},
		{reason: "nothing was written to the end that stands", reset: true},
		{reason: "the other end was reset", reset: true, stall: true, free: true},
		{reason: "it was reset after a look", reset: true, between: true, stall: true, free: true},
		{reason: "it was reset, and is the agent's", reset: true, between: true, agent: true, stall: true, free: true},
		{reason: "it was reset, and the end that stands reads slowly", reset: true, stall: true, takes: muchMore / 2},
		{reason: "it was reset, and what was written has been read", reset: true, stall: true, takes: muchMore},
		{reason: "the other end has said all", ends: true, stall: true},
		{reason: "it has said all, and was reset right behind that", ends: true, reset: true, stall: true, free: true},
		{reason: "it has said all, and is gone later: the answer is whole", ends: true, reset: true, between: true, stall: true},
		{reason: "the agent has said all, and was reset later: nobody is to be held up by it", ends: true, reset: true, between: true, agent: true, stall: true, free: true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			near, farNear := sockets(t)
			other, farOther := sockets(t)
			o := &open{conns: map[*socket]struct{}{}}
			if tt.agent {
				o.add(other)
				o.pair(other, near)
			} else {
				o.add(near)
				o.pair(near, other)
			}
			written := make(chan error, 1)
			if tt.stall {
				go func() {
					_, err := near.Write(make([]byte, muchMore))
					written <- err
				}()
				awaitStall(t, near.pace)
			}
			if tt.ends {
				if err := farOther.CloseWrite(); err != nil {
					t.Fatal(err)
				}
				for deadline := time.Now().Add(patience); !other.over(); time.Sleep(time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatal("the end does not arrive")
					}
				}
			}
			if tt.between {
				o.freeNow()
			}
			if tt.reset {
				abort(farOther)
				awaitGone(t, other.Conn.(*net.TCPConn))
			}
			o.freeNow()
			if err := o.torn(near, other); err != nil && !tt.between {
				t.Fatalf("at the first look: %v", err)
			}
			if _, err := io.CopyN(io.Discard, farNear, int64(tt.takes)); err != nil {
				t.Fatal(err)
			}
			if tt.takes == muchMore {
				if err := <-written; err != nil {
					t.Fatal(err)
				}
				o.freeNow() // that it has waited before is no matter, however often it is looked at
			}
			o.freeNow()
			if tt.free {
				o.freeNow() // which forgets nothing
			}
			err := o.torn(near, other)
			if errors.Is(err, syscall.ECONNRESET) != tt.free || err != nil != tt.free {
				t.Errorf("%v", err)
			}
			if tt.free {
				if err := <-written; !errors.Is(err, net.ErrClosed) {
					t.Errorf("the write ends with %v", err)
				}
				awaitGone(t, farNear)
			}
		})
	}
}

// awaitGone waits until a connection is no more, as after a reset.
func awaitGone(t *testing.T, c *net.TCPConn) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		stands := true
		if err := raw.Control(func(fd uintptr) {
			_, err := syscall.Getpeername(int(fd))
			stands = err != syscall.ENOTCONN
		}); err != nil {
			t.Fatal(err)
		}
		if !stands {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no reset is passed on")
		}
	}
}

// awaitFree waits until no tunnel has its place any more.
func (p *proxy) awaitFree() {
	p.t.Helper()
	for deadline := time.Now().Add(patience); len(p.server.slots) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatal("its place is taken for ever")
		}
	}
}
