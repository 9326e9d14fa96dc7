package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the pictures in docs with what is drawn now")

// TestPictures: docs/topology.* are what graph draws of examples/team.hcl; README shows the SVG.
func TestPictures(t *testing.T) {
	example, err := filepath.Abs("../../examples/team.hcl")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ file, flags string }{
		{"topology.svg", ""}, {"topology.dot", " -format=dot"}, {"topology.mmd", " -format=mermaid"},
	} {
		r := newTestApp(t).do("graph -config=" + example + " -var root=/srv/checkouts" + tt.flags)
		if r.code != 0 {
			t.Fatalf("%s: exit %d: %s", tt.file, r.code, r.stderr)
		}
		path := filepath.Join("../../docs", tt.file)
		if *update {
			if err := os.WriteFile(path, []byte(r.stdout), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != r.stdout {
			t.Errorf("%s is not what graph draws now; -update rewrites it", path)
		}
	}
}

func TestGraphFlags(t *testing.T) {
	const src = "sandplan {\n  project = \"p\"\n}\n"
	for _, tt := range []struct {
		args, stdout, stderr string
		code                 int
		reason               string
	}{
		{"graph", "<svg ", "", 0, "SVG by default"},
		{"graph -out=x.dot", "", "", 0, "the ending says the format"},
		{"graph -out=x.png", "", "-out=x.png: its ending says no format", 1, "no such format"},
		{"graph -format=png", "", "there are svg, dot and mermaid", 1, "no such format"},
		{"graph -plan=absent", "", "absent", 1, "no such plan"},
		{"graph -plan=p -var a=b", "", "exclude each other", 1, "a plan says it all"},
	} {
		ta := newTestApp(t).file("sandplan.hcl", src)
		r := ta.do(tt.args)
		if r.code != tt.code || !strings.Contains(r.stdout, tt.stdout) || !strings.Contains(r.stderr, tt.stderr) {
			t.Errorf("%s (%s): exit %d, stdout %.40q, stderr %q", tt.args, tt.reason, r.code, r.stdout, r.stderr)
		}
		if b, err := os.ReadFile(filepath.Join(ta.dir, "x.dot")); tt.args == "graph -out=x.dot" && (err != nil || !strings.Contains(string(b), "digraph")) {
			t.Errorf("x.dot holds %.40q (%v)", b, err)
		}
	}
}

// TestGraphWithoutValues: what does not depend on a variable is drawn as it is, and nothing is asked for.
func TestGraphWithoutValues(t *testing.T) {
	const src = `
sandplan {
  project = "p"
}
variable "trees" {
  type = set(string)
}
variable "image" {}
variable "phase" {
  default = "x"
}
vendor "claude" {
  image = var.image
  credential "ANTHROPIC_API_KEY" {
    source_env = "KEY"
  }
}
invocation "each" {
  for_each = var.trees
  vendor   = vendor.claude
  phase    = phase.execute
  worktree = each.key
}
`
	r := newTestApp(t).file("sandplan.hcl", src).do("graph -format=dot")
	for _, want := range []string{"invocation.each[…]: internal network", `label="depends on a variable", shape=folder`, "read and write", "edit, write", "api.anthropic.com:443"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is not in the picture:\n%s", want, r.stdout)
		}
	}
	if r.code != 0 || !strings.Contains(r.stderr, "Without a value: var.image, var.trees.") || strings.Contains(r.stdout, "Warning") {
		t.Errorf("exit %d, and the picture must stand alone on stdout: %s", r.code, r.stderr)
	}
	r = newTestApp(t).file("sandplan.hcl", src).do(`graph -format=dot -var=image=a:1 -var=trees=["/w/one"]`)
	if r.code != 0 || r.stderr != "" || !strings.Contains(r.stdout, `invocation.each[\"/w/one\"]`) {
		t.Errorf("with values there is nothing to say: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	open := strings.Replace(src, "= phase.execute", "= var.image == \"a\" ? phase.review : phase.fix", 1)
	r = newTestApp(t).file("sandplan.hcl", open).do("graph -format=dot")
	if r.code != 1 || r.stdout != "" || !strings.Contains(r.stderr, "var.image has no default") {
		t.Errorf("who may do what is never left open: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
}
