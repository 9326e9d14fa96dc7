package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Transcript reads what the CLI of a built-in kind prints while it works. Two things are in it that
// nothing else tells: which tools the CLI really gives to its model, and whether it succeeded, which its
// exit code does not always say.
//
// It is an io.Writer for the CLI's standard output. A nil Transcript is one of a command that sandplan
// does not know, and finds nothing.
type Transcript struct {
	command Command
	wrong   chan struct{} // closed with the first contradiction

	mu      sync.Mutex
	line    []byte
	skip    bool // the rest of a line that is too long
	begun   bool // the CLI has said what it is
	why     string
	outcome string // why its last word is no success
	ended   bool   // it has said a last word
}

// maxLine is far above any event but an answer, and answers are bounded by the output's limit.
const maxLine = 16 << 20

// Transcript is a new one for the command, or nil.
func (c Command) Transcript() *Transcript {
	if c.kind != KindClaude && c.kind != KindCodex {
		return nil
	}
	return &Transcript{command: c, wrong: make(chan struct{})}
}

// Write implements io.Writer. It never fails.
func (t *Transcript) Write(p []byte) (int, error) {
	if t == nil {
		return len(p), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	rest := p
	for {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			t.keep(rest)
			return len(p), nil
		}
		t.keep(rest[:i])
		if !t.skip {
			t.event(t.line)
		}
		t.line, t.skip = t.line[:0], false
		rest = rest[i+1:]
	}
}

func (t *Transcript) keep(p []byte) {
	if t.skip || len(t.line)+len(p) > maxLine {
		t.line, t.skip = t.line[:0], true
		return
	}
	t.line = append(t.line, p...)
}

// Wrong is closed when the CLI contradicts the sealed command; Why then says in what.
func (t *Transcript) Wrong() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.wrong
}

// Why says in what the CLI contradicts the sealed command; "" when it does not.
func (t *Transcript) Why() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

// Failure says what the CLI's last word is when that is no success; "" for success. Ask when the output
// has ended.
func (t *Transcript) Failure() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		return "it ended without saying how its task went"
	}
	return t.outcome
}

func (t *Transcript) contradict(format string, args ...any) {
	if t.why == "" {
		t.why = fmt.Sprintf(format, args...)
		close(t.wrong)
	}
}

// cliEvent is one line of either CLI, as far as it matters. Lines that are no JSON are nobody's event.
type cliEvent struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	// Of Claude's init event.
	Tools      []string `json:"tools"`
	Servers    []named  `json:"mcp_servers"`
	Commands   []string `json:"slash_commands"`
	Skills     []string `json:"skills"`
	Plugins    []plugin `json:"plugins"`
	Version    string   `json:"claude_code_version"`
	Permission string   `json:"permissionMode"`
	// Of Claude's result event.
	IsError  *bool           `json:"is_error"`
	Result   string          `json:"result"`
	Terminal string          `json:"terminal_reason"`
	Errors   json.RawMessage `json:"errors"`
	// Of Codex's turn.failed event.
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

type named struct {
	Name string `json:"name"`
}

// plugin is one that Claude Code has loaded; some are built in, whatever its flags say.
type plugin struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

func (t *Transcript) event(line []byte) {
	var e cliEvent
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch t.command.kind {
	case KindClaude:
		t.claudeEvent(e)
	case KindCodex:
		t.codexEvent(e)
	}
}

// claudeEvent: the CLI says what it is before its model says anything.
func (t *Transcript) claudeEvent(e cliEvent) {
	switch {
	case e.Type == "system" && e.Subtype == "init":
		t.claudeInit(e)
	case e.Type == "assistant" && !t.begun:
		t.contradict("Claude Code did not say which tools it gives its model")
	case e.Type == "result":
		if !t.begun && e.IsError != nil && !*e.IsError {
			t.contradict("Claude Code did not say which tools it gives its model")
		}
		t.ended, t.outcome = true, ""
		// An API error has the subtype "success", so that only is_error counts.
		if e.IsError == nil || *e.IsError {
			t.outcome = firstOf(e.Result, string(e.Errors), e.Terminal, e.Subtype)
		}
	}
}

// claudeInit holds what the CLI says of itself against the sealed command.
func (t *Transcript) claudeInit(e cliEvent) {
	t.begun = true
	got := slices.Clone(e.Tools)
	sort.Strings(got)
	if !slices.Equal(got, t.command.offered) {
		t.contradict("Claude Code gives its model the tools %s; phase.%s allows %s", words(got), t.command.phase, words(t.command.offered))
	}
	if len(e.Servers) > 0 {
		t.contradict("Claude Code has the MCP server %s; no phase allows one", plain(e.Servers[0].Name))
	}
	if extra := append(slices.Clone(e.Commands), e.Skills...); len(extra) > 0 {
		t.contradict("Claude Code has the slash commands and skills %s; no phase allows any", words(extra))
	}
	for _, p := range e.Plugins {
		if p.Path != "builtin" {
			t.contradict("Claude Code has the plugin %s; no phase allows one", plain(p.Name))
		}
	}
	if want := flagOf(t.command.argv, "--permission-mode"); e.Permission != want {
		t.contradict("Claude Code has the permission mode %q; phase.%s has %s", e.Permission, t.command.phase, want)
	}
	if e.Version != t.command.version {
		t.contradict("Claude Code says that it is version %q; the command was made for %s", e.Version, t.command.version)
	}
}

// flagOf is the argument after a flag.
func flagOf(argv []string, flag string) string {
	if i := slices.Index(argv, flag); i >= 0 && i+1 < len(argv) {
		return argv[i+1]
	}
	return ""
}

func (t *Transcript) codexEvent(e cliEvent) {
	switch e.Type {
	case "turn.completed":
		t.ended, t.outcome = true, ""
	case "turn.failed":
		t.ended, t.outcome = true, firstOf(e.Error.Message, "the turn failed")
	}
}

// firstOf is the first text that says something, cut to what fits into a message.
func firstOf(texts ...string) string {
	const enough = 300
	for _, s := range texts {
		if s = strings.TrimSpace(s); s != "" && s != "null" && s != "[]" {
			if len(s) > enough {
				s = s[:enough] + "…"
			}
			return plain(s)
		}
	}
	return "it says that it failed, and not why"
}

func words(list []string) string {
	if len(list) == 0 {
		return "(none)"
	}
	return plain(strings.Join(list, ", "))
}

// plain is a text of a vendor on one line of ours, without anything that a terminal would act on.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
}
