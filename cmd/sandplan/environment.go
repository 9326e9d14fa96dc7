package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mattn/go-shellwords"
	"github.com/spf13/cobra"
)

// environmentArgs puts the options of SANDPLAN_CLI_ARGS and SANDPLAN_CLI_ARGS_command behind the command, so
// that what stands on the command line comes later and wins.
func (a *app) environmentArgs(root *cobra.Command, args []string) ([]string, error) {
	cmd, at := commandAt(root, args)
	if cmd == root {
		return args, nil
	}
	var extra []string
	for _, variable := range []string{"SANDPLAN_CLI_ARGS", "SANDPLAN_CLI_ARGS_" + strings.NewReplacer(" ", "_", "-", "_").Replace(name(cmd))} {
		text := a.getenv(variable)
		if text == "" {
			continue
		}
		words, err := shellwords.Parse(text)
		if err != nil {
			return nil, misuse(name(cmd), "%s=%s cannot be split into words: %v", variable, text, err)
		}
		extra = append(extra, words...)
		a.added = append(a.added, fmt.Sprintf("%s added %s", variable, strings.Join(optionNames(words), " ")))
	}
	return slices.Concat(args[:at], extra, args[at:]), nil
}

// optionNames are the options among words, without their values, which may be secret.
func optionNames(words []string) []string {
	var out []string
	for _, w := range words {
		if name, _, _ := strings.Cut(w, "="); strings.HasPrefix(name, "-") {
			out = append(out, name)
		}
	}
	return out
}

// commandAt is the command that a command line names, and the place behind its last word.
func commandAt(root *cobra.Command, args []string) (*cobra.Command, int) {
	cmd, at := root, 0
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if strings.HasPrefix(arg, "-") {
			// Options before the command are sandplan's own; some have their value in the next word.
			if f := root.PersistentFlags().Lookup(strings.TrimLeft(arg, "-")); f != nil && f.Value.Type() != "bool" {
				i++
			}
			continue
		}
		sub := child(cmd, arg)
		if sub == nil {
			break
		}
		cmd, at = sub, i+1
	}
	return cmd, at
}

func child(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}
