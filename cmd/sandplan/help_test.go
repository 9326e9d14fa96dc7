package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelpFitsTheTerminal: no line is broken by the terminal but usage and examples, which are to be copied, and
// nothing is lost on the way to a narrow one.
func TestHelpFitsTheTerminal(t *testing.T) {
	ta := newTestApp(t)
	help := func(c *cobra.Command, columns int) string {
		ta.out.Reset()
		ta.stdout.columns = columns
		ta.help(c, nil)
		return ta.out.String()
	}
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	var all []*cobra.Command
	var collect func(c *cobra.Command)
	collect = func(c *cobra.Command) {
		all = append(all, c)
		for _, sub := range c.Commands() {
			collect(sub)
		}
	}
	collect(ta.rootCommand())
	for _, c := range all {
		page := help(c, 0)
		for _, columns := range []int{40, 60, 80, 200} {
			text := help(c, columns)
			if words(text) != words(page) {
				t.Errorf("%s -help in %d columns has other words:\n%s", c.Name(), columns, text)
			}
			prose, _, _ := strings.Cut(text, "\nExample:\n")
			for _, line := range strings.Split(prose, "\n") {
				if len(line) > columns && len(strings.Fields(line)) > 1 && !strings.HasPrefix(line, "Usage: ") && !strings.Contains(line, " > ") {
					t.Errorf("%s -help: a line of %d in %d columns: %s", c.Name(), len(line), columns, line)
				}
			}
		}
	}
	if len(all) < 20 {
		t.Fatalf("looked at %d commands", len(all))
	}
}
