package codex

import (
	"fmt"
	"strings"
	"testing"
)

// patchPlays are what Codex says of patches, with $DIR for the worktree and @id for a request's answer to
// be waited for.
func patchPlays() map[string][]string {
	item := func(method, id, status, changes string) string {
		return fmt.Sprintf(`{"method":"item/%s","params":{"item":{"type":"fileChange","id":%q,"status":%q,"changes":[%s]}}}`, method, id, status, changes)
	}
	ask := func(id string, more ...string) string {
		return fmt.Sprintf(`{"id":7,"method":"item/fileChange/requestApproval","params":{"itemId":%q%s}}`, id, strings.Join(more, ""))
	}
	change := func(path string) string { return fmt.Sprintf(`{"path":%q,"kind":{"type":"add"},"diff":"x"}`, path) }
	move := func(from, to string) string {
		return fmt.Sprintf(`{"path":%q,"kind":{"type":"update","move_path":%q},"diff":"x"}`, from, to)
	}
	started := func(id, changes string) string { return item("started", id, "inProgress", changes) }
	done := func(id, changes string) string { return item("completed", id, "completed", changes) }
	inside, outside := change("$DIR/new.txt"), change("/tmp/planted")
	return map[string][]string{
		"patch inside":         {started("a", inside), ask("a"), done("a", inside)},
		"patch outside":        {started("a", outside), ask("a")},
		"patch of both":        {started("a", inside+","+outside), ask("a")},
		"patch moves out":      {started("a", move("$DIR/a.txt", "/tmp/planted")), ask("a")},
		"patch moves in":       {started("a", move("/run/sandplan/prompt", "$DIR/new.txt")), ask("a")},
		"patch of hooks":       {started("a", change("$DIR/.git/hooks/x")), ask("a")},
		"patch of nothing":     {started("a", ""), ask("a")},
		"patch unknown":        {started("a", inside), ask("b")},
		"patch twice":          {started("a", outside), started("a", inside), ask("a")},
		"patch with a root":    {started("a", inside), ask("a", `,"grantRoot":"/"`)},
		"patch without asking": {started("a", inside), done("a", inside)},
		"patch once more":      {started("a", inside), ask("a"), done("a", inside), started("a", inside), done("a", inside)},
		"patch grows":          {started("a", inside), ask("a"), started("a", outside), done("a", inside+","+outside)},
		"patch of more":        {started("a", inside), ask("a"), done("a", inside+","+change("$DIR/other"))},
	}
}

func TestPatches(t *testing.T) {
	for _, c := range []struct {
		play, reason, answer, says string
		code                       int
	}{
		{"patch inside", "the worktree is there to be changed", "accept", `"type":"turn.completed"`, 0},
		{"patch outside", "the user's own may be elsewhere", "decline", "outside", 0},
		{"patch of both", "one path spoils all", "decline", "/tmp/planted", 0},
		{"patch moves out", "where it ends counts", "decline", "/tmp/planted", 0},
		{"patch moves in", "where it comes from counts", "decline", "/run/sandplan/prompt", 0},
		{"patch of hooks", "git would run them", "decline", "protected", 0},
		{"patch of nothing", "nothing to judge by", "decline", "does not say", 0},
		{"patch unknown", "nothing to judge by", "decline", "does not say", 0},
		{"patch twice", "an identifier that the model uses again", "decline", "/tmp/planted", 0},
		{"patch with a root", "leave for more than this patch", "decline", "leave to write", 0},
		{"patch without asking", "the agreement is not kept", "", "without asking", 1},
		{"patch once more", "an agreement is for one patch, and the identifier is the model's", "accept", "without asking", 1},
		{"patch grows", "what was said after the agreement is no part of it", "accept", "asked for was", 1},
		{"patch of more", "the agreement is not kept", "accept", "asked for was", 1},
	} {
		t.Run(c.play, func(t *testing.T) {
			t.Setenv(playVariable, c.play)
			stdout, stderr, code := drivenBy(t, "read_file")
			if code != c.code || !strings.Contains(stdout, c.says) {
				t.Errorf("%s: exit code %d, want %d and %q in\n%s\n%s", c.reason, code, c.code, c.says, stdout, stderr)
			}
			got := ""
			for _, decision := range []string{"accept", "decline", "acceptForSession", "cancel"} {
				if strings.Contains(stdout, `decision\":\"`+decision+`\"`) {
					got += decision
				}
			}
			if got != c.answer {
				t.Errorf("%s: the answer is %q, want %q\n%s", c.reason, got, c.answer, stdout)
			}
		})
	}
}

// TestPatchInAReadingPhase: such a phase agrees to nothing.
func TestPatchInAReadingPhase(t *testing.T) {
	t.Setenv(playVariable, "patch inside")
	stdout, _, code := drivenWith(t, "never", "read-only", "read_file")
	if code != 1 || !strings.Contains(stdout, "this phase changes nothing") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}
