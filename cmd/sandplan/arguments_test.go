package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestTakeChdir(t *testing.T) {
	for _, tt := range []struct {
		args   string
		dir    string
		rest   string
		fault  string
		reason string
	}{
		{"plan -out=p", "", "plan -out=p", "", "without the option nothing changes"},
		{"-chdir=/x plan", "/x", "plan", "", "it is taken off"},
		{"--chdir=/x plan", "/x", "plan", "", "two dashes are as good as one"},
		{"-workspace=w -chdir=/x plan", "/x", "-workspace=w plan", "", "other options may stand before it"},
		{"plan -chdir=/x", "", "", "before the command", "behind the command it would come too late"},
		{"-chdir /x plan", "", "", "equals sign", "a directory must not be taken for the command"},
		{"-chdir= plan", "", "", "equals sign", "no directory is no directory"},
		{"-chdir=/x -chdir=/y plan", "", "", "twice", "which one would be meant?"},
		{"run -- -chdir=/x", "", "run -- -chdir=/x", "", "behind -- it is no option"},
	} {
		dir, rest, err := takeChdir(strings.Fields(tt.args))
		if tt.fault != "" {
			var usage *usageErr
			if !errors.As(err, &usage) || !strings.Contains(usage.message, tt.fault) {
				t.Errorf("%q: error %v, want one with %q: %s", tt.args, err, tt.fault, tt.reason)
			}
			continue
		}
		if err != nil || dir != tt.dir || strings.Join(rest, " ") != tt.rest {
			t.Errorf("%q: %q, %q, %v; want %q, %q: %s", tt.args, dir, rest, err, tt.dir, tt.rest, tt.reason)
		}
	}
}

func TestDoubleDashes(t *testing.T) {
	for _, tt := range []struct{ in, want, reason string }{
		{"-out=p", "--out=p", "one dash is what Terraform users type"},
		{"-out p", "--out p", "the value may stand apart"},
		{"--out=p", "--out=p", "two stay two"},
		{"-h", "-h", "one letter stays a shorthand"},
		{"-prompt -", "--prompt -", "a lone dash is standard input"},
		{"-var n=-x", "--var n=-x", "only the beginning counts"},
		{"-5s", "-5s", "a number is no option"},
		{"run -- -out", "run -- -out", "behind -- everything is an argument"},
		{"invocation.x", "invocation.x", "an argument is an argument"},
	} {
		if got := strings.Join(doubleDashes(strings.Fields(tt.in)), " "); got != tt.want {
			t.Errorf("%q became %q, want %q: %s", tt.in, got, tt.want, tt.reason)
		}
	}
	given := []string{"-out"}
	if doubleDashes(given); given[0] != "-out" {
		t.Error("the caller's arguments were changed")
	}
}

