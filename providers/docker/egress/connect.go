package egress

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/acl"
	"github.com/sandplan/sandplan/providers/docker/egress/head"
	"github.com/sandplan/sandplan/providers/docker/egress/hello"
	"github.com/sandplan/sandplan/providers/docker/egress/hostport"
	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// tunnel is one connection of the agent, from its first byte to its last.
type tunnel struct {
	server *server
	id     uint64
	client *socket
	start  time.Time
	peer   string // who it came from, when that was not the agent

	raw     string // the target as it was asked for
	target  hostport.Target
	rule    acl.Rule
	address netip.AddrPort // what was dialled
	sni     string
	line    uint64 // of the log, that says that it is let through
	up      int64
	down    int64

	opening     bool
	early       bool    // something came with the request, behind it
	begunTLS    bool    // what came where a hello must stand began as one
	helloLength int     // of what was read as the hello; bytes may have come behind it
	buf         *[]byte // of the pool, for head and hello, nil from the relay's first byte on
}

// run is the whole of it, in the order that matters: nothing is looked up before it is allowed,
// nothing dialled before its address was checked, nothing forwarded before the hello was.
func (t *tunnel) run(ctx context.Context) {
	t.buf = t.server.pool.Get().(*[]byte)
	defer t.release()
	t.server.cores.begin()
	t.opening = true
	defer t.opened()
	why := t.readHead()
	if why == reason.Unused {
		t.server.spare()
		return // the shim looks every second whether the proxy still answers: nothing to tell
	}
	if why != reason.None {
		t.refuse(ctx, why, nil)
		return
	}
	if why := t.allow(); why != reason.None {
		t.refuse(ctx, why, nil)
		return
	}
	addrs, why, err := t.resolve(ctx)
	if why != reason.None {
		t.noWay(ctx, why, err)
		return
	}
	upstream, why, err := t.connect(ctx, addrs)
	if why != reason.None {
		t.noWay(ctx, why, err)
		return
	}
	defer t.server.open.close(upstream)
	t.server.open.pair(t.client, upstream)
	early, err := t.answer()
	if early {
		t.server.open.close(upstream) // it is not to wait for the agent to read why
		t.refuse(ctx, reason.EarlyData, nil)
		return
	}
	if err != nil {
		t.gone(ctx, err)
		return
	}
	first, why, err := t.readHello()
	if why == reason.Unused {
		t.decide(Allow, why, nil)
		return
	}
	if why != reason.None {
		t.drop(ctx, why, err)
		return
	}
	// From here on nothing has a deadline: a stream may be silent for as long as the run lasts.
	if err := t.client.SetDeadline(time.Time{}); err != nil {
		t.gone(ctx, err)
		return
	}
	if !t.allowed() {
		t.closed(reason.LogLimit, nil)
		return
	}
	why, err = t.relay(ctx, upstream, first)
	t.closed(why, err)
}

// opened says that the tunnel has nothing more to do but to wait for bytes, or that it is none.
func (t *tunnel) opened() {
	if t.opening {
		t.opening = false
		t.server.cores.end()
	}
}

// release gives the buffer back, of which nothing is used any more.
func (t *tunnel) release() {
	if t.buf != nil {
		t.server.pool.Put(t.buf)
		t.buf = nil
	}
}

// readHead reads the request. Whoever asks for another method than CONNECT is told that, whatever else is wrong.
func (t *tunnel) readHead() reason.Reason {
	b, r, why := t.scanHead()
	if why != reason.None {
		if r = head.Begin(b); r.Method != "" && r.Method != "CONNECT" {
			why = reason.NotConnect
		}
	}
	t.raw = r.Target
	return why
}

