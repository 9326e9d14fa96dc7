package egress

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// side is what one end of a tunnel says and hears: pieces and pauses of its own making, then a half-close.
type side struct {
	rng        *rand.Rand
	size       int
	sent, got  hash.Hash
	gotN       int
	err        error
	pauses     int // of those that are longer than a splice waits
	slowReader bool
}

func newSide(rng *rand.Rand, most int) *side {
	s := &side{rng: rng, sent: sha256.New(), got: sha256.New(), pauses: rng.IntN(3), slowReader: rng.IntN(3) == 0}
	if rng.IntN(8) > 0 {
		s.size = rng.IntN(most)
	}
	return s
}

// talk says all, and listens at the same time until the other side has said all.
func (s *side) talk(c *net.TCPConn, within time.Duration) {
	var wg sync.WaitGroup
	seed := s.rng.Uint64()
	var rerr error
	wg.Go(func() { rerr = s.listen(c, rand.New(rand.NewPCG(seed, 1))) })
	s.err = s.say(c, within)
	wg.Wait()
	s.err = errors.Join(s.err, rerr)
}

func (s *side) say(c *net.TCPConn, within time.Duration) error {
	src := rand.NewChaCha8([32]byte{byte(s.rng.Uint32())})
	for left := s.size; left > 0; {
		n := min(left, 1+s.rng.IntN(1<<(s.rng.IntN(22)+1)))
		p := make([]byte, n)
		_, _ = src.Read(p)
		_, _ = s.sent.Write(p)
		if _, err := c.Write(p); err != nil {
			return err
		}
		left -= n
		switch k := s.rng.IntN(40); {
		case k == 0 && s.pauses > 0:
			s.pauses--
			time.Sleep(within + time.Duration(s.rng.IntN(20))*time.Millisecond)
		case k < 4:
			time.Sleep(time.Duration(s.rng.IntN(3000)) * time.Microsecond)
		}
	}
	return c.CloseWrite()
}

func (s *side) listen(c *net.TCPConn, rng *rand.Rand) error {
	buf := make([]byte, 1<<18)
	for {
		n, err := c.Read(buf[:1+rng.IntN(len(buf))])
		_, _ = s.got.Write(buf[:n])
		s.gotN += n
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if s.slowReader && rng.IntN(30) == 0 {
			time.Sleep(time.Duration(rng.IntN(8000)) * time.Microsecond)
		}
	}
}

// TestTornNever: whatever the sizes, the pauses and the order of the ends, between copying and splicing and back no
// byte is lost, doubled or out of its place, in neither direction.
func TestTornNever(t *testing.T) {
	const within = 30 * time.Millisecond // instead of bulkWithin: the proxy's clock is late, its bounds come early
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	const rounds = 24
	servers := make(chan *side, rounds)
	for i := range rounds {
		servers <- newSide(rand.New(rand.NewPCG(seed, uint64(i)<<1)), 12<<20)
	}
	over := sync.Map{} // channels by a tunnel's first byte, which tells the server's side whose peer it is
	cfg := plainConfig()
	cfg.Limits.UploadBytes = 0
	p := startProxyAt(t, cfg, upstream(t, func(c *net.TCPConn) {
		first := make([]byte, 1)
		if _, err := io.ReadFull(c, first); err != nil {
			t.Errorf("the first byte: %v", err)
			return
		}
		s := <-servers
		s.talk(c, within)
		done, _ := over.Load(first[0])
		done.(chan *side) <- s
	}), func() time.Time { return time.Now().Add(within - bulkWithin) })
	p.set(func() { p.dialer = dialOut() })
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i := range rounds {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			done := make(chan *side, 1)
			over.Store(byte(i), done)
			c := p.tunnel(vendorName + ":443")
			if _, err := c.Write([]byte{byte(i)}); err != nil {
				t.Error(err)
				return
			}
			near := newSide(rand.New(rand.NewPCG(seed, uint64(i)<<1|1)), 12<<20)
			near.talk(c, within)
			c.Close()
			far := <-done
			if near.err != nil || far.err != nil || near.gotN != far.size || far.gotN != near.size ||
				string(near.sent.Sum(nil)) != string(far.got.Sum(nil)) || string(far.sent.Sum(nil)) != string(near.got.Sum(nil)) {
				t.Errorf("tunnel %d: up %d of %d bytes, down %d of %d, or others; %v, %v", i, far.gotN, near.size, near.gotN, far.size, near.err, far.err)
			}
		})
	}
	wg.Wait()
}

