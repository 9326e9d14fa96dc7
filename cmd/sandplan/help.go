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
	var b strings.Builder
	if cmd.HasParent() {
		commandHelp(&b, cmd)
	} else {
		rootHelp(&b, cmd)
	}
	io.WriteString(a.stdout, b.String())
}

func rootHelp(b *strings.Builder, root *cobra.Command) {
	b.WriteString("Usage: sandplan [-chdir=DIR] COMMAND [options]\n\n" + root.Short + ".\n\nMain commands:\n")
	listed := map[string]bool{}
	line := func(c *cobra.Command) {
		fmt.Fprintf(b, "  %-14s%s\n", c.Name(), c.Short)
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
	option(b, "chdir=DIR", "the directory to work in; before the command")
	flags(b, root.PersistentFlags())
	option(b, "help", "what a command does and which options it has")
}

func commandHelp(b *strings.Builder, cmd *cobra.Command) {
	use := strings.TrimSuffix(cmd.CommandPath(), cmd.Name()) + cmd.Use
	fmt.Fprintf(b, "Usage: %s\n\n", use)
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	paragraphs(b, long)
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, c := range cmd.Commands() {
			fmt.Fprintf(b, "  %-14s%s\n", c.Name(), c.Short)
		}
	}
	var own strings.Builder
	flags(&own, cmd.LocalNonPersistentFlags())
	if own.Len() > 0 {
		b.WriteString("\nOptions:\n" + own.String())
	}
	b.WriteString("\nOptions of every command: -chdir=DIR, -config=PATH, -workspace=NAME, -no-color, -help.\n")
	if cmd.Example != "" {
		b.WriteString("\nExample:\n")
		for _, l := range strings.Split(strings.TrimSpace(cmd.Example), "\n") {
			b.WriteString("  " + strings.TrimSpace(l) + "\n")
		}
	}
}

// paragraphs prints text in lines of at most 80 columns; an empty line begins a paragraph.
func paragraphs(b *strings.Builder, text string) {
	for i, p := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		column := 0
		for _, w := range strings.Fields(p) {
			switch {
			case column == 0:
			case column+1+len(w) > 80:
				b.WriteString("\n")
				column = 0
			default:
				b.WriteString(" ")
				column++
			}
			b.WriteString(w)
			column += len(w)
		}
		b.WriteString("\n")
	}
}

func flags(b *strings.Builder, fs *pflag.FlagSet) {
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
		option(b, name, usage)
	})
}

func option(b *strings.Builder, name, text string) {
	const column = 26
	if lead := "  -" + name; len(lead) < column {
		fmt.Fprintf(b, "%-*s%s\n", column, lead, text)
	} else {
		fmt.Fprintf(b, "%s\n%*s%s\n", lead, column, "", text)
	}
}
