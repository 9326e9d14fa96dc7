package probe

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Token is what marks a packet, a name or a file: whose it is, and which attempt it belongs to.
type Token struct {
	// Session is one verification: 12 hex digits.
	Session string `json:"session"`
	// Run tells the programs of a verification apart. It stands in ports, too, where a packet has room for
	// nothing else.
	Run int `json:"run"`
	// Attempt is the number of the attempt; 0 is the declared way.
	Attempt int `json:"attempt"`
}

const (
	tokenPrefix = "spv"
	// firstPort is added to Run.
	firstPort = 47000
)

// For is the token of one attempt.
func (t Token) For(id string) Token {
	t.Attempt = Number(id)
	return t
}

// String is one word of letters and digits, so that it can be a part of a host name.
func (t Token) String() string {
	return fmt.Sprintf("%s%s%04x%02x", tokenPrefix, t.Session, t.Run, t.Attempt)
}

// port is the port of packets to where nobody listens.
func (t Token) port() int { return firstPort + t.Run }

// Outside is an address of the internet that belongs to nobody (RFC 5737), one for each attempt.
func (t Token) Outside() string { return fmt.Sprintf("198.51.100.%d", t.Attempt) }

// outside6 is the same for IPv6 (RFC 3849).
func (t Token) outside6() string { return fmt.Sprintf("2001:db8::%x", t.Attempt) }

const tokenDigits = 6 // of run and attempt

// FindTokens finds the tokens of a session in the bytes of a packet, a name or a file. A resolver may have
// changed the case of a name.
func FindTokens(session, text string) []Token {
	text = lower(text)
	var out []Token
	for mark := tokenPrefix + session; ; {
		i := strings.Index(text, mark)
		if i < 0 {
			return out
		}
		text = text[i+len(mark):]
		if len(text) < tokenDigits {
			return out
		}
		if t, ok := parseToken(session, text[:tokenDigits]); ok {
			out = append(out, t)
		}
	}
}

// lower changes letters of ASCII alone, byte for byte: what comes need not be text.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func parseToken(session, digits string) (Token, bool) {
	if _, err := hex.DecodeString(digits); err != nil {
		return Token{}, false
	}
	run, _ := strconv.ParseUint(digits[:4], 16, 32)
	attempt, _ := strconv.ParseUint(digits[4:], 16, 32)
	return Token{Session: session, Run: int(run), Attempt: int(attempt)}, true
}

// AbstractName is the abstract name that the canary, or the second invocation, listens at.
func AbstractName(session, role string) string { return "@sandplan-verify-" + session + "-" + role }
