package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/acl"
	"github.com/sandplan/sandplan/providers/docker/egress/addrclass"
	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// world is what a server touches outside itself, so that tests can stand in for it.
type world struct {
	now    func() time.Time
	lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	dial   func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// own are the networks that the proxy is on.
	own []netip.Prefix
	// processors sets how many the scheduler uses; nil where that is not the proxy's to say.
	processors func(int)
}

// realWorld uses the machine's network, and the declared name servers.
func realWorld(cfg *Config, own []netip.Prefix) (world, error) {
	servers, err := cfg.nameServers()
	if err != nil {
		return world{}, err
	}
	var d net.Dialer
	r := &resolver{servers: servers, dial: d.DialContext}
	return world{now: time.Now, lookup: r.lookup, dial: dialOut(), own: own, processors: func(n int) { runtime.GOMAXPROCS(n) }}, nil
}

// server is one proxy at work.
type server struct {
	cfg    *Config
	world  world
	acl    *acl.List
	class  addrclass.Classifier
	agent  netip.Addr
	log    *Log
	pool   sync.Pool // of *[]byte, for what is moving
	slots  chan struct{}
	linger chan struct{}
	rate   *bucket
	looks  *bucket
	ids    atomic.Uint64
	up     budget
	down   budget
	open   open
	cores  *processors
}

// open are the connections that end with the run. Asking a context to close each of them would cost as much as
// all decisions about it.
type open struct {
	mu    sync.Mutex
	conns map[*socket]struct{}
	ended bool
}

// add keeps a connection until it is closed; when the run has ended it is closed at once.
func (o *open) add(c *socket) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		c.Close()
		return
	}
	o.conns[c] = struct{}{}
}

func (o *open) close(c *socket) {
	o.mu.Lock()
	delete(o.conns, c)
	o.mu.Unlock()
	c.Close()
}

// end closes everything that is open, and what is added later. It is a reset, so that nobody takes what the run's end
// has torn for a whole.
func (o *open) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	for c := range o.conns {
		abort(c.Conn)
	}
}

// budget is a number of bytes that all tunnels share.
type budget struct {
	used   atomic.Int64 // taken and reserved
	passed atomic.Int64 // written to whom they were for
	over   atomic.Bool
	limit  int64 // 0 is none
	why    reason.Reason
	once   sync.Once
}

// take says whether n more bytes may pass. What does not fit does not pass at all, and from then on
// nothing does.
func (b *budget) take(n int64) bool {
	if b.limit == 0 {
		b.used.Add(n)
		return true
	}
	if b.over.Load() || b.used.Add(n) > b.limit {
		b.over.Store(true)
		return false
	}
	return true
}

func (b *budget) spent() bool { return b.over.Load() }

// reserve takes up to n bytes in advance, an eighth of what is left at most: what several tunnels hold
// in reserve must not look used up to the others.
func (b *budget) reserve(n int64) int64 {
	for {
		used := b.used.Load()
		if b.limit != 0 {
			n = max(0, min(n, (b.limit-used)/8))
		}
		if b.over.Load() {
			n = 0 // what others give back by now is no room
		}
		if b.used.CompareAndSwap(used, used+n) {
			return n
		}
	}
}

// giveBack returns what was reserved and did not pass.
func (b *budget) giveBack(n int64) { b.used.Add(-n) }

const (
	bufferSize = 32 << 10
	// maxLinger is how many refused connections are held open at once until the client has read why.
	maxLinger = 64
)

func newServer(cfg *Config, w world, log *Log) (*server, error) {
	agent, err := netip.ParseAddr(cfg.Agent)
	if err != nil {
		return nil, err
	}
	var rules []acl.Rule
	for _, h := range cfg.Hosts {
		r := acl.Rule{Host: h.Name, Port: uint16(h.Port), TLS: h.TLS, Decl: h.Decl}
		for _, s := range h.Addresses {
			a, err := netip.ParseAddr(s)
			if err != nil {
				return nil, fmt.Errorf("host %s: %w", h.Name, err)
			}
			r.Addresses = append(r.Addresses, a)
		}
		rules = append(rules, r)
	}
	list, err := acl.New(rules)
	if err != nil {
		return nil, err
	}
	s := &server{
		cfg: cfg, world: w, acl: list, agent: agent, log: log,
		class:  addrclass.Classifier{Own: w.own},
		slots:  make(chan struct{}, cfg.Limits.Tunnels),
		linger: make(chan struct{}, maxLinger),
		rate:   newBucket(w.now, cfg.Limits.TunnelsPerSecond),
		looks:  newBucket(w.now, freeLooks),
		open:   open{conns: map[*socket]struct{}{}},
	}
	if w.processors == nil {
		w.processors = func(int) {}
	}
	s.cores = newProcessors(cfg.Limits.CPUs, w.processors)
	s.up.limit, s.up.why = cfg.Limits.UploadBytes, reason.UploadLimit
	s.down.limit, s.down.why = cfg.Limits.DownloadBytes, reason.DownloadLimit
	log.passed = s.passed
	s.pool.New = func() any { b := make([]byte, bufferSize); return &b }
	return s, nil
}

