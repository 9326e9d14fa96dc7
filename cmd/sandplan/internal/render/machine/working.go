package machine

import (
	"encoding/base64"
	"math"
	"time"
	"unicode/utf8"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/planner"
)

// hook is what a line says of an operation on one object.
type hook struct {
	Resource resource `json:"resource"`
	Action   string   `json:"action"`
	IDKey    string   `json:"id_key,omitempty"`
	IDValue  string   `json:"id_value,omitempty"`
	Elapsed  *int     `json:"elapsed_seconds,omitempty"`
}

func newHook(e applier.Event) hook {
	h := hook{Resource: newResource(e.Addr, e.Kind), Action: string(e.Op)}
	if e.Op == planner.OpRestore {
		h.Action = string(planner.ActionRestore)
	}
	if e.ID != "" {
		h.IDKey, h.IDValue = "id", e.ID
	}
	return h
}

// Event is the start or the end of an operation.
func (s *Stream) Event(e applier.Event) string {
	h := newHook(e)
	elapsed := whole(e.Elapsed)
	switch e.Type {
	case applier.EventStart:
		return s.line(levelInfo, "apply_start", s.human.Event(e), map[string]any{"hook": h})
	case applier.EventComplete:
		h.Elapsed = &elapsed
		return s.line(levelInfo, "apply_complete", s.human.Event(e), map[string]any{"hook": h})
	}
	h.Elapsed = &elapsed
	return s.line(levelError, "apply_errored", string(e.Addr)+": failed", map[string]any{"hook": h})
}

// Still says that an operation goes on.
func (s *Stream) Still(e applier.Event, d time.Duration) string {
	h := newHook(e)
	elapsed := whole(d)
	h.Elapsed = &elapsed
	return s.line(levelInfo, "apply_progress", s.human.Still(e, d), map[string]any{"hook": h})
}

func whole(d time.Duration) int { return int(math.Round(d.Seconds())) }

// mismatch is one thing because of which a gate refused.
type mismatch struct {
	Address string `json:"address"`
	Kind    string `json:"kind"`
	Path    string `json:"path,omitempty"`
	Attr    string `json:"attribute,omitempty"`
	Text    string `json:"text,omitempty"`
	Range   *Range `json:"range,omitempty"`
}

// Verdicts of a gate.
const (
	verdictPassed  = "passed"
	verdictRefused = "refused"
	verdictStopped = "stopped"
)

func (s *Stream) gate(level, message, verdict string, addr planner.Address, fs []planner.Finding) string {
	ms := []mismatch{}
	for _, f := range fs {
		m := mismatch{Address: string(f.Addr), Kind: string(f.Kind), Text: render.Clean(f.Text), Range: newRange(&f.Decl)}
		switch {
		case f.Mismatch != nil:
			m.Path, m.Attr = f.Mismatch.Field.Path, f.Mismatch.Field.Attr
			if r := newRange(f.Mismatch.Field.Decl); r != nil {
				m.Range = r
			}
		case f.Extra != nil:
			m.Path, m.Text = f.Extra.Path, render.Clean(f.Extra.Detail)
		}
		ms = append(ms, m)
	}
	gate := map[string]any{"verdict": verdict, "mismatches": ms}
	if addr != "" {
		gate["addr"] = string(addr)
	}
	return s.line(level, "gate", message, map[string]any{"gate": gate})
}

// Refusal is a run that the gate refused.
func (s *Stream) Refusal(addr planner.Address, fs []planner.Finding) string {
	return s.gate(levelError, "Run of "+string(addr)+" refused", verdictRefused, addr, fs)
}

// Stopped is a run that was stopped because something changed.
func (s *Stream) Stopped(addr planner.Address, fs []planner.Finding) string {
	return s.gate(levelError, string(addr)+" was stopped: something has changed while it ran", verdictStopped, addr, fs)
}

// RunEvent is a step of a run.
func (s *Stream) RunEvent(e launch.Event) string {
	text := s.human.RunEvent(e)
	if text == "" {
		return ""
	}
	run := map[string]any{"addr": string(e.Addr), "stage": string(e.Kind), "elapsed_seconds": e.Took.Seconds()}
	if e.ID != "" {
		run["id"] = e.ID
	}
	if e.Detail != "" {
		run["detail"] = render.Clean(e.Detail)
	}
	if e.Egress != nil {
		run["egress"] = map[string]any{"allowed": orEmpty(e.Egress.Allowed), "refused": orEmpty(e.Egress.Refused)}
	}
	out := s.line(levelInfo, "run_progress", text, map[string]any{"run": run})
	if e.Kind == launch.EventCompared {
		out += s.gate(levelInfo, string(e.Addr)+": nothing differs", verdictPassed, e.Addr, nil)
	}
	return out
}

func orEmpty[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

// Ended is the last line of a run.
func (s *Stream) Ended(addr planner.Address, r launch.Result) string {
	exit := map[string]any{"addr": string(addr), "code": r.Code, "by": r.By}
	level, message := levelInfo, string(addr)+" has ended"
	if r.Decision != nil {
		exit["reason"] = render.Clean(r.Decision.Error())
		level, message = levelError, "sandplan: "+render.Clean(r.Decision.Error())
		checks := []map[string]string{}
		for _, c := range r.Decision.Checks {
			checks = append(checks, map[string]string{"name": render.Clean(c.Name), "detail": render.Clean(c.Detail)})
		}
		if len(checks) > 0 {
			exit["failed_checks"] = checks
		}
	}
	if r.RecordDir != "" {
		exit["record"] = r.RecordDir
	}
	return s.line(level, "exit", message, map[string]any{"exit": exit})
}

// AgentOutput is a piece of what an agent prints: a line, or as much as came of a long one. Bytes that are
// no text come in base64, so that nothing is lost.
func (s *Stream) AgentOutput(addr planner.Address, stream string, b []byte) string {
	out := map[string]any{"addr": string(addr), "stream": stream}
	message := string(addr) + " printed something that is no text"
	if utf8.Valid(b) {
		out["output"] = string(b)
		message = render.Clean(string(b))
	} else {
		out["base64"] = base64.StdEncoding.EncodeToString(b)
	}
	return s.line(levelInfo, "agent_output", message, map[string]any{"agent": out})
}
