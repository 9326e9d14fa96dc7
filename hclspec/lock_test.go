package hclspec

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/hcl/v2"
)

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func someLock() Lock {
	return Lock{
		DNS: []netip.Addr{netip.MustParseAddr("10.0.0.53"), netip.MustParseAddr("10.0.0.9")},
		Images: []LockImage{
			{Ref: "codeboost/ci:22", Digest: digestB},
			{Ref: "codeboost/agent:2.1", IDs: []string{digestB, digestA}, CLI: "2.1.332", Inspected: true, Config: ImageConfig{
				Env:          map[string]string{"PATH": "/bin:/usr/bin", "ODD": "${x} %{y} \"q\" \\ \n\ttab é", "with.dot": "1"},
				Labels:       map[string]string{"a.b/c": "d"},
				Volumes:      []string{"/z", "/a"},
				ExposedPorts: []string{"80/tcp"},
			}},
			{Ref: "codeboost/other:1", IDs: []string{digestA}, Shell: true, Inspected: true},
		},
	}
}

func TestLockRoundTrip(t *testing.T) {
	in := someLock()
	text := FormatLock(in)
	out, diags := parseLock(text, "lock")
	if len(diags) > 0 {
		t.Fatalf("%s\n%s", details(diags), text)
	}
	in.Images = []LockImage{in.Images[1], in.Images[0], in.Images[2]}
	in.Images[0].IDs = []string{digestA, digestB}
	in.Images[0].Config.Volumes = []string{"/a", "/z"}
	ignore := []cmp.Option{cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(hcl.Range{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })}
	if diff := cmp.Diff(in, out, ignore...); diff != "" {
		t.Errorf("a lock file does not say what was written:\n%s\n%s", diff, text)
	}
	if again := FormatLock(out); string(again) != string(text) {
		t.Errorf("the same pins give other bytes:\n%s\n%s", text, again)
	}
}

func TestLockText(t *testing.T) {
	want := lockHeader + `
dns = ["10.0.0.53"]

image "codeboost/agent:2.1" {
  ids   = ["` + digestA + `"]
  cli   = "2.1.332"
  shell = false

  config {
    env = {
      A = "$${b}"
    }
    volumes = ["/data"]
  }
}

image "codeboost/ci:22" {
  digest = "` + digestB + `"
}
`
	got := string(FormatLock(Lock{DNS: []netip.Addr{netip.MustParseAddr("10.0.0.53")}, Images: []LockImage{
		{Ref: "codeboost/ci:22", Digest: digestB},
		{Ref: "codeboost/agent:2.1", IDs: []string{digestA}, CLI: "2.1.332", Inspected: true,
			Config: ImageConfig{Env: map[string]string{"A": "${b}"}, Volumes: []string{"/data"}}},
	}}))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestUninspectedIsNotShellless holds that leaving the lines out does not say that there is no shell.
func TestUninspectedIsNotShellless(t *testing.T) {
	lock, diags := parseLock([]byte("image \"a:1\" {\n ids = [\""+digestA+"\"]\n}\nimage \"b:1\" {\n ids = [\""+digestA+"\"]\n shell = false\n}\n"), "lock")
	if len(diags) > 0 || lock.Images[0].Inspected || !lock.Images[1].Inspected {
		t.Errorf("%+v %v", lock.Images, diags)
	}
}

func TestWriteLock(t *testing.T) {
	dir := t.TempDir()
	l := someLock()
	l.Path = filepath.Join(dir, lockName)
	if err := WriteLock(l); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(l.Path, 0o600); err != nil {
		t.Fatal(err)
	}
	l.Images = l.Images[:1]
	if err := WriteLock(l); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(l.Path)
	if err != nil || string(got) != string(FormatLock(l)) {
		t.Errorf("%v %s", err, got)
	}
	info, err := os.Stat(l.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode changed to %v", info.Mode())
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("%d files are left, want one", len(entries))
	}
	l.Path = filepath.Join(dir, "gone", lockName)
	if err := WriteLock(l); err == nil || !strings.Contains(err.Error(), "write the lock file") {
		t.Errorf("got %v", err)
	}
}

func TestLoadReadsTheLock(t *testing.T) {
	spec, diags := loadFiles(t, map[string]string{"sandplan.hcl": head, ".sandplan.lock.hcl": string(FormatLock(someLock()))}, Vars{})
	if len(diags) > 0 || !spec.Lock.Exists || len(spec.Lock.Images) != 3 || spec.Lock.Images[0].Ref != "codeboost/agent:2.1" {
		t.Errorf("%+v %v", spec.Lock, diags)
	}
	if r := spec.Lock.Images[0].Range; r.Filename != "/conf/.sandplan.lock.hcl" || r.Start.Line < 2 {
		t.Errorf("an entry is at %s", r)
	}
}
