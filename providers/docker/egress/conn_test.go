package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// dialled are both ends of a connection: what dialOut and what listen's Accept made.
func dialled(t *testing.T) (out, in *conn, l net.Listener) {
	t.Helper()
	l, err := listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c, err := dialOut()(t.Context(), l.Addr().(*net.TCPAddr).AddrPort())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := newSocket(c).Write([]byte("x")); err != nil { // what is silent is accepted late
		t.Fatal(err)
	}
	a, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return c.(*conn), a.(*conn), l
}

// option reads an option of a connection's descriptor.
func option(t *testing.T, c *conn, level, name int) (value int) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if cerr := raw.Control(func(fd uintptr) { value, err = syscall.GetsockoptInt(int(fd), level, name) }); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
	return value
}

// TestConnectionsKnowTheirEnds: who it came from decides whether the proxy listens to it at all.
func TestConnectionsKnowTheirEnds(t *testing.T) {
	out, in, l := dialled(t)
	if in.RemoteAddr().String() != out.LocalAddr().String() || in.LocalAddr().String() != l.Addr().String() || out.RemoteAddr().String() != l.Addr().String() {
		t.Errorf("%s to %s is accepted as %s to %s", out.LocalAddr(), out.RemoteAddr(), in.RemoteAddr(), in.LocalAddr())
	}
	if a, ok := addrOf(in.RemoteAddr()); !ok || a != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("%v, %t", a, ok)
	}
	out.Close()
	if a := out.LocalAddr().String(); strings.Contains(a, "127") {
		t.Errorf("after it was closed it has the address %s", a)
	}
}

// TestConnectionsHaveTheirOptions: nothing waits for more to be sent, the way out is kept open at different
// times, and no program that the proxy might ever start gets a descriptor of either.
func TestConnectionsHaveTheirOptions(t *testing.T) {
	out, in, _ := dialled(t)
	for _, c := range []*conn{out, in} {
		if option(t, c, syscall.IPPROTO_TCP, syscall.TCP_NODELAY) == 0 {
			t.Errorf("what is sent from %s waits for more", c.LocalAddr())
		}
		raw, err := c.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var flags, status uintptr
		if err := raw.Control(func(fd uintptr) {
			flags, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFD, 0)
			status, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0)
		}); err != nil || flags&syscall.FD_CLOEXEC == 0 || status&syscall.O_NONBLOCK == 0 {
			t.Errorf("flags %x, status %x, %v", flags, status, err)
		}
	}
	if option(t, out, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) == 0 || option(t, in, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) != 0 {
		t.Error("the way out is not kept open, or the agent's is")
	}
	seen := map[int]bool{}
	dial, to := dialOut(), out.RemoteAddr().(*net.TCPAddr).AddrPort()
	for range 32 {
		c, err := dial(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle := option(t, c.(*conn), syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE)
		if idle < 60 || idle > 91 {
			t.Errorf("the first probe after %d s", idle)
		}
		seen[idle] = true
	}
	if len(seen) != 32 {
		t.Errorf("32 tunnels ask at %d times", len(seen))
	}
}

// TestCongestion: towards the agent, behind a bridge, the proxy sends as fast as the windows allow; on the way out the
// machine's choice is kept, whichever it is.
func TestCongestion(t *testing.T) {
	machine, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	out, in, _ := dialled(t)
	for _, tt := range []struct {
		c    *conn
		want string
	}{{in, "reno"}, {out, strings.TrimSpace(string(machine))}} {
		raw, err := tt.c.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var got [16]byte // TCP_CA_NAME_MAX
		size := uint32(len(got))
		var errno syscall.Errno
		if err := raw.Control(func(fd uintptr) {
			_, _, errno = syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_CONGESTION,
				uintptr(unsafe.Pointer(&got)), uintptr(unsafe.Pointer(&size)), 0)
		}); err != nil || errno != 0 {
			t.Fatal(err, errno)
		}
		if name := strings.TrimRight(string(got[:size]), "\x00"); name != tt.want {
			t.Errorf("%s sends to %s with %s, want %s", tt.c.LocalAddr(), tt.c.RemoteAddr(), name, tt.want)
		}
	}
}

