package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMayChange(t *testing.T) {
	r := tree(t, map[string]string{"sub/a.txt": "x", "sub/.mcp.json": "{}", ".git/HEAD": "x"})
	if err := os.Symlink("sub", filepath.Join(r.dir, "in")); err != nil {
		t.Fatal(err)
	}
	protected := []string{".claude", ".codex", ".git", ".mcp.json"}
	for _, c := range []struct{ path, why, reason string }{
		{"here.txt", "", "a file that is there"},
		{r.dir + "/sub/a.txt", "", "as Codex names it"},
		{"new.txt", "", "a new file"},
		{"a/b/c.txt", "", "with new directories"},
		{".github/workflows/x.yml", "", "no name of a tool that acts by itself"},
		{"sub/.gitignore", "", "only whole names count"},
		{r.dir, "directory itself", "all of it at once"},
		{"sub", "no regular file", "a directory"},
		{"fifo", "no regular file", "whoever reads it waits"},
		{"here.txt/x", "not a directory", "a file is no directory"},
		{"../outside/secret.txt", "..", "outside"},
		{r.dir + "/../outside/new", "..", "outside, by a way that begins inside"},
		{r.dir + "-other/new", "outside", "a neighbour whose name begins alike"},
		{"/tmp/planted", "outside", "the container's own"},
		{"/home/agent/.codex/config.toml", "outside", "Codex's own configuration"},
		{"dir/new", "symbolic link", "a link to a directory outside"},
		{"root/etc/x", "symbolic link", "a link to all of it"},
		{"abs", "symbolic link", "writing follows it"},
		{"loop", "symbolic link", "it never ends"},
		{"in/new", "symbolic link", "even inside: what it leads to may be protected"},
		{"good", "symbolic link", "even to a file inside"},
		{".git/hooks/x", "protected", "git runs it"},
		{"a/.git/hooks/x", "protected", "in a repository that is not there yet"},
		{"sub/.mcp.json", "protected", "in any directory"},
		{".CODEX/config.toml", "protected", "where case does not count it is the same"},
		{"new/.claude", "protected", "behind what is not there"},
		{"a\x00b", "NUL", "no name"},
		{"", "directory itself", "nothing"},
	} {
		err := r.MayChange(c.path, protected)
		if c.why == "" && err != nil || c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %q: %v, want %q in it", c.reason, c.path, err, c.why)
		}
	}
}

// FuzzMayChange: what may be changed lies below the directory, wherever links lead.
func FuzzMayChange(f *testing.F) {
	for _, p := range []string{"here.txt", "new", "dir/new", "up/x", "root/tmp/x", "a/../x", "/tmp/x", "chain", ".git/x", "sub/.GIT"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r := tree(t, nil)
		if r.MayChange(name, []string{".git"}) != nil {
			return
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(r.dir, name)
		}
		dir := name // the nearest directory that is there
		real, err := filepath.EvalSymlinks(dir)
		for err != nil && len(dir) > 1 {
			dir = filepath.Dir(dir)
			real, err = filepath.EvalSymlinks(dir)
		}
		if real != r.dir && !strings.HasPrefix(real, r.dir+"/") {
			t.Errorf("%q may be changed, and lies in %s", name, real)
		}
		if strings.Contains(strings.ToLower("/"+name+"/"), "/.git/") {
			t.Errorf("%q may be changed", name)
		}
	})
}
