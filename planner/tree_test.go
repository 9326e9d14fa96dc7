package planner

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

func TestMarkChanges(t *testing.T) {
	guard := func(path, id string) Mark { return Mark{path, MarkGuarded, id} }
	for name, c := range map[string]struct {
		before, after []Mark
		want          []string
		reason        string
	}{
		"same":         {[]Mark{guard(".git/config", "1")}, []Mark{guard(".git/config", "1")}, nil, "what was there stays"},
		"new":          {nil, []Mark{guard("sub/.git", "1")}, []string{`"sub/.git" is new`}, "a repository planted"},
		"changed":      {[]Mark{guard(".mcp.json", "1")}, []Mark{guard(".mcp.json", "2")}, []string{`".mcp.json" is changed`}, "another server"},
		"removed":      {[]Mark{guard(".claude/settings.json", "1")}, nil, []string{`".claude/settings.json" is removed`}, "its rules held the user's CLI back"},
		"set-id":       {nil, []Mark{{"x", MarkSetID, "1"}}, []string{`"x" is a set-id program`}, "whoever starts it"},
		"set-id gone":  {[]Mark{{"x", MarkSetID, "1"}}, nil, nil, "nothing is lost with it"},
		"another kind": {[]Mark{{"x", MarkFIFO, ""}}, []Mark{{"x", MarkSocket, ""}}, []string{`"x" is a socket`}, "the kind counts"},
		"escape":       {nil, []Mark{{"a\x1b[2J/.mcp.json", MarkGuarded, "1"}}, []string{`"a\x1b[2J/.mcp.json" is new`}, "an agent chooses the name"},
	} {
		var got []string
		for _, ch := range MarkChanges(c.before, c.after) {
			got = append(got, ch.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q (%s)", name, got, c.want, c.reason)
		}
	}
}

func TestMarkJSONIsPlainText(t *testing.T) {
	for path, want := range map[string]string{
		"sub/.git": `"sub/.git"`, "ä b": `"ä b"`, "a\x1b[2J": `"\"a\\x1b[2J\""`, "a\xff": `"\"a\\xff\""`, "a\nb": `"\"a\\nb\""`,
	} {
		b, err := json.Marshal(Mark{path, MarkFIFO, "1"})
		if want := fmt.Sprintf(`{"id":"1","kind":"fifo","path":%s}`, want); err != nil || string(b) != want {
			t.Errorf("%q: %s, %v, want %s", path, b, err, want)
		}
	}
}
