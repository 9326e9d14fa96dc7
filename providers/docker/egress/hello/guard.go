package hello

import "github.com/sandplan/sandplan/providers/docker/egress/reason"

// Guard looks at what a client sends behind its hello. A server may ask for a second hello
// (HelloRetryRequest, RFC 8446, 4.1.4), and not every server holds the name in it against the first:
// the guard does. It is over as soon as no further hello can come: at the first encrypted record of
// TLS 1.3, or at the first other handshake message of TLS 1.2.
type Guard struct {
	// Name is the name that every hello must carry.
	Name string
	// Limit bounds a hello.
	Limit int

	held    []byte
	records int  // between hellos
	changed bool // a change_cipher_spec was among them
	over    bool
}

// maxBetween bounds the records between two hellos: a client sends one change_cipher_spec there.
const maxBetween = 4

// Over says that nothing more needs to be looked at.
func (g *Guard) Over() bool { return g.over }

// Feed takes what came next and returns what may be forwarded now; what is held back comes with a later
// call. A reason ends the tunnel: then nothing of the second hello was returned.
func (g *Guard) Feed(p []byte) (forward []byte, why reason.Reason) {
	if g.over {
		return p, reason.None
	}
	g.held = append(g.held, p...)
	done := 0
	for !g.over {
		n, why := g.next(g.held[done:])
		if why != reason.None {
			return nil, why
		}
		if n == 0 {
			break
		}
		done += n
	}
	if g.over {
		done = len(g.held)
	}
	forward, g.held = g.held[:done:done], g.held[done:]
	return forward, reason.None
}

// next looks at one record: how long it is, 0 when it has not all come.
func (g *Guard) next(b []byte) (n int, why reason.Reason) {
	if len(b) < recordHeader+1 {
		return 0, reason.None
	}
	length := int(b[3])<<8 | int(b[4])
	switch b[0] {
	case recordChange, recordAlert:
		if g.records >= maxBetween || length > maxRecord || length == 0 {
			return 0, reason.HelloMalformed
		}
		if len(b) < recordHeader+length {
			return 0, reason.None
		}
		g.records++
		g.changed = g.changed || b[0] == recordChange
		return recordHeader + length, reason.None
	case recordHandshake:
		return g.handshake(b)
	}
	g.over = true
	return 0, reason.None
}

// handshake tells a second hello from other messages.
func (g *Guard) handshake(b []byte) (n int, why reason.Reason) {
	if b[recordHeader] != messageHello {
		g.over = true
		return 0, reason.None
	}
	if g.changed {
		switch plain, known := looksPlain(b, g.Limit); {
		case !known:
			return 0, reason.None
		case !plain:
			g.over = true
			return 0, reason.None
		}
	}
	r := Read(b, g.Limit)
	switch {
	case r.Reason != reason.None:
		return 0, r.Reason
	case r.State == More && len(b) > g.Limit:
		return 0, reason.HelloTooLarge
	case r.State == More:
		return 0, reason.None
	case r.Name != g.Name:
		return 0, reason.SNIDiffers
	}
	return r.Length, reason.None
}

// looksPlain: behind a change_cipher_spec stands a second hello of TLS 1.3 or an encrypted Finished of
// TLS 1.2, whose first bytes may be anything. The length of a hello's message tells them apart, all but
// once in 2^18 resumed connections of TLS 1.2. known is false while too little has come.
func looksPlain(b []byte, limit int) (plain, known bool) {
	const shortest = 41 // a hello without extensions
	if record := int(b[3])<<8 | int(b[4]); record < messageHeader {
		return true, true // no Finished is as short: a hello, cut small
	}
	if len(b) < recordHeader+messageHeader {
		return false, false
	}
	m := b[recordHeader:]
	n := int(m[1])<<16 | int(m[2])<<8 | int(m[3])
	return n >= shortest && n <= limit, true
}
