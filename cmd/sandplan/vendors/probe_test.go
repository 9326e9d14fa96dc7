//go:build vendors

package vendors_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// probesVariable asks for the runs that go to the real vendors, with real credentials from the environment.
const probesVariable = "SANDPLAN_RUN_AUTH_PROBES"

// probes are the ways to authenticate, each with the variable that its secret is taken from.
var probes = []struct{ vendor, image, credential, variable string }{
	{"claude", claudeImageVariable, "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
	{"claude", claudeImageVariable, "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"},
	{"codex", codexImageVariable, "OPENAI_API_KEY", "OPENAI_API_KEY"},
	{"codex", codexImageVariable, "auth.json", "CODEX_AUTH_JSON"},
}

// TestAuthenticated asks the real vendors, with the program as it is released. An answer counts only when
// it holds what the model can have read in the worktree alone.
func TestAuthenticated(t *testing.T) {
	if os.Getenv(probesVariable) != "1" {
		t.Skipf("not run: set %s=1, and some of CLAUDE_CODE_OAUTH_TOKEN, ANTHROPIC_API_KEY, OPENAI_API_KEY, CODEX_AUTH_JSON", probesVariable)
	}
	if os.Getenv(claudeImageVariable) == "" || os.Getenv(codexImageVariable) == "" {
		t.Fatal("the agent images are not made; run this as `make test-vendors`")
	}
	dockertest.Socket(t)
	for _, p := range probes {
		t.Run(p.vendor+"/"+p.credential, func(t *testing.T) {
			if os.Getenv(p.variable) == "" {
				t.Skipf("not run: %s is not set", p.variable)
			}
			w := &world{t: t, dir: t.TempDir(), data: t.TempDir(), env: os.Environ()}
			w.probe(p.vendor, os.Getenv(p.image), p.credential, p.variable)
		})
	}
}

func (w *world) probe(vendor, image, credential, variable string) {
	w.binary = filepath.Join(w.data, "sandplan")
	build(w.t, w.binary, "..")
	w.env = append(w.env, "SANDPLAN_DATA_DIR="+w.data)
	w.write("sandplan.hcl", fmt.Sprintf(`
sandplan {
  project = "vendors-probe"
}

provider "docker" {
  subnet_pool = %q
}

vendor %q {
  image = %q
  credential %q {
    source_env = %q
  }
}
`, pool, vendor, image, credential, variable)+invocation("planning", vendor, "planning")+invocation("fix", vendor, "fix"))
	secret := make([]byte, 8)
	_, _ = rand.Read(secret)
	word := "word-" + hex.EncodeToString(secret)
	for _, name := range []string{"planning", "fix"} {
		w.plainWorktree(name, map[string]string{"notes.txt": word + "\n"})
	}
	w.t.Cleanup(func() { w.sandplan(time.Minute, "destroy", "-auto-approve") })
	w.must("init")
	w.must("apply", "-auto-approve")
	for name, prompt := range map[string]string{
		"planning": "Read notes.txt and answer with its one word, and nothing else.",
		"fix":      "Create the file copy.txt with exactly the content of notes.txt. Then answer with the word that it holds.",
	} {
		w.write("prompt.txt", prompt)
		e := w.sandplan(3*time.Minute, "run", "-prompt="+filepath.Join(w.dir, "prompt.txt"), "invocation."+name)
		if e.code != 0 || !strings.Contains(e.stdout, word) {
			w.t.Errorf("%s ends with %d, without the word %s\n%s\n%s", name, e.code, word, e.stdout, e.stderr)
		}
	}
	if got, err := os.ReadFile(filepath.Join(w.worktree("fix"), "copy.txt")); err != nil || strings.TrimSpace(string(got)) != word {
		w.t.Errorf("fix was to write %s: %q, %v", word, got, err)
	}
}