// scanHead returns what it has read of the request, nothing that stands behind it, and the request if it is one.
func (t *tunnel) scanHead() (read []byte, r head.Request, why reason.Reason) {
	l := t.server.cfg.Limits
	if err := t.client.SetReadDeadline(t.server.world.now().Add(ms(l.HeadMS))); err != nil {
		return nil, r, reason.HeadIncomplete
	}
	buf := (*t.buf)[:0] // append moves it where a limit is larger
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := t.client.Read(buf[len(buf):min(cap(buf), l.HeadBytes+1)])
		seen := len(buf)
		buf = buf[:seen+n]
		end, why := head.Scan(buf, seen)
		switch {
		case why != reason.None:
			return buf, r, why
		case end > l.HeadBytes || end == 0 && len(buf) > l.HeadBytes:
			return buf, r, reason.HeadTooLarge
		case end > 0:
			t.early = end < len(buf)
			r, why := head.Parse(buf[:end])
			return buf[:end], r, why
		case errors.Is(err, os.ErrDeadlineExceeded):
			return buf, r, reason.HeadTooSlow
		case err != nil && len(buf) == 0:
			return buf, r, reason.Unused
		case err != nil:
			return buf, r, reason.HeadIncomplete
		}
	}
}

// allow decides, by name and port alone.
func (t *tunnel) allow() (why reason.Reason) {
	if t.target, why = hostport.Parse(t.raw); why != reason.None {
		return why
	}
	d := t.server.acl.Decide(t.target)
	if !d.Allowed() {
		return d.Reason // before what is used up: no larger bound would let it through
	}
	t.rule = d.Rule
	if t.early {
		return reason.EarlyData
	}
	for _, b := range []*budget{&t.server.up, &t.server.down} {
		if b.spent() {
			return b.why
		}
	}
	if t.server.log.over() {
		return reason.LogLimit
	}
	return reason.None
}

// resolve makes the one lookup of the tunnel, unless the declaration fixes the addresses. One address
// that is not public spoils all: an answer that mixes them was made to get at the other one.
func (t *tunnel) resolve(ctx context.Context) ([]netip.Addr, reason.Reason, error) {
	if len(t.rule.Addresses) > 0 {
		return t.rule.Addresses, reason.None, nil
	}
	ctx, cancel := context.WithTimeout(ctx, ms(t.server.cfg.Limits.LookupMS))
	defer cancel()
	t.server.open.waits(t.client, cancel)
	addrs, err := t.server.world.lookup(ctx, t.rule.Host)
	switch {
	case errors.Is(err, errNoAddress) || err == nil && len(addrs) == 0:
		return nil, reason.NoAddress, err
	case err != nil:
		return nil, reason.LookupFailed, err
	}
	for _, a := range addrs {
		if why := t.server.class.Check(a); why != reason.None {
			t.address = netip.AddrPortFrom(a, t.rule.Port)
			return nil, why, nil
		}
	}
	return addrs, reason.None, nil
}

// maxDials bounds how many addresses of one name are tried.
const maxDials = 4

// connect dials exactly what was checked, in order.
func (t *tunnel) connect(ctx context.Context, addrs []netip.Addr) (*socket, reason.Reason, error) {
	var last error
	for i, a := range addrs {
		if i == maxDials || ctx.Err() != nil || i > 0 && t.server.open.torn(t.client) != nil {
			break
		}
		t.address = netip.AddrPortFrom(a, t.rule.Port)
		conn, err := t.server.world.dial(by{ctx, t.server.world.now().Add(ms(t.server.cfg.Limits.DialMS)), t}, t.address)
		if err == nil {
			return newSocket(conn), reason.None, nil
		}
		last = err
	}
	return nil, reason.DialFailed, last
}

// by is a context with a deadline that the dialled socket watches. One that ends at its deadline would take a
// timer and a place in the run's context besides, for each dial.
type by struct {
	context.Context
	deadline time.Time
	tunnel   *tunnel // that it is for
}

// Deadline implements context.Context.
func (b by) Deadline() (time.Time, bool) { return b.deadline, true }

