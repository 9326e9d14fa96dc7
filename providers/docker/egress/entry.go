package egress

import (
	"encoding/json"
	"strconv"
	"unicode/utf16"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// Event is the kind of a log line.
type Event string

// The events.
const (
	EventDecision Event = "decision" // a request was let through or refused, its hello included, or a tunnel for what it said later
	EventClosed   Event = "closed"   // a tunnel that was let through ended
	EventRepeated Event = "repeated" // further refusals of one kind that were counted and not logged each
	EventUnlisted Event = "unlisted" // refusals that were counted without a line, as more kinds came than are told apart
	EventLimit    Event = "limit"    // a bound of the whole run is used up
	EventTrouble  Event = "trouble"  // the proxy itself lacks something, descriptors for example
	EventEnd      Event = "end"      // the last line: counts of everything
)

// The decisions.
const (
	Allow  = "allow"
	Refuse = "refuse"
)

// Entry is one log line. It never holds anything of what goes through a tunnel, its hello's name apart.
type Entry struct {
	Seq        uint64        `json:"seq"` // from 1, without a gap
	Time       string        `json:"time"`
	Event      Event         `json:"event"`
	Invocation string        `json:"invocation"`
	Tunnel     uint64        `json:"tunnel,omitempty"`
	Host       string        `json:"host,omitempty"`
	Port       int           `json:"port,omitempty"`
	Address    string        `json:"address,omitempty"`
	Decision   string        `json:"decision,omitempty"`
	Reason     reason.Reason `json:"reason,omitempty"`
	Decl       string        `json:"decl,omitempty"`
	SNI        string        `json:"sni,omitempty"`
	Up         int64         `json:"up"`
	Down       int64         `json:"down"`
	DurationMS int64         `json:"duration_ms"`
	Error      string        `json:"error,omitempty"`
	// Count is how many refusals a line of EventRepeated or EventUnlisted stands for.
	Count int64 `json:"count,omitempty"`
	// Counts are all reasons of the run with how often each was decided, on the line of EventEnd: as often as the
	// lines of decisions, repeated and unlisted refusals say together, and what was refused for a full log.
	Counts map[reason.Reason]int64 `json:"counts,omitempty"`
}

// appendEntry appends an entry as encoding/json writes it, in ASCII alone and without the reflection: every
// tunnel writes two.
func appendEntry(b []byte, e Entry) []byte {
	text := func(name, value string) {
		if value != "" {
			b = appendString(append(append(append(b, `,"`...), name...), `":`...), value)
		}
	}
	number := func(name string, value int64, always bool) {
		if value != 0 || always {
			b = strconv.AppendInt(append(append(append(b, `,"`...), name...), `":`...), value, 10)
		}
	}
	b = strconv.AppendUint(append(b, `{"seq":`...), e.Seq, 10)
	b = appendString(append(b, `,"time":`...), e.Time)
	b = appendString(append(b, `,"event":`...), string(e.Event))
	b = appendString(append(b, `,"invocation":`...), e.Invocation)
	number("tunnel", int64(e.Tunnel), false)
	text("host", e.Host)
	number("port", int64(e.Port), false)
	text("address", e.Address)
	text("decision", e.Decision)
	text("reason", string(e.Reason))
	text("decl", e.Decl)
	text("sni", e.SNI)
	number("up", e.Up, true)
	number("down", e.Down, true)
	number("duration_ms", e.DurationMS, true)
	text("error", e.Error)
	number("count", e.Count, false)
	if len(e.Counts) > 0 {
		counts, err := json.Marshal(e.Counts) // sorted
		if err == nil {                       // numbers by strings have a JSON form
			b = appendASCII(append(b, `,"counts":`...), counts)
		}
	}
	return append(b, '}')
}

// appendString quotes what needs no escape, and leaves the rest to the library.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			if err != nil { // a string has a JSON form
				quoted = []byte(`""`)
			}
			return appendASCII(b, quoted)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// appendASCII escapes what the library leaves in JSON as it is. The agent chooses names, and whoever prints the
// log is not to have a terminal act on them: on DEL, on control characters of eight bits, on a change of the
// direction of writing.
func appendASCII(b, quoted []byte) []byte {
	const hex = "0123456789abcdef"
	for _, r := range string(quoted) {
		if r < 0x7f {
			b = append(b, byte(r))
			continue
		}
		for _, u := range utf16.AppendRune(nil, r) {
			b = append(b, '\\', 'u', hex[u>>12], hex[u>>8&15], hex[u>>4&15], hex[u&15])
		}
	}
	return b
}
