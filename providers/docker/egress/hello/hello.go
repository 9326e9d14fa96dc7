// Package hello reads the first message of a TLS connection, as far as the name of the host that it is
// for. It is stricter than a server: a name is only worth something when there is exactly one, and
// when no other reader of the same bytes could find another.
package hello

import (
	"encoding/binary"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// State says whether more bytes are needed.
type State int

// The states.
const (
	More State = 0 // nothing is wrong so far, and the hello is not complete
	Done State = 1 // Name is the one that the hello names, unless Reason says what is wrong
)

// Result is what was read.
type Result struct {
	State  State
	Reason reason.Reason
	// Name is the server name, as it stands there; it may be set when Reason is, for the log.
	Name string
	// Length is how many bytes the hello takes, its records' headers included.
	Length int
}

const (
	recordChange    = 20
	recordAlert     = 21
	recordHandshake = 22
	messageHello    = 1
	// messageServerHello is the answer to it.
	messageServerHello = 2
	extServerName      = 0
	extEarlyData       = 42

	recordHeader  = 5
	messageHeader = 4
	maxRecord     = 1 << 14
)

// isECH: the extension of RFC 9849, its drafts' numbers, the outer extensions that only it uses, and
// what came before it. The client chooses the name outside, so that it proves nothing.
func isECH(ext uint16) bool {
	switch ext {
	case 0xfe0d, 0xfe08, 0xfe09, 0xfe0a, 0xfe0b, 0xfe0c, 0xff02, 0xff03, 0xfd00, 0xffce:
		return true
	}
	return false
}

// Read looks at all bytes that came so far. limit bounds the length of the hello.
func Read(b []byte, limit int) Result {
	message, length, why := reassemble(b, limit)
	if why != reason.None {
		return Result{State: Done, Reason: why}
	}
	if length == 0 {
		return Result{}
	}
	name, why := parse(message)
	return Result{State: Done, Reason: why, Name: name, Length: length}
}

// reassemble gathers the one handshake message out of records, however it is split over them. used is
// how many bytes it took, 0 while it is not complete.
func reassemble(b []byte, limit int) (message []byte, used int, why reason.Reason) {
	want := -1 // length of the whole message, once its header is there
	for {
		if why := checkRecord(b); why != reason.None {
			return nil, 0, why
		}
		if len(b) < recordHeader {
			return nil, 0, reason.None
		}
		length := int(binary.BigEndian.Uint16(b[3:]))
		fragment := b[recordHeader:]
		whole := len(fragment) >= length
		if whole {
			fragment = fragment[:length]
		}
		message = append(message, fragment...)
		if want < 0 && len(message) > 0 && message[0] != messageHello {
			return nil, 0, reason.HelloMalformed
		}
		if want < 0 && len(message) >= messageHeader {
			want = messageHeader + int(message[1])<<16 + int(message[2])<<8 + int(message[3])
			if want > limit {
				return nil, 0, reason.HelloTooLarge
			}
		}
		switch {
		case want >= 0 && len(message) > want:
			return nil, 0, reason.HelloMalformed // a second message behind the hello
		case !whole:
			return nil, 0, reason.None
		}
		used += recordHeader + length
		if used > limit {
			return nil, 0, reason.HelloTooLarge
		}
		if len(message) == want {
			return message, used, reason.None
		}
		b = b[recordHeader+length:]
	}
}

// checkRecord looks at as much of a record's header as is there.
func checkRecord(b []byte) reason.Reason {
	if len(b) > 0 && b[0] != recordHandshake || len(b) > 1 && b[1] != 3 || len(b) > 2 && b[2] > 4 {
		return reason.NotTLS
	}
	if len(b) < recordHeader {
		return reason.None
	}
	// RFC 8446, 5.1: a handshake record is never empty. A client that sends such could keep us reading
	// for ever without coming closer to any limit.
	if n := binary.BigEndian.Uint16(b[3:]); n == 0 || n > maxRecord {
		return reason.HelloMalformed
	}
	return reason.None
}

// cursor takes a message apart. After a failure every read gives nothing and bad stays set.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n int) []byte {
	if n > len(c.b) {
		c.bad = true
		c.b = nil
		return nil
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

func (c *cursor) number(size int) int {
	n := 0
	for _, x := range c.take(size) {
		n = n<<8 | int(x)
	}
	return n
}

// vector is a field with its length in front, in size bytes.
func (c *cursor) vector(size int) cursor {
	n := c.number(size)
	b := c.take(n)
	return cursor{b: b, bad: c.bad}
}

// parse reads a complete ClientHello. Everything must fit exactly: a length that leaves bytes over is
// one that another parser could read differently.
func parse(message []byte) (name string, why reason.Reason) {
	c := cursor{b: message[messageHeader:]}
	version := c.number(2)
	c.take(32) // random
	session := c.vector(1)
	suites := c.vector(2)
	compression := c.vector(1)
	if c.bad || version>>8 != 3 || len(session.b) > 32 || len(suites.b) < 2 || len(suites.b)%2 != 0 || len(compression.b) < 1 {
		return "", reason.HelloMalformed
	}
	if len(c.b) == 0 {
		return "", reason.SNIMissing // TLS 1.2 allows a hello without any extension
	}
	extensions := c.vector(2)
	if c.bad || len(c.b) != 0 {
		return "", reason.HelloMalformed
	}
	seen := map[int]bool{}
	hidden := false
	for len(extensions.b) > 0 {
		id := extensions.number(2)
		body := extensions.vector(2)
		if extensions.bad || seen[id] {
			return "", reason.HelloMalformed
		}
		seen[id] = true
		hidden = hidden || isECH(uint16(id))
		if id == extServerName {
			if name, why = parseName(body); why != reason.None {
				return "", why
			}
		}
	}
	switch {
	case hidden:
		return name, reason.ECH
	case name == "":
		return "", reason.SNIMissing
	case seen[extEarlyData]:
		// A server skips early data that it does not take, and reads a second hello behind it: see NewGuard.
		return name, reason.HelloEarlyData
	}
	return name, reason.None
}

// parseName reads a list of exactly one host name.
func parseName(ext cursor) (string, reason.Reason) {
	list := ext.vector(2)
	if ext.bad || len(ext.b) != 0 {
		return "", reason.HelloMalformed
	}
	kind := list.number(1)
	name := list.vector(2)
	if list.bad || kind != 0 || len(list.b) != 0 || len(name.b) == 0 {
		return "", reason.HelloMalformed
	}
	return string(name.b), reason.None
}
