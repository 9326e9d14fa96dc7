package policy

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
)

// checkPhase holds a phase against the ceiling of the built-in one that it is, or is based on.
func checkPhase(p hclspec.Phase) hcl.Diagnostics {
	at := reporter{block: p.Range}
	if p.Base.Unknown {
		return nil
	}
	base := baseOf(p)
	c, ok := ceilingOf(base)
	if !ok {
		at.fail(p.Base.Range, SummaryUnknownBase, "phase.%s: %q is no built-in phase. There are: %s.", p.Name, base, strings.Join(builtinPhases(), ", "))
		return at.diags
	}
	if p.Base.Set && p.Base.V != base { // only of a built-in phase: it is its own base
		at.fail(p.Base.Range, SummaryUnknownBase, "phase.%s is built in and has no base.", p.Name)
	}
	if p.Writable.Set && p.Writable.V && !c.writable {
		at.fail(p.Writable.Range, SummaryWritableWiden, "The worktree is read-only in %s, and no phase can be wider than the built-in one that it is based on. Based on execute or fix, a phase may write.", base)
	}
	if p.Tools.Set && !p.Tools.Unknown {
		for _, t := range p.Tools.V {
			switch {
			case !slices.Contains(c.tools, t):
				at.fail(p.Tools.Range, SummaryToolsWiden, "%q is not among the tools of %s: %s. A phase can only leave some of them out.", t, base, strings.Join(c.tools, ", "))
			case (t == ToolEdit || t == ToolWrite) && !isWritable(p) && !p.Writable.Unknown:
				at.fail(p.Tools.Range, SummaryToolsReadOnly, "%q changes files, and phase.%s mounts the worktree read-only (writable = false). Leave out one or the other.", t, p.Name)
			}
		}
	}
	for _, r := range p.Runners {
		if !c.runners {
			at.fail(r.Range, SummaryRunnersForbidden, "In %s no command is approved, so that runner %q cannot be. Runners may stand in review, execute and fix.", base, r.Name)
		}
		if why := argvMistake(r.Argv.V); why != "" && !r.Argv.Unknown {
			at.fail(r.Argv.Range, SummaryRunnerArgv, "runner %q: %s.", r.Name, why)
		}
	}
	return at.diags
}

// argvMistake says why a command cannot be executed, or "".
func argvMistake(argv []string) string {
	switch {
	case len(argv) == 0:
		return "the command is empty; write the program and each of its arguments as one string each"
	case argv[0] == "":
		return "the name of the program is empty"
	case len(argv) == 1 && strings.ContainsAny(argv[0], " \t"):
		return "no shell reads the command, so that this would be a program with blanks in its name; write each argument as a string of its own"
	}
	for _, a := range argv {
		if strings.ContainsRune(a, 0) {
			return "an argument holds a NUL byte"
		}
	}
	return ""
}
