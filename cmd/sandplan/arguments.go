package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// takeChdir takes -chdir=DIR off the front of the command line. It is an option of sandplan itself: it
// decides where the command looks for everything, so it comes before the command and nowhere else.
func takeChdir(args []string) (dir string, rest []string, err error) {
	command := false
	for i, arg := range args {
		name := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
		switch {
		case arg == "--":
			return dir, append(rest, args[i:]...), nil
		case strings.HasPrefix(arg, "-") && (name == "chdir" || strings.HasPrefix(name, "chdir=")):
			_, value, given := strings.Cut(name, "=")
			switch {
			case command:
				return "", nil, misuse("", "-chdir comes before the command: sandplan -chdir=DIR COMMAND")
			case !given || value == "":
				return "", nil, misuse("", "-chdir takes its directory after an equals sign: -chdir=DIR")
			case dir != "":
				return "", nil, misuse("", "-chdir is given twice")
			}
			dir = value
		default:
			command = command || !strings.HasPrefix(arg, "-")
			rest = append(rest, arg)
		}
	}
	return dir, rest, nil
}

var longFlag = regexp.MustCompile(`^-[A-Za-z][A-Za-z-]+(?:=|$)`)

// doubleDashes writes -long as --long, which is all that the flag library understands. One letter stays
// as it is, and so does everything after "--".
func doubleDashes(args []string) []string {
	out := slices.Clone(args)
	for i, arg := range out {
		if arg == "--" {
			break
		}
		if longFlag.MatchString(arg) {
			out[i] = "-" + arg
		}
	}
	return out
}

// nearest is the name that was probably meant, or "". Two letters of three that differ are another word, unless
// they only changed places.
func nearest(given string, names []string) string {
	best, dist := "", 3
	if len(given) > 64 {
		return ""
	}
	for _, n := range names {
		d := levenshtein.Distance(given, n, nil)
		if d < dist && (d < 2 || len(given) > 3 || sameLetters(given, n)) {
			best, dist = n, d
		}
	}
	return best
}

func sameLetters(a, b string) bool {
	x, y := []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

func unknownCommand(root *cobra.Command, name string) error {
	message := fmt.Sprintf("there is no command %q", name)
	if text, known := instead[name]; known {
		return misuse("", "%s", message+": "+text)
	}
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	if n := nearest(name, names); n != "" {
		message += fmt.Sprintf("; did you mean %q?", n)
	}
	return misuse("", "%s", message)
}

// name is a command as the user types it, without sandplan itself.
func name(cmd *cobra.Command) string {
	return strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()), " ")
}

// flagError words what the flag library found in the way of the other messages.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown.GetSpecifiedName())
	case errors.As(err, &missing):
		return misuse(name(cmd), "-%s needs a value: -%[1]s=…", missing.GetSpecifiedName())
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		what := map[string]string{
			"int": "a number", "bool": "true or false", "duration": "a duration such as 30s or 5m",
		}[f.Value.Type()]
		if what == "" {
			return misuse(name(cmd), "-%s: %v", f.Name, invalid.Unwrap())
		}
		return misuse(name(cmd), "-%s=%s: the value is to be %s", f.Name, invalid.GetValue(), what)
	}
	return misuse(name(cmd), "%s", strings.ReplaceAll(err.Error(), " --", " -"))
}

func unknownFlag(cmd *cobra.Command, given string) error {
	message := fmt.Sprintf("%s has no option -%s", cmd.CommandPath(), given)
	if text := flagHabit(name(cmd), given); text != "" {
		return misuse(name(cmd), "%s: %s", message, text)
	}
	names := []string{"chdir"}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	switch n := nearest(given, names); n {
	case "":
		if others := commandsWith(cmd.Root(), given); len(others) > 0 && len(others) <= 3 {
			message += "; it is one of " + listed(others)
		}
	case "chdir":
		message += "; -chdir=DIR comes before the command"
	default:
		message += fmt.Sprintf("; did you mean -%s?", n)
	}
	return misuse(name(cmd), "%s", message)
}

// commandsWith are the commands that have an option of this name.
func commandsWith(root *cobra.Command, flag string) []string {
	var out []string
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		if f := c.LocalNonPersistentFlags().Lookup(flag); f != nil && !f.Hidden && !c.Hidden {
			out = append(out, name(c))
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(root)
	return out
}

func listed(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// noArguments refuses what stands after the options. A directory there is a habit from other tools.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("%s takes no arguments, and %q is one", cmd.CommandPath(), args[0])
	if info, err := os.Stat(args[0]); err == nil {
		message += fmt.Sprintf("; to read another configuration, use -config=%s", args[0])
		if info.IsDir() {
			message += fmt.Sprintf(", or sandplan -chdir=%s %s", args[0], cmd.Name())
		}
	}
	return misuse(name(cmd), "%s", message)
}

// onePlan allows a saved plan. A directory there is a habit from other tools.
func onePlan(cmd *cobra.Command, args []string) error {
	if err := atMost(1, "a saved plan")(cmd, args); err != nil || len(args) == 0 {
		return err
	}
	if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
		return misuse(name(cmd), "%s is a directory, and a saved plan is a file; to work in another directory, use sandplan -chdir=%[1]s %s", args[0], cmd.Name())
	}
	return nil
}

// atMost allows up to n arguments, which what names.
func atMost(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return misuse(name(cmd), "%s takes one argument at most (%s), not %d", cmd.CommandPath(), what, len(args))
	}
}