// TestResetIsNoEnd: the kernel tells a reset once. When it is the other direction's write that is told, what reads
// is told an end, and must not pass it on. A reset behind an end is told to no reader, and is one all the same.
func TestResetIsNoEnd(t *testing.T) {
	reset := func(s *socket) error { abort(s.Conn); return nil }
	for _, tt := range []struct {
		name   string
		leave  func(*socket) error // of the sender
		write  bool                // to the sender, before its end is read
		behind func(*socket) error // of the sender, when its end has been passed on
		passed bool
		torn   bool
		reason string
	}{
		{"an end", (*socket).CloseWrite, false, nil, true, false, "the sender has said all"},
		{"a reset", reset, false, nil, false, true, "the read is told"},
		{"a reset that a write was told", reset, true, nil, false, true, "the read is told an end"},
		{"a reset right behind an end", func(s *socket) error { return errors.Join(s.CloseWrite(), reset(s)) }, false, nil, true, true, "all was said before, and nobody listens any more"},
		{"a reset long behind an end", (*socket).CloseWrite, false, reset, true, true, "nobody reads any more that could be told"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, far, receiver := halfTunnel(t)
			if err := tt.leave(far); err != nil {
				t.Fatal(err)
			}
			if tt.write {
				writeUntilReset(t, f.src)
			}
			over := make(chan error, 1)
			go func() { over <- f.run() }()
			if tt.passed {
				if n, err := receiver.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
					t.Fatalf("the receiver is told %d bytes, %v; %s", n, err, tt.reason)
				}
			}
			if tt.behind != nil {
				if err := tt.behind(far); err != nil {
					t.Fatal(err)
				}
			}
			if !tt.torn {
				f.src.letGo() // as the other direction's end does
			}
			if err := <-over; errors.Is(err, syscall.ECONNRESET) != tt.torn || err != nil != tt.torn {
				t.Errorf("%v; %s", err, tt.reason)
			}
		})
	}
}

// writeUntilReset writes until a write is told that the other side has reset.
func writeUntilReset(t *testing.T, s *socket) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		_, err := s.Write([]byte("x"))
		if errors.Is(err, syscall.ECONNRESET) {
			return
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("no write is told of the reset: %v", err)
		}
	}
}

// halfTunnel is one direction of a tunnel, with the two that are at its ends.
func halfTunnel(t *testing.T) (f *flow, sender, receiver *socket) {
	t.Helper()
	from, src, _ := dialled(t)
	to, dst, _ := dialled(t)
	s, err := newServer(plainConfig(), world{now: time.Now}, newLog(io.Discard, time.Now, "", 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	f = &flow{server: s, dst: newSocket(dst), src: newSocket(src), budget: &s.up, ended: &atomic.Int32{}}
	for _, s := range []*socket{f.src, f.dst} {
		if _, err := s.Read(make([]byte, 1)); err != nil { // what dialled sends
			t.Fatal(err)
		}
	}
	return f, newSocket(from), newSocket(to)
}

// TestResetTakesNothingBack: what was said before an end arrives, and the end, although the sender resets behind it
// while the receiver takes its time.
func TestResetTakesNothingBack(t *testing.T) {
	f, far, receiver := halfTunnel(t)
	sent := 0
	for full := false; !full; { // until no more goes into what is between the two
		if err := f.dst.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := f.dst.Write(make([]byte, 64<<10))
		sent += n
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && f.dst.unsent():
			full = true
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			t.Fatal(err)
		}
	}
	if err := f.dst.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := far.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	abort(far.Conn)
	if err := f.run(); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	abort(f.src.Conn, f.dst.Conn) // as the tunnel does
	if n, err := io.Copy(io.Discard, struct{ io.Reader }{receiver}); int(n) != sent || err != nil {
		t.Errorf("%d of %d bytes arrive, %v", n, sent, err)
	}
}

// TestResetBehindEndEndsTheTunnel: whichever side has said all and is then gone for good, the other is told, and the
// tunnel's place is free.
func TestResetBehindEndEndsTheTunnel(t *testing.T) {
	eachSide(t, func(t *testing.T, p *proxy, from, to *net.TCPConn) {
		_, werr := io.WriteString(from, "all of it")
		if err := errors.Join(werr, from.CloseWrite()); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(to); string(b) != "all of it" || err != nil {
			t.Fatalf("%q, %v", b, err)
		}
		for range 3 { // what goes the other way is no reset
			_, werr := io.WriteString(to, "x")
			if _, err := io.ReadFull(from, make([]byte, 1)); werr != nil || err != nil {
				t.Fatal(werr, err)
			}
		}
		if err := errors.Join(from.SetLinger(0), from.Close()); err != nil {
			t.Fatal(err)
		}
		awaitGone(t, to)
		if e := p.awaitReason(reason.Reset); e.Up+e.Down != 9+3 {
			t.Errorf("%+v", e)
		}
		p.awaitFree()
	})
}

// TestUrgentInBulk: bytes behind an urgent one are there, although a splice does not see them, and says at their end
// that there is nothing more.
func TestUrgentInBulk(t *testing.T) {
	type seen struct {
		n    int64
		tail string
	}
	got := make(chan seen, 1)
	p := startProxy(t, plainConfig(), upstream(t, func(c *net.TCPConn) {
		n, err := io.CopyN(io.Discard, c, 4<<20)
		tail, err2 := io.ReadAll(c)
		if err := errors.Join(err, err2); err != nil {
			t.Error(err)
		}
		got <- seen{n, string(tail)}
	}))
	c := p.tunnel(vendorName + ":443")
	if _, err := c.Write(make([]byte, 4<<20)); err != nil {
		t.Fatal(err)
	}
	raw, err := c.SyscallConn()
	if err == nil {
		cerr := raw.Control(func(fd uintptr) { err = syscall.Sendto(int(fd), []byte("!"), syscall.MSG_OOB, nil) })
		err = errors.Join(err, cerr)
	}
	_, err2 := io.WriteString(c, "the end")
	if err := errors.Join(err, err2, c.CloseWrite()); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s.n != 4<<20 || s.tail != "the end" {
		t.Errorf("%d bytes and %q arrive", s.n, s.tail)
	}
}
