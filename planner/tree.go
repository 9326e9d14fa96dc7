package planner

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Tree is what one look over a worktree found.
type Tree struct {
	// SHA256 is over the names, modes and contents of everything but the repository's own .git, whose
	// objects and references change whenever the user commits.
	SHA256  string `json:"sha256"`
	Entries int    `json:"entries"`
	Bytes   int64  `json:"bytes"`
	// Unread is how many files the hash tells by size and times, not by content: too large, or not
	// readable.
	Unread int    `json:"unread"`
	Marks  []Mark `json:"marks"`
}

// MarkKind is why something in a worktree is worth telling.
type MarkKind string

// The kinds of marks.
const (
	MarkSocket MarkKind = "socket"
	MarkFIFO   MarkKind = "fifo"
	MarkDevice MarkKind = "device"
	// MarkSetID is a program that runs as its owner, whoever starts it.
	MarkSetID MarkKind = "set-id"
	// MarkGuarded is what git, or an agent's CLI, would act on when the user works in the directory.
	MarkGuarded MarkKind = "guarded"
)

// Special reports whether the thing itself is a way to a process on the host, whatever is in it.
func (k MarkKind) Special() bool { return k == MarkSocket || k == MarkFIFO || k == MarkDevice }

func (k MarkKind) String() string {
	switch k {
	case MarkSocket:
		return "a socket"
	case MarkFIFO:
		return "a FIFO"
	case MarkDevice:
		return "a device"
	case MarkSetID:
		return "a set-id program"
	}
	return "a guarded name"
}

// Mark is something in a worktree that is worth telling.
type Mark struct {
	// Path is relative to the worktree, and may hold any byte but NUL: see Quoted.
	Path string
	Kind MarkKind
	// ID changes when the content does.
	ID string
}

// Quoted is the path as it may be printed: an agent chose it.
func (m Mark) Quoted() string { return strconv.Quote(m.Path) }

// MarshalJSON quotes a path that is no plain text.
func (m Mark) MarshalJSON() ([]byte, error) {
	path := m.Path
	if !utf8.ValidString(path) || strings.ContainsFunc(path, func(r rune) bool { return !strconv.IsPrint(r) }) {
		path = m.Quoted()
	}
	return json.Marshal(map[string]string{"path": path, "kind": string(m.Kind), "id": m.ID})
}

// MarkChange is what became of a mark between two looks.
type MarkChange struct {
	Mark
	What string // new, changed, removed
}

func (c MarkChange) String() string {
	switch {
	case c.Kind == MarkGuarded:
		return fmt.Sprintf("%s is %s", c.Quoted(), c.What)
	case c.What == "removed":
		return fmt.Sprintf("%s was %s and is gone", c.Quoted(), c.Kind)
	}
	return fmt.Sprintf("%s is %s", c.Quoted(), c.Kind)
}

// MarkChanges compares two looks over a worktree, both sorted. Only of guarded names is the removal
// told: they may have held back what the user's tools do.
func MarkChanges(before, after []Mark) []MarkChange {
	type key struct {
		path string
		kind MarkKind
	}
	was, is := map[key]string{}, map[key]bool{}
	for _, m := range before {
		was[key{m.Path, m.Kind}] = m.ID
	}
	var out []MarkChange
	for _, m := range after {
		is[key{m.Path, m.Kind}] = true
		switch id, ok := was[key{m.Path, m.Kind}]; {
		case !ok:
			out = append(out, MarkChange{m, "new"})
		case id != m.ID:
			out = append(out, MarkChange{m, "changed"})
		}
	}
	for _, m := range before {
		if m.Kind == MarkGuarded && !is[key{m.Path, m.Kind}] {
			out = append(out, MarkChange{m, "removed"})
		}
	}
	return out
}
