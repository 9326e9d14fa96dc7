package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSteps(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ONE", "1")
	for name, c := range map[string]struct {
		args        []string
		code        int
		out, errOut string
		reason      string
	}{
		"sequence":     {[]string{"say=a", "warn=b", "say=c"}, 0, "a\nc\n", "b\n", "steps run in order"},
		"exit":         {[]string{"say=a", "exit=42", "say=b"}, 42, "a\n", "", "nothing runs after exit"},
		"print":        {[]string{"print=100"}, 0, strings.Repeat("x", 63) + "\n" + strings.Repeat("x", 36), "", "exactly so many bytes"},
		"print unit":   {[]string{"eprint=1KiB"}, 0, "", strings.Repeat(strings.Repeat("x", 63)+"\n", 16), "units are binary"},
		"stdin":        {[]string{"stdin"}, 0, "the task", "", "the prompt arrives on standard input"},
		"env":          {[]string{"env=ONE"}, 0, "ONE=1\n", "", "one variable"},
		"write, cat":   {[]string{"write=" + dir + "/f:text", "cat=" + dir + "/f"}, 0, "text\n", "", "both go through the file"},
		"unknown step": {[]string{"frobnicate"}, 2, "", "steps: abort, ", "a typing error names what there is"},
		"failing step": {[]string{"cat=" + dir + "/absent"}, 1, "", "no such file", "a failure is told and ends it"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			code := run(c.args, strings.NewReader("the task"), &out, &errOut)
			if code != c.code || out.String() != c.out || !strings.Contains(errOut.String(), c.errOut) {
				t.Errorf("code %d, out %q, err %q (%s)", code, out.String(), errOut.String(), c.reason)
			}
		})
	}
}

// Outside a sandbox nearly everything is possible, and the demo must say so.
func TestDemoTellsOpenFromClosed(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	d := demo{worktree: dir, expect: "read-only", stdin: strings.NewReader("fix it\nnow"), out: &out}
	if o := d.write(); o.good || !strings.Contains(o.result, "wrote") {
		t.Errorf("write: %+v", o)
	}
	if o := d.git(); o.good {
		t.Errorf("git: %+v", o)
	}
	if o := d.read(); !o.good || !strings.Contains(o.result, "has 2 entries") {
		t.Errorf("read: %+v", o)
	}
	if got := d.prompt(); got != "my task is: fix it" {
		t.Errorf("prompt: %s", got)
	}
	t.Setenv("HTTPS_PROXY", "")
	if o := d.callOther(); o.good || !strings.Contains(o.result, "HTTPS_PROXY") {
		t.Errorf("without a proxy: %+v", o)
	}
	if o := unreachable("loopback", []string{"127.0.0.1:1"}); o.good {
		t.Errorf("a refused connection is an answer: %+v", o)
	}
}
