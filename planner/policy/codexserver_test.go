package policy

import (
	"encoding/json"
	"slices"
	"testing"
)

// serverOf is how a sealed command drives Codex.
func serverOf(t *testing.T, c Command) CodexServer {
	t.Helper()
	var s CodexServer
	argv := c.Argv()
	if len(argv) != 3 || argv[0] != Program || argv[1] != CodexCommand {
		t.Fatalf("argv %q", argv)
	}
	if err := json.Unmarshal([]byte(argv[2]), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNarrowedCodex(t *testing.T) {
	s := fullSpec()
	phaseOf(s, "fix").Tools = set([]string{"edit", "write"}, 57)
	phaseOf(s, "review").Tools = set([]string{"search"}, 57)
	for phase, want := range map[string][]string{"fix": {"apply_patch"}, "review": {"search"}} {
		c := mustSeal(t, s, "invocation.codex_"+phase)
		if !slices.Equal(c.Offered(), want) || len(serverOf(t, c).Tools) > 1 {
			t.Errorf("%s offers %v, want %v", phase, c.Offered(), want)
		}
	}
}
