package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// mainCommands are what most people need, in the order in which they need them.
var mainCommands = []string{"init", "validate", "plan", "apply", "run", "drift", "destroy"}

// help prints what fits a screen: usage, what the command does, its options, an example.
func (a *app) help(cmd *cobra.Command, _ []string) {
	b := &helpText{columns: a.stdout.columns}
	if cmd.HasParent() {
		commandHelp(b, cmd)
	} else {
		rootHelp(b, cmd)
	}
	io.WriteString(a.stdout, b.String())
}

// helpText is help for a terminal of so many columns; 0 is a page, or whatever else has lines of any length.
type helpText struct {
	strings.Builder
	columns int
}

func rootHelp(b *helpText, root *cobra.Command) {
	b.WriteString("Usage: sandplan [-chdir=DIR] COMMAND [options]\n\n")
	b.paragraphs(root.Short + ".")
	b.WriteString("\nMain commands:\n")
	listed := map[string]bool{}
	line := func(c *cobra.Command) {
		b.entry("  "+c.Name(), c.Short, commandColumn)
		listed[c.Name()] = true
	}
	for _, name := range mainCommands {
		if c, _, err := root.Find([]string{name}); err == nil && c != root {
			line(c)
		}
	}
	b.WriteString("\nOther commands:\n")
	for _, c := range root.Commands() {
		if !listed[c.Name()] && !c.Hidden && c.Name() != "help" {
			line(c)
		}
	}
	b.WriteString("\nOptions of every command:\n")
	b.entry("  -chdir=DIR", "the directory to work in; before the command", optionColumn)
	b.flags(root.PersistentFlags())
	b.entry("  -help", "what a command does and which options it has", optionColumn)
}

func commandHelp(b *helpText, cmd *cobra.Command) {
	use := strings.TrimSuffix(cmd.CommandPath(), cmd.Name()) + cmd.Use
	b.WriteString("Usage: " + use + "\n\n")
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	b.paragraphs(long)
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, c := range cmd.Commands() {
			b.entry("  "+c.Name(), c.Short, commandColumn)
		}
	}
	own := helpText{columns: b.columns}
	own.flags(cmd.LocalNonPersistentFlags())
	if own.Len() > 0 {
		b.WriteString("\nOptions:\n" + own.String())
	}
	const every = "Options of every command: -chdir=DIR, -config=PATH, -workspace=NAME, -no-color, -help."
	b.WriteString("\n" + strings.Join(fold(every, b.columns), "\n") + "\n")
	if cmd.Example != "" {
		b.WriteString("\nExample:\n")
		for _, l := range strings.Split(strings.TrimSpace(cmd.Example), "\n") {
			b.WriteString("  " + strings.TrimSpace(l) + "\n")
		}
	}
}

// paragraphs prints text in lines of at most 80 columns; an empty line begins a paragraph.
func (b *helpText) paragraphs(text string) {
	width := 80
	if b.columns > 0 {
		width = min(width, b.columns)
	}
	for i, p := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(strings.Join(fold(p, width), "\n") + "\n")
	}
}

// fold breaks text between words into lines of at most width columns; 0 is no limit.
func fold(text string, width int) []string {
	var lines []string
	line := ""
	for _, w := range strings.Fields(text) {
		if line != "" && width > 0 && len(line)+1+len(w) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+w, " ")
	}
	return append(lines, line)
}

func (b *helpText) flags(fs *pflag.FlagSet) {
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := f.Name
		v, usage := pflag.UnquoteUsage(f)
		switch {
		case f.Value.Type() == "bool" && f.DefValue == "true":
			name += "=false" // the only way in which such a flag is ever written
		case v != "":
			name += "=" + strings.ToUpper(v)
		}
		b.entry("  -"+name, usage, optionColumn)
	})
}

// The columns where the texts of options and of commands begin.
const (
	optionColumn  = 26
	commandColumn = 16
)

// entry prints a name with a text beside it, or below where there is no room.
func (b *helpText) entry(name, text string, column int) {
	const room, step = 24, 6
	if b.columns > 0 && b.columns < column+room {
		b.WriteString(name + "\n")
		name, column = "", min(step, max(0, b.columns-room))
	}
	if len(name) >= column && name != "" {
		b.WriteString(name + "\n")
		name = ""
	}
	width := 0
	if b.columns > 0 {
		width = max(b.columns-column, 1)
	}
	for _, line := range fold(text, width) {
		fmt.Fprintf(b, "%-*s%s\n", column, name, line)
		name = ""
	}
}
