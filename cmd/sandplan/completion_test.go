package main

import (
	"strings"
	"testing"
)

const completed = `sandplan {
  project = "p"
}

variable "tree" {
  description = "where it works"
}

vendor "local" {
  kind    = "custom"
  image   = "a/b:1"
  command = ["/agent"]

  host "vendor.test" {}
}

phase "review" {
  runner "test" {
    argv  = ["/agent"]
    image = "a/b:1"
  }
}

invocation "login" {
  for_each = toset(["auth", "tokens"])
  vendor   = vendor.local
  phase    = phase.review
  worktree = "/srv/${each.key}"
}

output "proxy" {
  value = invocation.login["auth"].proxy_address
}
`

// TestCompletion asks what a shell would ask, with the words as people type them.
func TestCompletion(t *testing.T) {
	for _, tt := range []struct {
		words  []string
		want   []string
		not    string
		reason string
	}{
		{[]string{"pl"}, []string{"plan\t"}, "destroy", "commands"},
		{[]string{"run", ""}, []string{"invocation.login[\"auth\"]\tvendor.local, phase.review", "invocation.login[\"tokens\"]"}, ".agent", "invocations, from the configuration"},
		{[]string{"plan", "-ta"}, []string{"-target\t"}, "--target", "options with one dash stay with one dash"},
		{[]string{"plan", "--ta"}, []string{"--target\t"}, "", "and those with two with two"},
		{[]string{"plan", "-"}, []string{"-target\t", "-json\t"}, "--", "a dash is the beginning of an option"},
		{[]string{"plan", "-t"}, []string{"-target\t"}, "-out", "a dash and a letter, too"},
		{[]string{"plan", "-target", "invocation.login[\"auth\"]."}, []string{"invocation.login[\"auth\"].agent", "invocation.login[\"auth\"].runner[\"test\"]"}, "tokens", "parts of an invocation"},
		{[]string{"apply", "-replace=vendor."}, []string{"vendor.local.image"}, "invocation", "after an equals sign"},
		{[]string{"state", "show", "sandplan."}, []string{"sandplan.uplink"}, "invocation", "shared objects"},
		{[]string{"dispatch", "invocation.login[\"auth\"]", ""}, []string{"test"}, "invocation", "runners of the invocation's phase"},
		{[]string{"output", ""}, []string{"proxy"}, "", "names of outputs"},
		{[]string{"plan", "-var", ""}, []string{"tree=\twhere it works"}, "", "names of variables"},
		{[]string{"graph", "-format", ""}, []string{"dot", "mermaid", "svg"}, "", "formats"},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish"}, "", "shells"},
		{[]string{"-chdir=.", "run", "inv"}, []string{"invocation.login[\"auth\"]"}, "", "behind -chdir"},
	} {
		ta := newTestApp(t).file("sandplan.hcl", completed)
		if code := ta.main(append([]string{"__complete"}, tt.words...)); code != 0 {
			t.Errorf("%s: exit %d", tt.reason, code)
		}
		got := ta.out.String()
		for _, want := range tt.want {
			if !strings.Contains("\n"+got, "\n"+want) {
				t.Errorf("%s: %q has no %q", tt.reason, got, want)
			}
		}
		if tt.not != "" && strings.Contains(got, tt.not) {
			t.Errorf("%s: %q has %q", tt.reason, got, tt.not)
		}
		if !strings.HasPrefix(lastLine(got), ":") || ta.err.Len() > 0 {
			t.Errorf("%s: ends with %q, stderr %q", tt.reason, lastLine(got), ta.err.String())
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if r := newTestApp(t).do("completion " + shell); r.code != 0 || !strings.Contains(r.stdout, "__complete") {
			t.Errorf("%s: exit %d, stdout %.60q", shell, r.code, r.stdout)
		}
	}
	if r := newTestApp(t).do("completion tcsh"); r.code != 1 || !strings.Contains(r.stderr, "bash, zsh and fish") {
		t.Errorf("an unknown shell: exit %d, stderr %q", r.code, r.stderr)
	}
}

// TestEnvironmentArgs: options of the environment stand behind the command and before the line's own.
func TestEnvironmentArgs(t *testing.T) {
	for _, tt := range []struct {
		env    map[string]string
		args   string
		code   int
		stdout string
		stderr string
		reason string
	}{
		{map[string]string{"SANDPLAN_CLI_ARGS_validate": "-json"}, "validate", 0, `"valid":true`, "", "for one command"},
		{map[string]string{"SANDPLAN_CLI_ARGS": "-json"}, "validate", 0, `"valid":true`, "", "for every command"},
		{map[string]string{"SANDPLAN_CLI_ARGS": "-json"}, "validate -json=false", 0, "is valid", "", "the command line wins"},
		{map[string]string{"SANDPLAN_CLI_ARGS": "-json", "SANDPLAN_CLI_ARGS_validate": "-json=false"}, "validate", 0, "is valid", "", "the closer one wins"},
		{map[string]string{"SANDPLAN_CLI_ARGS_plan": "-json"}, "validate", 0, "is valid", "", "another command's"},
		{map[string]string{"SANDPLAN_CLI_ARGS_state_list": "-nope"}, "state list", 1, "", "state list has no option -nope (SANDPLAN_CLI_ARGS_state_list added -nope)\n", "of a command of two words"},
		{map[string]string{"SANDPLAN_CLI_ARGS": "-config=secret -nope"}, "state list", 1, "", " (SANDPLAN_CLI_ARGS added -config -nope)\n", "a mistake on a line that nobody typed, without values"},
		{map[string]string{"SANDPLAN_CLI_ARGS": "'-json"}, "validate", 1, "", "SANDPLAN_CLI_ARGS='-json cannot be split", "a quote that does not end"},
		{map[string]string{"SANDPLAN_CLI_ARGS_validate": "-config 'two words.hcl'"}, "-no-color validate", 1, "", "two words.hcl", "quotes keep words together"},
		{map[string]string{"SANDPLAN_CLI_ARGS_validate": "-json"}, "-workspace x validate", 0, `"valid":true`, "", "an option with its value before the command"},
		{map[string]string{"SANDPLAN_CLI_ARGS": "$(touch /tmp/owned)"}, "validate", 1, "", "", "nothing is executed"},
	} {
		ta := newTestApp(t).file("sandplan.hcl", "sandplan {\n  project = \"p\"\n}\n")
		for k, v := range tt.env {
			ta.env[k] = v
		}
		r := ta.do(tt.args)
		if r.code != tt.code || !strings.Contains(r.stdout, tt.stdout) || !strings.Contains(r.stderr, tt.stderr) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", tt.reason, r.code, r.stdout, r.stderr)
		}
	}
}

