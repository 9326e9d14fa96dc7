package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/planner"
)

// UIVersion is the version of the lines. A minor number more adds, a major number more breaks.
const UIVersion = "1.0"

// Levels of lines.
const (
	levelInfo  = "info"
	levelWarn  = "warn"
	levelError = "error"
)

// Stream writes one JSON object per line. Its methods return the lines and print nothing.
type Stream struct {
	// Version is sandplan's.
	Version string
	// Now stamps the lines. It is the only clock of all rendering.
	Now func() time.Time
	// human words the message of each line.
	human *render.Renderer
}

// New is a stream whose messages are plain text.
func New(version string, now func() time.Time) *Stream {
	return &Stream{Version: version, Now: now, human: &render.Renderer{}}
}

// SetSources makes the files known that ranges point into.
func (s *Stream) SetSources(files map[string][]byte) { s.human.SetSources(files) }

// line is one object of the stream; payload holds what its type adds.
func (s *Stream) line(level, kind, message string, payload map[string]any) string {
	l := map[string]any{
		"@level": level, "@message": flat(message), "@module": "sandplan.ui",
		"@timestamp": s.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00"), "type": kind,
	}
	for k, v := range payload {
		l[k] = v
	}
	return encode(l) + "\n"
}

// encode is JSON on one line. Keys come sorted, and the characters of HTML stay as they are.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		// Every type that is encoded here is one of this package; only a mistake in it can fail.
		panic(fmt.Sprintf("a line without a JSON form: %v", err))
	}
	return strings.TrimRight(b.String(), "\n")
}

// flat makes the text that people read one line, without the layout.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// Hello is the first line of every stream.
func (s *Stream) Hello() string {
	return s.line(levelInfo, "version", "sandplan "+s.Version, map[string]any{"sandplan": s.Version, "ui": UIVersion})
}

func (s *Stream) log(level, message string) string {
	if message = flat(message); message == "" {
		return ""
	}
	return s.line(level, "log", message, nil)
}

// Problems are the errors of a command.
func (s *Stream) Problems(errs, _ hcl.Diagnostics) string { return s.Diagnostics(errs) }

// Diagnostics are one line each.
func (s *Stream) Diagnostics(diags hcl.Diagnostics) string {
	var b strings.Builder
	for _, d := range diags {
		level, head := levelError, "Error: "
		if d.Severity == hcl.DiagWarning {
			level, head = levelWarn, "Warning: "
		}
		b.WriteString(s.line(level, "diagnostic", head+render.Clean(d.Summary), map[string]any{
			"diagnostic": NewDiagnostic(d, s.human.Sources),
		}))
	}
	return b.String()
}

// Warnings are the same in full and in short: a program picks what it wants.
func (s *Stream) Warnings(diags hcl.Diagnostics, _ bool) string { return s.Diagnostics(diags) }

// Usage is a mistake on the command line.
func (s *Stream) Usage(message, command string) string {
	return s.Diagnostics(hcl.Diagnostics{{Severity: hcl.DiagError, Summary: message,
		Detail: "For the options and an example: " + command + " -help"}})
}

// Gap is nothing: empty lines are for people.
func (s *Stream) Gap() string { return "" }

// Waiting is said when somebody else holds a lock.
func (s *Stream) Waiting(what string, i planner.LockInfo) string {
	return s.line(levelInfo, "state_lock_acquire", s.human.Waiting(what, i), nil)
}

// Interrupted is said at the first and at the second Ctrl-C.
func (s *Stream) Interrupted(n int) string { return s.log(levelWarn, s.human.Interrupted(n)) }

// RunInterrupted is the same in a run.
func (s *Stream) RunInterrupted(n int) string { return s.log(levelWarn, s.human.RunInterrupted(n)) }

// Cancelled is said when the answer was not yes.
func (s *Stream) Cancelled(pl *planner.Plan) string { return s.log(levelError, s.human.Cancelled(pl)) }
