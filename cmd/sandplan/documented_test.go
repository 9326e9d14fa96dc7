package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mattn/go-shellwords"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// documented is a command line that somebody reads and types.
type documented struct {
	at      string // the page or the command whose help it is, for messages
	args    []string
	mention bool // in a sentence, where arguments may be left out
}

var (
	inlineCode = regexp.MustCompile("`(sandplan [^`\n]+)`")
	typedLine  = regexp.MustCompile(`^(?:\$ )?(sandplan .*|echo .*\| sandplan .*)$`)
)

// documentedCommands are all that stand in the pages, in what the program prints about itself, and in examples.
func documentedCommands(t *testing.T) []documented {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, "../../README.md", "../../CONTRIBUTING.md")
	var out []documented
	for _, page := range pages {
		if filepath.Base(page) == "commands.md" {
			continue // what -help prints, which is read below
		}
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		fence := ""
		for line := range strings.Lines(string(b)) {
			line = strings.TrimRight(line, "\n")
			switch {
			case strings.HasPrefix(line, "```") && fence == "":
				fence = line
			case strings.HasPrefix(line, "```"):
				fence = ""
			case fence == "```" || strings.HasPrefix(fence, "```sh") || fence == "```console":
				if m := typedLine.FindStringSubmatch(line); m != nil {
					out = append(out, commandsIn(t, filepath.Base(page), m[1])...)
				}
			case fence == "":
				for _, m := range inlineCode.FindAllStringSubmatch(line, -1) {
					for _, d := range commandsIn(t, filepath.Base(page), m[1]) {
						d.mention = true
						out = append(out, d)
					}
				}
			}
		}
	}
	var helped func(c *cobra.Command)
	helped = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			out = append(out, commandsIn(t, "-help of "+c.CommandPath(), strings.TrimSpace(line))...)
		}
		for _, sub := range c.Commands() {
			helped(sub)
		}
	}
	helped(newTestApp(t).rootCommand())
	return out
}

// commandsIn are sandplan's own commands of a line for a shell.
func commandsIn(t *testing.T, at, line string) []documented {
	t.Helper()
	line, _, _ = strings.Cut(line, " #")
	line = strings.NewReplacer("source <(", ";", ")", "", "&&", ";", "||", ";", "|", ";").Replace(line)
	var out []documented
	for _, part := range strings.Split(line, ";") {
		part = strings.TrimSpace(part)
		// What it prints of itself is a sentence ("sandplan refused HOST: why."), and "sandplan {" is a block.
		if !strings.HasPrefix(part, "sandplan ") || strings.Contains(part, ": ") || strings.HasSuffix(part, ".") || strings.HasSuffix(part, "{") ||
			strings.Contains(part, "…") || strings.Contains(part, " COMMAND") {
			continue
		}
		part, _, _ = strings.Cut(part, " >")
		words, err := shellwords.Parse(strings.TrimSuffix(part, " &"))
		if err != nil {
			t.Errorf("%s: %s: %v", at, part, err)
			continue
		}
		out = append(out, documented{at: at, args: words[1:]})
	}
	return out
}

// TestDocumentedCommands: whatever command line stands somewhere is one that the program takes.
func TestDocumentedCommands(t *testing.T) {
	all := documentedCommands(t)
	if len(all) < 60 {
		t.Fatalf("found %d command lines", len(all))
	}
	used := map[string]bool{}
	for _, d := range all {
		_, args, err := takeChdir(d.args)
		if err != nil {
			t.Errorf("%s: sandplan %s: %v", d.at, strings.Join(d.args, " "), err)
			continue
		}
		root := newTestApp(t).rootCommand()
		cmd, rest, err := root.Find(doubleDashes(args))
		if err == nil && cmd == root {
			err = fmt.Errorf("there is no such command")
		}
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		var unfinished *pflag.ValueRequiredError
		if d.mention && errors.As(err, &unfinished) {
			err = nil
		}
		if err == nil && !d.mention {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err != nil {
			t.Errorf("%s: sandplan %s: %v", d.at, strings.Join(d.args, " "), err)
		}
		for c := cmd; c != nil; c = c.Parent() {
			used[c.Name()] = true
		}
	}
	for _, c := range newTestApp(t).rootCommand().Commands() {
		if !c.Hidden && c.Name() != "help" && !used[c.Name()] {
			t.Errorf("no page and no help shows how to use %s", c.Name())
		}
	}
}
