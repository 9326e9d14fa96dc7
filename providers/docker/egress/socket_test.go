package egress

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// counted is a pool that knows how many of its buffers are out.
type counted struct{ out atomic.Int64 }

func (c *counted) Get() any  { c.out.Add(1); b := make([]byte, 8); return &b }
func (c *counted) Put(x any) { c.out.Add(-1) }

// sockets are the two ends of a connection over loopback.
func sockets(t *testing.T) (ours *socket, other *net.TCPConn) {
	t.Helper()
	far := make(chan *net.TCPConn, 1)
	addr := upstream(t, func(c *net.TCPConn) { far <- c; <-t.Context().Done() })
	c, err := net.Dial("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	other = <-far
	if err := other.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	ours = newSocket(c)
	if ours.raw == nil {
		t.Fatal("a TCP connection without its descriptor")
	}
	return ours, other
}

// TestSocketReadsAsTheLibraryDoes: bytes, an end, a reset, a deadline and a close in the middle of waiting are
// what they are with the net package, and a buffer is held only while there is something in it.
func TestSocketReadsAsTheLibraryDoes(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(ours *socket, other *net.TCPConn) error
		want string
		is   error
	}{
		{"bytes", func(_ *socket, o *net.TCPConn) error { _, err := io.WriteString(o, "abc"); return err }, "abc", nil},
		{"the end", func(_ *socket, o *net.TCPConn) error { return o.CloseWrite() }, "", io.EOF},
		{"a reset", func(_ *socket, o *net.TCPConn) error { return errors.Join(o.SetLinger(0), o.Close()) }, "", syscall.ECONNRESET},
		{"a deadline", func(s *socket, _ *net.TCPConn) error { return s.SetReadDeadline(time.Unix(1, 0)) }, "", os.ErrDeadlineExceeded},
		{"closed meanwhile", func(s *socket, _ *net.TCPConn) error { return s.Close() }, "", net.ErrClosed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, pooled := range []bool{true, false} {
				ours, other := sockets(t)
				p := &counted{}
				time.AfterFunc(20*time.Millisecond, func() { // most often while it waits
					if err := tt.do(ours, other); err != nil {
						t.Error(err)
					}
				})
				got, n, err := make([]byte, 8), 0, error(nil)
				if pooled {
					var buf *[]byte
					if buf, n, err = ours.take(p); buf != nil {
						copy(got, (*buf)[:n])
						p.Put(buf)
					}
				} else {
					n, err = ours.Read(got)
				}
				if string(got[:n]) != tt.want || !errors.Is(err, tt.is) || (err == nil) != (tt.is == nil) {
					t.Errorf("%q, %v; want %q, %v", got[:n], err, tt.want, tt.is)
				}
				if held := p.out.Load(); held != 0 {
					t.Errorf("%d buffers are held", held)
				}
			}
		})
	}
}

// TestSocketSaysWhichEndFailed: a line of the log tells the agent's side from the server's.
func TestSocketSaysWhichEndFailed(t *testing.T) {
	ours, other := sockets(t)
	if err := errors.Join(other.SetLinger(0), other.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), ours.RemoteAddr().String()) {
		t.Errorf("reading: %v", err)
	}
	if _, err := ours.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) || !strings.Contains(err.Error(), ours.RemoteAddr().String()) {
		t.Errorf("writing: %v", err)
	}
	if err := ours.CloseWrite(); !errors.Is(err, syscall.ENOTCONN) {
		t.Errorf("ending: %v", err)
	}
}

// TestSocketWritesAll: what does not fit waits for the reader, and a bound ends the waiting.
func TestSocketWritesAll(t *testing.T) {
	ours, other := sockets(t)
	all := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	got := make(chan []byte, 1)
	go func() {
		time.Sleep(50 * time.Millisecond) // so that every buffer on the way is full
		b, _ := io.ReadAll(other)
		got <- b
	}()
	if n, err := ours.Write(all); n != len(all) || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if err := ours.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b := <-got; !bytes.Equal(b, all) {
		t.Errorf("%d of %d bytes came, or others", len(b), len(all))
	}

	ours, _ = sockets(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if n, err := ours.Write(make([]byte, 64<<20)); n == 0 || n == 64<<20 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("to nobody who reads: %d bytes, %v", n, err)
		}
	}()
	awaitStall(t, ours.pace)
	if err := ours.SetWriteDeadline(time.Now()); err != nil {
		t.Error(err)
	}
	<-ended
}

// TestSocketAllocatesNothing: moving bytes leaves no work for the collector.
func TestSocketAllocatesNothing(t *testing.T) {
	ours, other := sockets(t)
	buf := make([]byte, 8)
	p := onlyOne{&buf}
	var failed error
	per := math.Inf(1)
	for i := 0; per >= 1 && i < 5; i++ { // what tests before this one leave behind allocates as well, for a moment
		per = testing.AllocsPerRun(200, func() {
			_, err := other.Write(buf[:4])
			_, n, rerr := ours.take(p)
			_, werr := ours.Write(buf[:n])
			_, oerr := io.ReadFull(other, buf[:4])
			failed = errors.Join(failed, err, rerr, werr, oerr)
		})
	}
	if failed != nil || per >= 1 {
		t.Errorf("%.1f allocations for a round trip, %v", per, failed)
	}
}

type onlyOne struct{ buf *[]byte }

func (o onlyOne) Get() any { return o.buf }
func (o onlyOne) Put(any)  {}

// TestSilentConnectionIsBounded: the kernel keeps a connection that says nothing for a moment, and then it has
// the time of a request and no more; who leaves without a word is not waited for, and others go on.
func TestSilentConnectionIsBounded(t *testing.T) {
	cfg := testConfig()
	cfg.Limits.HeadMS = 2000 // in which a busy machine asks
	p := startProxy(t, cfg, "")
	silent := p.raw("")
	p.raw("").Close()
	if resp, _ := p.ask(connectTo("github.com:443")); resp.StatusCode != 403 {
		t.Errorf("beside a silent connection: %s", resp.Status)
	}
	if b, err := io.ReadAll(silent); err != nil || !bytes.HasPrefix(b, []byte("HTTP/1.1 408 ")) {
		t.Errorf("silence is answered with %q, %v", b, err)
	}
	p.awaitReason(reason.HeadTooSlow)
}
