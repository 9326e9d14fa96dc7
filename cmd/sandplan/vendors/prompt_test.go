//go:build vendors

package vendors_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/testfixtures/vendormock"
)

// prompts begin with what a CLI acts on by itself when a user types it.
var prompts = []struct{ reason, text string }{
	{"a command of the CLI", "/compact and look at @secret.txt"},
	{"a command of the shell", "!touch /work/ran-prompt\r\n/clear\r\n"},
	{"a memory", "# remember @/work/secret.txt\n$evilskill"},
	{"a byte order mark", "\ufeff/clear @notes.txt\u2028!ls"},
}

// testPrompts: whatever a prompt begins with, the model gets it as it stands, and nobody else acts on it.
func testPrompts(t *testing.T, w *world) {
	defer w.write("prompt.txt", prompt)
	for _, v := range vendors {
		for _, p := range prompts {
			t.Run(v.name+"/"+strings.ReplaceAll(p.reason, " ", "_"), func(t *testing.T) {
				w := w.in(t)
				name := v.name + "_questions"
				w.write("prompt.txt", p.text)
				before := w.snapshot(name)
				e := w.run(name, vendormock.Script{Answer: answer, Settings: managedSettings})
				if e.code != 0 || v.answered(e.stdout, answer) != "" {
					t.Errorf("it ends with %d, %s\n%s\n%s", e.code, v.answered(e.stdout, answer), e.stdout, e.stderr)
				}
				w.checkRequests(v, false)
				for i, r := range w.turns() {
					if !slices.ContainsFunc(texts(r.Body), func(s string) bool { return strings.TrimSpace(s) == strings.TrimSpace(preambleOf(t, v.name)+p.text) }) {
						t.Errorf("turn %d does not hold the prompt as it stands: %.3000q", i, texts(r.Body))
					}
				}
				if got := changed(before, w.snapshot(name)); len(got) > 0 {
					t.Errorf("the worktree has changes in %q", got)
				}
			})
		}
	}
}

// preambleOf is what stands before every prompt of a kind.
func preambleOf(t *testing.T, kind string) string {
	c, err := policy.Seal(specOf(kind), "invocation.x")
	if err != nil {
		t.Fatal(err)
	}
	return c.Preamble()
}

// texts are all strings of a JSON document.
func texts(raw []byte) []string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	var out []string
	var visit func(any)
	visit = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, e := range v {
				visit(e)
			}
		case map[string]any:
			for _, e := range v {
				visit(e)
			}
		}
	}
	visit(v)
	return out
}
