package hello

import (
	"sync/atomic"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// A server may ask for a second hello (HelloRetryRequest, RFC 8446, 4.1.4), and not every server holds
// the name in it against the first. So both directions are looked at behind the hello, each by one
// goroutine, until no further hello can come: the server's for what it answers, the client's for what it
// sends then. No byte is ever guessed at. Until a server has answered a client has nothing to say but
// alerts; from then on it is the server's answer that tells how the client's records are to be read.

// What a server has answered.
const (
	answerNone   int32 = 0
	answerAgain  int32 = 1 // it asks for another hello: those come in plain text, whatever stands before them
	answerAccept int32 = 2 // it goes on: everything behind a change_cipher_spec is encrypted
)

// maxBetween bounds alerts and changes of the cipher that are looked at: a real peer sends one or two.
const maxBetween = 4

// NewGuard makes the two sides of the guard of one tunnel. limit bounds a hello.
func NewGuard(name string, limit int) (*Client, *Server) {
	answer := new(atomic.Int32)
	return &Client{name: name, limit: limit, answer: answer}, &Server{answer: answer}
}

// Server looks at what a server sends. What is fed to it must reach the client only afterwards, so that
// no client can reply to an answer that is not known here yet.
type Server struct {
	answer  *atomic.Int32
	held    []byte // records that are not whole
	message []byte // the beginning of its first message
	alerts  int
}

// Holds says that something waits for more: of a server's nothing does.
func (s *Server) Holds() bool { return false }

// Over says that nothing more needs to be looked at.
func (s *Server) Over() bool { return s.answer.Load() != answerNone }

// Refused is empty: a server names nobody.
func (s *Server) Refused() string { return "" }

// Feed takes what came next and returns what may be forwarded: all of it, unless there is a reason.
func (s *Server) Feed(p []byte) (forward []byte, why reason.Reason) {
	if s.Over() {
		return p, reason.None
	}
	s.held = append(s.held, p...)
	for len(s.held) > 0 && !s.Over() {
		n, why := s.next(s.held)
		if why != reason.None {
			return nil, why
		}
		if n == 0 {
			break
		}
		s.held = s.held[n:]
	}
	if s.Over() {
		s.held, s.message = nil, nil
	}
	return p, reason.None
}

// answerLength is how much of an answer has to be there: the message's header, its version, its random.
const answerLength = messageHeader + 2 + 32

// next looks at one record: how long it is, 0 when too little has come.
func (s *Server) next(b []byte) (n int, why reason.Reason) {
	if b[0] != recordHandshake && b[0] != recordAlert || len(b) > 1 && b[1] != 3 {
		return 0, reason.AnswerNotTLS
	}
	if len(b) < recordHeader {
		return 0, reason.None
	}
	length := int(b[3])<<8 | int(b[4])
	if length == 0 || length > maxRecord {
		return 0, reason.AnswerNotTLS
	}
	if b[0] == recordAlert {
		// A warning may stand before the answer: some servers say so that they do not know the name.
		if length != 2 || s.alerts >= maxBetween {
			return 0, reason.AnswerNotTLS
		}
		if len(b) < recordHeader+length {
			return 0, reason.None
		}
		s.alerts++
		return recordHeader + length, reason.None
	}
	fragment := b[recordHeader:min(len(b), recordHeader+length)]
	message := append(s.message[:len(s.message):len(s.message)], fragment...)
	if len(message) > 0 && message[0] != messageServerHello {
		return 0, reason.AnswerNotTLS
	}
	if len(message) >= answerLength {
		if [32]byte(message[messageHeader+2:]) == retryRandom() {
			s.answer.Store(answerAgain)
		} else {
			s.answer.Store(answerAccept)
		}
		return len(b), reason.None
	}
	if len(fragment) < length {
		return 0, reason.None
	}
	s.message = message
	return recordHeader + length, reason.None
}

// retryRandom is what stands in an answer that asks for another hello in place of its random: RFC 8446,
// 4.1.3.
func retryRandom() [32]byte {
	return [32]byte{
		0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
		0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
	}
}

// Client looks at what a client sends behind its hello.
type Client struct {
	name   string
	limit  int
	answer *atomic.Int32
	held   []byte
	passed int  // alerts and changes
	second bool // a second hello has passed
	over   bool
	// refused is the name in what was refused, for the log.
	refused string
}

// Holds says that the beginning of something waits for its end.
func (c *Client) Holds() bool { return len(c.held) > 0 }

// Over says that nothing more needs to be looked at.
func (c *Client) Over() bool { return c.over }

// Refused is the name in the hello that stands in what was refused, if one has come as a whole.
func (c *Client) Refused() string { return c.refused }

// Feed takes what came next and returns what may be forwarded now; what is held back comes with a later
// call. A reason ends the tunnel: then nothing of a hello that is refused was returned.
func (c *Client) Feed(p []byte) (forward []byte, why reason.Reason) {
	if c.over {
		return p, reason.None
	}
	c.held = append(c.held, p...)
	done := 0
	for !c.over && done < len(c.held) {
		n, why := c.next(c.held[done:])
		if why != reason.None {
			c.refused = named(c.held[done:], c.limit)
			return nil, why
		}
		if n == 0 {
			break
		}
		done += n
	}
	if c.over {
		done = len(c.held)
	}
	forward, c.held = c.held[:done:done], c.held[done:]
	return forward, reason.None
}

// named is the name in the first hello of some records. Whoever goes on too early is refused before that is read.
func named(b []byte, limit int) string {
	for len(b) >= recordHeader && b[0] != recordHandshake {
		length := int(b[3])<<8 | int(b[4])
		b = b[min(len(b), recordHeader+length):]
	}
	return Read(b, limit).Name
}

// next looks at one record: how long it is, 0 when it has not all come, or is the first that needs no
// look.
func (c *Client) next(b []byte) (n int, why reason.Reason) {
	answer := c.answer.Load()
	switch kind := b[0]; {
	case kind == recordAlert || kind == recordChange && answer == answerAgain:
		return c.pass(b)
	case answer == answerNone:
		// No client has anything to say here, but for early data, which its hello did not announce. Whoever
		// does wants it read by a server that is about to ask for another hello.
		return 0, reason.DataBeforeAnswer
	case kind == recordHandshake:
		return c.handshake(b)
	case answer == answerAgain && !c.second:
		return 0, reason.HelloMalformed // the server has asked for a hello
	}
	c.over = true
	return 0, reason.None
}

// pass lets through one record that says nothing.
func (c *Client) pass(b []byte) (n int, why reason.Reason) {
	if len(b) < recordHeader {
		return 0, reason.None
	}
	length := int(b[3])<<8 | int(b[4])
	if want := map[byte]int{recordAlert: 2, recordChange: 1}[b[0]]; length != want || c.passed >= maxBetween {
		return 0, reason.HelloMalformed
	}
	if len(b) < recordHeader+length {
		return 0, reason.None
	}
	c.passed++
	return recordHeader + length, reason.None
}

// handshake tells a further hello from other messages.
func (c *Client) handshake(b []byte) (n int, why reason.Reason) {
	if len(b) < recordHeader+1 {
		return 0, reason.None
	}
	if b[recordHeader] != messageHello {
		if c.answer.Load() == answerAgain && !c.second {
			return 0, reason.HelloMalformed
		}
		c.over = true
		return 0, reason.None
	}
	r := Read(b, c.limit)
	switch {
	case r.Reason != reason.None:
		return 0, r.Reason
	case r.State == More && len(b) > c.limit:
		return 0, reason.HelloTooLarge
	case r.State == More:
		return 0, reason.None
	case r.Name != c.name:
		return 0, reason.SNIDiffers
	}
	c.second = true
	return r.Length, reason.None
}
