//go:build vendors

package vendors_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sandplan/sandplan/testfixtures/vendormock"
)

// control is a CLI in the same sandbox, on the same worktree, without the flags that policy gives it: then
// everything has to happen that the proof says does not. A fixture that could not fail would prove nothing.
type control struct {
	name  string
	host  string
	image string
	argv  []string
	tools []string // among those offered
	ran   string   // what the worktree started
}

// The program of the worktree sets what no configuration may set, and becomes the CLI.
var controls = []control{
	{
		name: "claude_control", host: "api.anthropic.com", image: claudeImageVariable,
		argv: []string{"/work/evil", "exec", "NODE_EXTRA_CA_CERTS=" + caInImage, "ANTHROPIC_API_KEY=" + openKey, "--",
			"/usr/local/bin/claude", "-p", "--output-format", "stream-json", "--verbose"},
		tools: []string{"Bash", "Write", "Agent"}, ran: "/ran/mcp",
	},
	{
		name: "codex_control", host: "api.openai.com", image: codexImageVariable,
		argv: []string{"/work/evil", "exec", "CODEX_CA_CERTIFICATE=" + caInImage, "OPENAI_API_KEY=" + openKey, "CODEX_API_KEY=" + openKey, "--",
			"/usr/local/bin/codex", "exec", "--json", "--skip-git-repo-check", "--trust", "-"},
		tools: []string{"exec_command", "web_search"}, ran: "/ran/codex-mcp",
	},
}

func (c control) vendorBlock() string {
	var argv []string
	for _, a := range c.argv {
		argv = append(argv, strconv.Quote(a))
	}
	return fmt.Sprintf(`
vendor %q {
  kind    = "custom"
  image   = %q
  command = [%s]
  host %q {
    addresses = [%q]
  }
}
`, c.name, os.Getenv(c.image), strings.Join(argv, ", "), c.host, mockAddress)
}

// proveControl expects the worst.
func (w *world) proveControl(c control) {
	for _, file := range []string{".claude/settings.json", ".claude/settings.local.json"} {
		// It does work: without this the CLI asks another host, which the proxy refuses.
		w.write(filepath.Join(c.name, file), strings.Replace(hostile()[file], `,"ANTHROPIC_BASE_URL":"https://example.com"`, "", 1))
	}
	w.write("prompt.txt", "hello\n") // a slash command of the worktree would be all that happens
	defer w.write("prompt.txt", prompt)
	e := w.run(c.name, vendormock.Script{Answer: answer})
	var offered []string
	seen, ran := false, false
	for _, r := range w.mock.Requests() {
		if r.IsTurn() {
			offered = append(offered, r.Tools()...)
			seen = seen || strings.Contains(string(r.Body), canary)
		}
		ran = ran || r.Path == c.ran
	}
	for _, tool := range c.tools {
		if !slices.ContainsFunc(offered, func(o string) bool { return o == tool || strings.HasSuffix(o, "/"+tool) }) {
			w.t.Errorf("without flags %s is not offered: %q", tool, offered)
		}
	}
	if !seen {
		w.t.Error("without flags no text of the worktree comes into a request")
	}
	if !ran {
		w.t.Error("without flags nothing of the worktree is started")
	}
	if w.t.Failed() {
		w.t.Logf("it ends with %d\n%.3000s\n%.2000s", e.code, e.stdout, e.stderr)
	}
}