// TestConflicts: two options that contradict each other are an error that says so, never a matter of which
// one comes last.
func TestConflicts(t *testing.T) {
	for _, args := range []string{
		"plan -destroy -replace=invocation.a", "apply -destroy -replace=invocation.a -auto-approve", "apply -destroy -takeover -auto-approve",
		"apply p -var a=b", "apply p -target=invocation.a", "apply p -destroy", "apply -json", "apply -input=false", "destroy -json", "destroy -input=false",
		"apply -parallelism=0 -auto-approve", "apply -lock-timeout=-1s -auto-approve", "drift -project=p", "drift -recorded -var a=b",
		"state list -all invocation.a", "state list -all -id=1", "output -raw", "output -raw -json x", "show p -plan=q", "show p -project=x",
		"show -permissions -project=x", "show -var a=b", "graph -plan=p -var a=b", "init -upgrade -lockfile=readonly", "init -lockfile=rw",
	} {
		r := newTestApp(t).file("sandplan.hcl", "sandplan {\n  project = \"p\"\n}\n").do(args)
		text := r.stdout + r.stderr
		if r.code != 1 || !strings.Contains(text, "-help") || strings.Contains(text, "/nonexistent.sock") {
			t.Errorf("%s: exit %d, %q; want a mistake on the command line, found before anything else", args, r.code, text)
		}
	}
	if r := newTestApp(t).file("sandplan.hcl", "").do("fmt - x.hcl"); r.code != 2 {
		t.Errorf("fmt - x.hcl: exit %d", r.code)
	}
	if r := newTestApp(t).file("sandplan.hcl", "").do("plan -lock=false"); strings.Contains(r.stderr, "no option") {
		t.Errorf("plan -lock=false: %q; a command that never locks takes it", r.stderr)
	}
}