// TestDialTells: what is refused, unreachable or no address of the kind is told with the address.
func TestDialTells(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.78:0") // where no other test takes the port over
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().(*net.TCPAddr).AddrPort()
	l.Close()
	for _, tt := range []struct {
		to   netip.AddrPort
		is   error
		says string
	}{
		{closed, syscall.ECONNREFUSED, "dial tcp4 " + closed.String() + ": connect: connection refused"},
		{netip.MustParseAddrPort("255.255.255.255:443"), syscall.ENETUNREACH, "connect: "},
		{netip.MustParseAddrPort("[2001:db8::1]:443"), nil, "no IPv4 address"},
	} {
		c, err := dialOut()(t.Context(), tt.to)
		if c != nil || err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.to.Addr().String()) {
			t.Errorf("%s: %v, %v", tt.to, c, err)
		}
	}
}

// TestDialMeetsNobody: where nobody listens, a connection does not meet itself, although the port that the kernel
// chooses for it is the one that is dialled, as after some thousand dials.
func TestDialMeetsNobody(t *testing.T) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConn(uintptr(fd), netip.AddrPort{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	c.peer = c.local()
	if err := c.connect(t.Context(), 1); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("from %s to %s: %v", c.LocalAddr(), c.RemoteAddr(), err)
	}
}

// TestDialTakesMappedAddresses: as the net package does.
func TestDialTakesMappedAddresses(t *testing.T) {
	out, _, _ := dialled(t)
	to := out.RemoteAddr().(*net.TCPAddr).AddrPort()
	c, err := dialOut()(t.Context(), netip.AddrPortFrom(netip.AddrFrom16(to.Addr().As16()), to.Port()))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// TestUnwatchedConnection: what cannot be waited for is closed and told, and the proxy goes on.
func TestUnwatchedConnection(t *testing.T) {
	before := descriptors(t)
	for range 20 {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0) // blocking: no poller takes it
		if err != nil {
			t.Fatal(err)
		}
		if c, err := newConn(uintptr(fd), netip.AddrPort{}); c != nil || !errors.Is(err, errNotWatched) || !temporary(&net.OpError{Op: "accept", Err: err}) {
			t.Fatalf("%v, %v", c, err)
		}
	}
	if n := descriptors(t); n > before+2 {
		t.Errorf("%d descriptors, %d before", n, before)
	}
}

// TestDialLeavesNothing: a dial that failed, or was given up, holds no descriptor.
func TestDialLeavesNothing(t *testing.T) {
	at, before := silent(t), descriptors(t)
	dial := dialOut()
	for range 20 {
		if c, err := dial(within(t, 5*time.Millisecond), at); err == nil {
			t.Fatalf("%v answers", c.RemoteAddr())
		}
	}
	if n := descriptors(t); n > before+2 { // the test's own directory listing is one
		t.Errorf("%d descriptors, %d before", n, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// TestListenerEnds: whoever waits for a connection is told that there will be none.
func TestListenerEnds(t *testing.T) {
	l, err := listen(context.Background(), "127.0.0.77:0") // where no other test takes the port over
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	time.AfterFunc(20*time.Millisecond, func() { closed <- l.Close() }) // most often while it waits
	for range 2 {
		if c, err := l.Accept(); c != nil || !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v, %v", c, err)
		}
	}
	if err := <-closed; err != nil { // whoever waits may know before the kernel does
		t.Error(err)
	}
	if _, err := net.DialTimeout("tcp4", l.Addr().String(), patience); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after it was closed: %v", err)
	}
}

// TestLingerResets: a torn stream must not look like a whole one.
func TestLingerResets(t *testing.T) {
	out, in, _ := dialled(t)
	abort(out)
	if err := in.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(newSocket(in)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v", err)
	}
}