// waits says how to end the dial, which has to wait.
func (b by) waits(giveUp func()) { b.tunnel.server.open.waits(b.tunnel.client, giveUp) }

// answer opens the tunnel, unless the agent has sent something that was meant to go through before it could know. Where
// the agent is to speak first it waits for that.
func (t *tunnel) answer() (early bool, err error) {
	l, now := t.server.cfg.Limits, t.server.world.now()
	if err := t.client.SetWriteDeadline(now.Add(ms(l.HeadMS))); err != nil {
		return false, err
	}
	// For a tunnel without a hello as well: the request's own time may be over by now, and nothing is looked at then.
	if err := t.client.SetReadDeadline(now.Add(ms(l.HelloMS))); err != nil {
		return false, err
	}
	return t.client.answer(t.rule.TLS)
}

// readHello reads the hello of a tunnel that must begin with one, and holds it against the name that
// the tunnel was opened for. It returns what was read, which nobody else has seen yet.
func (t *tunnel) readHello() ([]byte, reason.Reason, error) {
	if !t.rule.TLS {
		return nil, reason.None, nil
	}
	l := t.server.cfg.Limits
	buf := (*t.buf)[:0]
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := t.client.Read(buf[len(buf):min(cap(buf), l.HelloBytes+1)])
		buf = buf[:len(buf)+n]
		h := hello.Read(buf, l.HelloBytes)
		t.sni = h.Name
		t.begunTLS = len(buf) > 0 && h.Reason != reason.NotTLS
		switch {
		case h.Reason != reason.None:
			return nil, h.Reason, nil
		case h.State == hello.Done && h.Name != t.rule.Host:
			return nil, reason.SNIDiffers, nil
		case h.State == hello.Done:
			t.helloLength = h.Length
			return buf, reason.None, nil
		case len(buf) > l.HelloBytes:
			return nil, reason.HelloTooLarge, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, reason.HelloTooSlow, nil
		case errors.Is(err, io.EOF) && len(buf) == 0:
			return nil, reason.Unused, nil
		case err != nil:
			return nil, reason.HelloMissing, err
		}
	}
}

func (t *tunnel) decide(decision string, why reason.Reason, err error) {
	e := t.entry(EventDecision, why, err)
	e.Decision = decision
	t.server.log.Write(e)
}

// allowed says that the tunnel is let through, if that can be told. Its hello was looked at as a whole, so that it
// may go while this is being written; the relay has everything else wait for it.
func (t *tunnel) allowed() (told bool) {
	e := t.entry(EventDecision, reason.Allowed, nil)
	e.Decision = Allow
	t.line, told = t.server.log.Pass(e)
	return told
}

// refused says that a tunnel that was let through is ended for what was said in it. Its bytes stand on the line that
// says that it is closed.
func (t *tunnel) refused(r *refusedError) {
	e := t.entry(EventDecision, r.why, nil)
	e.Decision, e.SNI, e.Up, e.Down = Refuse, clip(r.sni), 0, 0
	t.server.log.Write(e)
}

func (t *tunnel) closed(why reason.Reason, err error) {
	t.server.log.Queue(t.entry(EventClosed, why, err))
}

func (t *tunnel) entry(ev Event, why reason.Reason, err error) Entry {
	e := Entry{
		Event: ev, Tunnel: t.id, Host: t.target.Host, Port: int(t.target.Port), Reason: why, Decl: t.rule.Decl,
		SNI: clip(t.sni), Up: t.up, Down: t.down, DurationMS: t.server.world.now().Sub(t.start).Milliseconds(),
	}
	if e.Host == "" {
		e.Host = clip(hostport.Shown(t.raw))
	}
	if t.address.IsValid() {
		e.Address = t.address.String()
	}
	if t.peer != "" {
		e.Address = t.peer
	}
	if err != nil {
		e.Error = err.Error()
	}
	return e
}

// clip bounds what the agent can write into the log.
func clip(s string) string {
	const most = 300
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
