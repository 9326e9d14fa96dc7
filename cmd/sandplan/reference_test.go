package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestReference holds docs/commands.md to the program: each command with what -help says of it, which is every
// option it has. -update writes it anew.
func TestReference(t *testing.T) {
	const file = "../../docs/commands.md"
	ta := newTestApp(t)
	var doc strings.Builder
	doc.WriteString(`# Every command and option

What ` + "`-help`" + ` prints, for all of them; a test writes this page (` + "`go test ./cmd/sandplan -run TestReference -update`" + `)
and fails when it is out of date. What the commands are for stands in [cli.md](cli.md).
`)
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" {
			return
		}
		var out bytes.Buffer
		ta.stdout = stream{&out, 0}
		ta.help(c, nil)
		doc.WriteString("\n## " + c.CommandPath() + "\n\n```text\n" + strings.TrimSpace(out.String()) + "\n```\n")
		for _, sub := range c.Commands() {
			add(sub)
		}
	}
	add(ta.rootCommand())
	if *update {
		if err := os.WriteFile(file, []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) == doc.String() {
		return
	}
	want := strings.Split(doc.String(), "\n")
	for i, line := range strings.Split(string(have), "\n") {
		if i >= len(want) || line != want[i] {
			t.Fatalf("docs/commands.md, line %d, is out of date: %q; run go test ./cmd/sandplan -run TestReference -update", i+1, line)
		}
	}
	t.Fatal("docs/commands.md ends too early; run go test ./cmd/sandplan -run TestReference -update")
}
