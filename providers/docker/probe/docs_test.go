package probe

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAttemptsAreDocumented holds docs/verify.md to the list, row by row and in its order.
func TestAttemptsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../../docs/verify.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	at := 0
	for _, a := range Attempts() {
		row := fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", a.ID, a.What, a.Where, a.Control, a.Source)
		i := strings.Index(doc[at:], row)
		if i < 0 {
			t.Errorf("docs/verify.md has no row, or not in its place: %s", row)
			continue
		}
		at += i
		if regexp.MustCompile(`^B\d+$`).MatchString(a.Source) && !strings.Contains(doc, "\n| "+a.Source+" | ") {
			t.Errorf("%s comes from %s, which docs/verify.md does not explain", a.ID, a.Source)
		}
	}
	if n := strings.Count(doc, "\n| `"); n != len(Attempts()) {
		t.Errorf("docs/verify.md has %d attempts, the program %d", n, len(Attempts()))
	}
}

func TestAttemptsAreComplete(t *testing.T) {
	id := regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	seen := map[string]bool{}
	for i, a := range Attempts() {
		if !id.MatchString(a.ID) || seen[a.ID] || a.What == "" || a.Where == "" || a.Control == "" || a.Source == "" {
			t.Errorf("attempt %d is not complete, or is there twice: %+v", i, a)
		}
		if Number(a.ID) != i+1 {
			t.Errorf("%s has the number %d in the list and %d in tokens", a.ID, i+1, Number(a.ID))
		}
		seen[a.ID] = true
	}
	if len(seen) > 255 {
		t.Error("a token has room for 255 attempts, and so has the last byte of an address")
	}
	if Number("no such thing") != 0 {
		t.Error("what is no attempt has a number")
	}
	last := Attempts()[len(Attempts())-4:]
	if got := []string{last[0].ID, last[1].ID, last[2].ID, last[3].ID}; !slices.Equal(got, []string{"tmpfs-size", "pids", "memory", "kill-guard"}) {
		t.Errorf("the last ones are %q: what may be the end of the probe comes last", got)
	}
}
