package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFmtLinks: plan reads configuration files that are symbolic links, so fmt does not pass over them.
func TestFmtLinks(t *testing.T) {
	target := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.WriteFile(target, []byte("a=1\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	ta := newTestApp(t)
	link := filepath.Join(ta.dir, "a.sandplan.hcl")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if r := ta.do("fmt -check " + ta.dir); r.code != exitFmtUnformatted || !strings.Contains(r.stdout, "a.sandplan.hcl") {
		t.Errorf("check: %+v", r)
	}
	if r := ta.do("fmt " + ta.dir); r.code != exitOK {
		t.Errorf("fmt: %+v", r)
	}
	got, err := os.ReadFile(target)
	if err != nil || string(got) != "a = 1\n" {
		t.Errorf("the target holds %q, %v", got, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is no link any more: %v, %v", info, err)
	}
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	if r := ta.do("fmt -check " + ta.dir); r.code != exitFmtError || !strings.Contains(r.stderr, "a.sandplan.hcl") {
		t.Errorf("a link that leads nowhere: %+v", r)
	}
}
