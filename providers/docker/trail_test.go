package docker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/hclspec"
)

func TestTrail(t *testing.T) {
	dir := resolved(t.TempDir())
	for _, sub := range []string{"plain", "deep/er"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"link": "plain", "two": "link", "up": "deep/er/../../plain", "abs": dir + "/plain", "loop": "loop", "gone": "nowhere/at/all",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, c := range map[string]struct {
		want   []string
		reason string
	}{
		"plain":       {[]string{"plain"}, "nothing on the way but directories"},
		"plain/new/x": {[]string{"plain/new/x"}, "what is not there is meant as it is written"},
		"link/f":      {[]string{"link", "plain/f"}, "the link itself can be replaced where it lies"},
		"two":         {[]string{"two", "link", "plain"}, "every link counts"},
		"up":          {[]string{"up", "deep/er", "deep", "plain"}, "a directory that .. leaves could be replaced by a link"},
		"abs":         {[]string{"abs", "plain"}, "absolute targets start anew"},
		"gone":        {[]string{"gone", "nowhere/at/all"}, "a dangling link leads to what may come"},
	} {
		var want []string
		for _, w := range c.want {
			want = append(want, filepath.Join(dir, w))
		}
		if got := trail(filepath.Join(dir, path)); !slices.Equal(got, want) {
			t.Errorf("%s: trail %q, want %q: %s", path, got, want, c.reason)
		}
	}
	if got := trail(filepath.Join(dir, "loop")); len(got) > maxLinks+1 {
		t.Errorf("a loop has %d places on its trail", len(got))
	}
}

// What decides about an agent is found in its writable worktree even when a link leads there.
func TestConfineFollowsLinks(t *testing.T) {
	dir := resolved(t.TempDir())
	tree, other := filepath.Join(dir, "tree"), filepath.Join(dir, "other")
	for _, d := range []string{tree + "/cfg", tree + "/.git", other} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		other + "/cfglink": tree + "/cfg", other + "/p.md": tree + "/p.md", other + "/into": tree, other + "/treelink": tree, tree + "/out": other,
	} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	w := worktree{place: place{path: tree}, git: gitDir{kind: gitOwn}}
	for name, c := range map[string]struct {
		spec     hclspec.Spec
		readOnly []string
		refused  string
		reason   string
	}{
		"subdirectory": {hclspec.Spec{Dir: tree + "/cfg"}, []string{tree + "/cfg"}, "", "it is mounted read-only over the worktree"},
		"linked subdirectory": {hclspec.Spec{Dir: other + "/cfglink"}, []string{tree + "/cfg"}, "",
			"where it really lies is mounted read-only; the link lies outside"},
		"two levels down":      {hclspec.Spec{Dir: tree + "/deep/cfg"}, nil, "could rename", "what holds the mount point can be renamed, and another put in its place"},
		"linked root":          {hclspec.Spec{Dir: other + "/treelink"}, nil, "root of the worktree", "the link leads to the worktree's root"},
		"reached through":      {hclspec.Spec{Dir: tree + "/out"}, nil, "tree/out, the directory of the configuration, lies in", "the agent could replace the link"},
		"file behind a link":   {hclspec.Spec{Dir: other, Paths: map[string]string{"p": other + "/p.md"}}, nil, "is reached through", "the file itself is writable"},
		"directory behind":     {hclspec.Spec{Dir: other, Paths: map[string]string{"p": other + "/into/new"}}, nil, "is reached through", "a file that may come"},
		"lock behind a link":   {hclspec.Spec{Dir: other, Lock: hclspec.Lock{Path: tree + "/out/lock.hcl"}}, nil, "is reached through", "the way leads through the worktree"},
		"nothing of that sort": {hclspec.Spec{Dir: other, Paths: map[string]string{"p": other + "/plain"}}, nil, "", "all of it lies outside"},
	} {
		e := &Engine{}
		got, err := e.exposureOf(&c.spec, nil).confine(w)
		var r *refusal
		switch {
		case c.refused == "" && (err != nil || !slices.Equal(got, c.readOnly)):
			t.Errorf("%s: %q, %v; want %q: %s", name, got, err, c.readOnly, c.reason)
		case c.refused != "" && (!errors.As(err, &r) || !strings.Contains(r.Error(), c.refused)):
			t.Errorf("%s: %v, want a refusal with %q: %s", name, err, c.refused, c.reason)
		}
	}
}