// The pause after a failed Accept, which doubles: with no descriptor left Accept fails at once, for as
// long as it lasts, and would burn a core.
const (
	minPause = 5 * time.Millisecond
	maxPause = time.Second
)

// serve accepts until ctx ends, then closes every tunnel and waits for them. It returns nil when ctx
// ended it.
func (s *server) serve(ctx context.Context, l net.Listener) error {
	var tunnels sync.WaitGroup
	defer tunnels.Wait()
	defer s.open.end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	tunnels.Go(func() { s.open.free(ctx) })
	var pause time.Duration
	for {
		conn, err := l.Accept()
		if err == nil {
			pause = 0
			tunnels.Go(func() { s.handle(ctx, conn) })
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		if !temporary(err) {
			return fmt.Errorf("accept: %w", err)
		}
		if pause == 0 {
			s.log.Write(Entry{Event: EventTrouble, Error: err.Error()})
		}
		pause = min(max(2*pause, minPause), maxPause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// errNotWatched is of a connection that cannot be waited for. The bound counts for all processes of one user.
var errNotWatched = errors.New("the kernel watches no more descriptors for this user (fs.epoll.max_user_watches)")

// temporary are the errors of accept(2) after which the listener goes on: the client left, or the
// machine lacks something for now.
func temporary(err error) bool {
	for _, e := range []error{errNotWatched, syscall.ECONNABORTED, syscall.EINTR, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EPERM, syscall.EPROTO} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// handle serves one connection, whatever comes over it.
func (s *server) handle(ctx context.Context, conn net.Conn) {
	t := &tunnel{server: s, id: s.ids.Add(1), client: newSocket(conn), start: s.world.now()}
	defer s.open.close(t.client)
	s.open.add(t.client)
	if peer, ok := addrOf(conn.RemoteAddr()); !ok || peer != s.agent {
		t.peer = peer.String()
		t.decide(Refuse, reason.NotAgent, nil)
		return
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		s.turnAway(ctx, t, reason.TooManyTunnels)
		return
	}
	if !s.rate.take() {
		s.turnAway(ctx, t, reason.TooManyPerSecond)
		return
	}
	t.run(ctx)
}

// freeLooks are the connections per second that end without a byte and do not count: the shim looks every second
// whether the proxy answers, and must neither take from what is declared nor be refused in the log.
const freeLooks = 4

// turnAway refuses a connection for how many there are, unless it only looked.
func (s *server) turnAway(ctx context.Context, t *tunnel, why reason.Reason) {
	if t.client.over() && s.looks.take() {
		return
	}
	t.refuse(ctx, why, nil)
}

// spare gives back what a connection took that only looked.
func (s *server) spare() {
	if s.looks.take() {
		s.rate.giveBack()
	}
}

func addrOf(a net.Addr) (netip.Addr, bool) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	return t.AddrPort().Addr().Unmap(), true
}

// exhaust says once that a budget is used up; whoever reads the log ends the run. Until then every
// further byte ends its tunnel, and no new tunnel is opened.
func (s *server) exhaust(b *budget) {
	b.once.Do(func() {
		up, down := s.passed()
		s.log.Write(Entry{Event: EventLimit, Reason: b.why, Up: up, Down: down})
	})
}

// passed are the bytes of all tunnels that reached whom they were for.
func (s *server) passed() (up, down int64) { return s.up.passed.Load(), s.down.passed.Load() }

// bucket allows a number of events per second, and as many at once after a pause.
type bucket struct {
	mu    sync.Mutex
	now   func() time.Time
	rate  float64
	have  float64
	since time.Time
}

func newBucket(now func() time.Time, perSecond int) *bucket {
	return &bucket{now: now, rate: float64(perSecond), have: float64(perSecond), since: now()}
}

func (b *bucket) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.have = min(b.rate, b.have+b.rate*now.Sub(b.since).Seconds())
	b.since = now
	if b.have < 1 {
		return false
	}
	b.have--
	return true
}

// giveBack undoes one take.
func (b *bucket) giveBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.have = min(b.rate, b.have+1)
}

// drain reads what the client still sends, for a moment: closing a connection with unread data resets
// it, and the reset overtakes the answer.
func (s *server) drain(conn *socket) {
	select {
	case s.linger <- struct{}{}:
		defer func() { <-s.linger }()
	default:
		return
	}
	if err := conn.CloseWrite(); err != nil {
		return
	}
	if err := conn.SetReadDeadline(s.world.now().Add(time.Second)); err != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, conn, 64<<10) // whatever comes of it, the connection is closed next
}
