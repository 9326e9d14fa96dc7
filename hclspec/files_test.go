package hclspec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFilesOfEachInvocation holds that an invocation knows every file that its declaration was made of,
// through whatever it refers to, and no other.
func TestFilesOfEachInvocation(t *testing.T) {
	files := map[string]string{
		"sandplan.hcl": `
sandplan { project = "p" }
locals {
  a      = file("a.txt")
  b      = "${local.a} and ${filesha256("sub/b.bin")}"
  c      = file("c.txt")
  keys   = fileset("keys", "*.key")
  exists = fileexists("gone.txt")
}
vendor "claude" {
  image = trimspace(file("image.txt"))
}
phase "review" {
  runner "test" {
    argv  = split(" ", trimspace(file("argv.txt")))
    image = "ci:1"
  }
}
invocation "plain" {
  vendor   = vendor.claude
  phase    = phase.questions
  worktree = "/w"
}
invocation "rich" {
  for_each = local.keys
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/w"
  prompt   = "${local.b} ${templatefile("t.tpl", { k = each.key })} ${local.exists}"
  env      = { K = file("keys/${each.key}") }
}
`,
		"a.txt": "a", "sub/b.bin": "b", "c.txt": "c", "image.txt": "agent:1\n", "argv.txt": "make test\n",
		"keys/one.key": "1", "keys/two.key": "2", "keys/three.txt": "3", "t.tpl": "${k} ${file(\"inner.txt\")}", "inner.txt": "i",
	}
	spec, diags := loadFiles(t, files, Vars{})
	if len(diags) > 0 {
		t.Fatal(details(diags))
	}
	got := map[string][]string{}
	for _, i := range spec.Invocations {
		got[i.Address] = i.Files
	}
	rich := func() []string {
		return []string{"/conf/a.txt", "/conf/argv.txt", "/conf/gone.txt", "/conf/image.txt", "/conf/inner.txt", "/conf/keys",
			"/conf/keys/one.key", "/conf/keys/two.key", "/conf/sub/b.bin", "/conf/t.tpl"}
	}
	want := map[string][]string{
		"invocation.plain":           {"/conf/image.txt"},
		`invocation.rich["one.key"]`: rich(),
		`invocation.rich["two.key"]`: rich(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if p := spec.Invocations[1].Prompt.V; p != "a and 3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d one.key i false" {
		t.Errorf("prompt %q", p)
	}
}

// TestPathsAreText: a path that is none is refused where it is met first, and in words.
func TestPathsAreText(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w\xff")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("this file system has text only")
	}
	if err := os.WriteFile(filepath.Join(dir, "sandplan.hcl"), []byte(head), 0o644); err != nil {
		t.Fatal(err)
	}
	_, diags := Load(Source{Path: dir, Cwd: dir}, Vars{}, testCatalog)
	if only(t, diags) != ConfigNotFound || !strings.Contains(details(diags), "its path is not valid UTF-8") {
		t.Errorf("got %s", details(diags))
	}
}