// TestUsage: mistakes on the command line cost no engine and no configuration, say what is wrong in one
// line, and point to the help.
func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		args   string
		code   int
		want   string
		reason string
	}{
		{"plna", 1, `did you mean "plan"?`, "the nearest command"},
		{"refresh", 1, `use "sandplan drift"`, "what to use instead"},
		{"taint x", 1, "-replace=ADDRESS", "what to use instead"},
		{"foo", 1, "there is no command \"foo\"\n", "two letters of three are another word"},
		{"up", 1, "use \"sandplan apply\"", "a word of Docker"},
		{"exec x", 1, "sandplan dispatch", "a word of Docker"},
		{"state rm x", 1, "there is no state file", "a command of a command that Terraform has"},
		{"init -backend=false", 1, "no backend", "an option that Terraform has"},
		{"plan -auto-approve", 1, "asks nothing; it is one of apply", "an option of another command"},
		{"graph -detailed-exitcode", 1, "it is one of plan", "an option of another command"},
		{"validate -var=x=1", 1, "holds whatever the variables are", "an option of other commands"},
		{"plan -parallelism=many", 1, "is to be a number", "what is let pass has to be right all the same"},
		{"fmt absent", 2, "Cannot read absent", "a file's name is written as it is"},
		{"show absent", 1, "There is no file absent. A plan is saved by", "no such plan"},
		{"run -timeout=5m invocation.x", 125, "set it in its invocation block", "what docker run takes"},
		{"apply .", 1, "sandplan -chdir=. apply", "a directory is a habit from other tools"},
		{"show .", 1, "sandplan -chdir=. show", "a directory is a habit from other tools"},
		{"graph -type=plan", 1, "-plan=FILE", "an option that Terraform has"},
		{"destroy -force", 1, "-auto-approve", "an option that Terraform had"},
		{"plan -version", 1, "no option -version", "it stands alone"},
		{"plan -otu=x", 1, "did you mean -out?", "the nearest option"},
		{"plan -refresh=false", 1, "worth nothing", "a plan that does not look is refused"},
		{"plan -refresh-only", 1, "sandplan drift", "drift is the report"},
		{"apply -lock=false", 1, "without the lock", "no change without the lock"},
		{"plan somewhere", 1, "takes no arguments", "no arguments"},
		{"plan .", 1, "sandplan -chdir=. plan", "a directory is a habit from other tools"},
		{"plan -target", 1, "-target needs a value", "a missing value"},
		{"plan -var=x", 1, "is not NAME=VALUE", "a value of the wrong form"},
		{"apply -parallelism=many", 1, "is to be a number", "a value of the wrong type"},
		{"apply -parallelism=0", 1, "at least one", "nothing could ever be done"},
		{"apply -input=false", 1, "add -auto-approve", "nobody could be asked"},
		{"apply -target=x p", 1, "exclude each other", "a saved plan says it all"},
		{"apply p q", 1, "one argument at most", "one plan at a time"},
		{"destroy -input=false", 1, "add -auto-approve", "nobody could be asked"},
		{"init -lockfile=rw", 1, "the only value is readonly", "an unknown mode"},
		{"init -lockfile=readonly -upgrade", 1, "forbids", "a contradiction"},
		{"drift -project=p", 1, "goes with -recorded", "the configuration says the project"},
		{"output -raw", 1, "say which", "raw is one value"},
		{"output -raw -json x", 1, "exclude each other", "a contradiction"},
		{"state lst", 1, "it has list and show", "commands of a command"},
		{"state show", 1, "needs one address", "a missing argument"},
		{"force-unlock", 1, "the ID of one lock", "a missing argument"},
		{"run", 125, "needs the address", "run refuses with 125, usage included"},
		{"run -nope invocation.x", 125, "no option -nope", "options of run, too"},
		{"dispatch invocation.x", 125, "the name of a runner", "dispatch is a run"},
	} {
		r := newTestApp(t).do(tt.args)
		if r.code != tt.code || !strings.Contains(r.stderr, tt.want) {
			t.Errorf("%q: exit %d, stderr %q; want %d and %q: %s", tt.args, r.code, r.stderr, tt.code, tt.want, tt.reason)
		}
		if r.stdout != "" {
			t.Errorf("%q: stdout %q, want nothing there", tt.args, r.stdout)
		}
		if lines := strings.Count(r.stderr, "\n"); lines > 3 {
			t.Errorf("%q: %d lines, want the mistake and a pointer:\n%s", tt.args, lines, r.stderr)
		}
		if last := lastLine(r.stderr); tt.code == 125 != strings.HasPrefix(last, "sandplan: ") {
			t.Errorf("%q: the last line is %q; it begins with sandplan: exactly when a run was refused", tt.args, last)
		}
	}
}

// TestNotAPlan: what stands in the place of a saved plan is named, with what it was probably meant for.
func TestNotAPlan(t *testing.T) {
	r := newTestApp(t).do("apply invocation.x")
	if want := "There is no file invocation.x. A plan is saved by"; r.code != 1 || !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, "-target=invocation.x") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}

// TestVersionFlag: it is what every other program has.
func TestVersionFlag(t *testing.T) {
	for _, flag := range []string{"-version", "--version", "-v"} {
		if r := newTestApp(t).do(flag); r.code != 0 || !strings.HasPrefix(r.stdout, "sandplan 0.1.0-test on ") {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", flag, r.code, r.stdout, r.stderr)
		}
	}
}

// TestHelp: every command has one that fits a screen, on stdout, with an example.
func TestHelp(t *testing.T) {
	root := newTestApp(t).rootCommand()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			continue
		}
		for _, flag := range []string{"-help", "--help", "-h"} {
			r := newTestApp(t).do(c.Name() + " " + flag)
			if r.code != 0 || r.stderr != "" || !strings.HasPrefix(r.stdout, "Usage: sandplan "+c.Name()) {
				t.Errorf("%s %s: exit %d, stderr %q, stdout %q", c.Name(), flag, r.code, r.stderr, r.stdout)
			}
		}
		r := newTestApp(t).do(c.Name() + " -help")
		if lines := strings.Count(r.stdout, "\n"); lines > 45 {
			t.Errorf("%s -help has %d lines", c.Name(), lines)
		}
		if !c.HasSubCommands() && !strings.Contains(r.stdout, "Example:") {
			t.Errorf("%s -help shows no example", c.Name())
		}
		for _, l := range strings.Split(r.stdout, "\n") {
			if len(l) > 100 {
				t.Errorf("%s -help: a line of %d columns: %s", c.Name(), len(l), l)
			}
			if slices.Contains(strings.Fields(l), "--") || strings.Contains(l, " --") {
				t.Errorf("%s -help shows two dashes: %s", c.Name(), l)
			}
		}
	}
	for _, args := range []string{"", "-chdir=."} {
		bare := newTestApp(t).do(args)
		if bare.code != 0 || !strings.Contains(bare.stdout, "Main commands:") {
			t.Errorf("%q, without a command: exit %d, stdout %q", args, bare.code, bare.stdout)
		}
	}
}
