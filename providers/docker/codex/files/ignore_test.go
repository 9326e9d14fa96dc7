package files

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// asGitDoes is what git itself ignores of some files, with the .gitignore files of a directory.
func asGitDoes(t testing.TB, dir string, names []string) map[string]bool {
	t.Helper()
	cmd := exec.Command("git", "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "--stdin", "-z")
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(strings.Join(names, "\x00") + "\x00")
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: none is ignored
		t.Fatalf("git check-ignore: %v", err)
	}
	got := map[string]bool{}
	for _, name := range strings.Split(string(out), "\x00") {
		got[name] = true
	}
	return got
}

// repository is a directory that git takes for a repository, which needs no more than this.
func repository(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{".git/objects", ".git/refs"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, dir, map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\trepositoryformatversion = 0\n"})
	return dir
}

func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// asSearchDoes is what a search leaves out: what is ignored, and what lies in a directory that is.
func asSearchDoes(t testing.TB, r *Reader, name string) bool {
	rules := r.rulesOf(nil, ".")
	parts := strings.Split(name, "/")
	for i := range parts {
		at := path.Join(parts[:i+1]...)
		info, err := r.root.Stat(at)
		if err != nil {
			t.Fatal(err)
		}
		isDir := info.IsDir()
		if ignored(t.Context(), rules, at, isDir) {
			return true
		}
		if isDir {
			rules = r.rulesOf(rules, at)
		}
	}
	return false
}

// TestIgnoredAsGitDoes holds the rules against git's own reading of them.
func TestIgnoredAsGitDoes(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	files := map[string]string{}
	for _, name := range []string{"a/a", "b", "a.o", "a/b/b", "a/b.o", "x/a/b", "x/b", "a/x/b", "a/x/y/b", "d/e/f", "#x", "!x", "[", "a[", "a\\", "a\\b", "x ", "x  ", "a*b", "c/d",
		"abc", "a-c", "a]c", "a^c", "a!c", "A", "é", "aéb", "ab/c", "a/ab", ".git2", "sub/deep/x", "sub/x", "sub/keep.log", "x.log", "\t", "a\nb", "**", "a**b", "x/**/y", "z/]", "z/-", "z/0"} {
		files[name] = "x"
	}
	put(t, dir, files)
	var names []string
	if err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if name == ".git" {
			return fs.SkipDir
		}
		if name != "." {
			names = append(names, name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	rules := []string{"*.o", "/*.o", "a/b", "/a", "**/b", "a/**", "a/**/b", "a/*/b", "d/", "d", "[ab]", "[!ab]", "[^ab]", "[a-c]bc", "a[]-]c", "a[!]]c", "a[a-]c", "[", "a[", "a[b", "a\\", `a\\`, `a\b`,
		`\#x`, `\!x`, "#x", "!x", "x ", `x\ `, `x\  `, "a?c", "?", "*", "**", "a**b", "**/", "/**", "**/**", "x/**/y", "[[:alpha:]]", "[[:digit:][:punct:]]", "[[:nope:]]", "a[[:punct:]]c", "[[:alpha:]",
		"é", "a?b", "a??b", "[é]", "/", "//", "a//b", " ", "\t", "*/", "*/*", "**a", "a*", "*b*", `\*`, `\[`, `[\]]`, `a[\^]c`, "[a-", "[z-a]", "a[-]c", "a[+--]c", "ab/", "/ab/", "x/a", "deep", "sub/", "sub/deep", "*.log\r"}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	compare := func(what string, files map[string]string) {
		put(t, dir, files)
		want := asGitDoes(t, dir, names)
		for _, name := range names {
			if got := asSearchDoes(t, r, name); got != want[name] {
				t.Errorf("%s: %q is ignored: %t, with git %t", what, name, got, want[name])
			}
		}
	}
	for _, rule := range rules {
		compare(fmt.Sprintf("%q", rule), map[string]string{".gitignore": rule + "\n"})
	}
	// Several at once, some of which take back what others say, in two directories.
	random := rand.New(rand.NewPCG(5, 8))
	pick := func() string {
		var b strings.Builder
		for range 1 + random.IntN(4) {
			if random.IntN(3) == 0 {
				b.WriteByte('!')
			}
			b.WriteString(rules[random.IntN(len(rules))] + "\n")
		}
		return b.String()
	}
	for range 60 {
		top, sub := pick(), pick()
		compare(fmt.Sprintf("%q and %q", top, sub), map[string]string{".gitignore": top, "sub/.gitignore": sub, "a/.gitignore": sub})
	}
}

// FuzzIgnore: no rule of a hostile worktree makes matching fail, or take long.
func FuzzIgnore(f *testing.F) {
	for _, rule := range []string{"*.o", "a/**/b", "[[:alpha:]", "[a-\\", strings.Repeat("*a", 400) + "b", strings.Repeat("**/", 300) + "x", "!" + strings.Repeat("[", 500)} {
		f.Add(".", rule, "a/b")
		f.Add("a", rule, strings.Repeat("a", 255))
	}
	f.Fuzz(func(t *testing.T, dir, line, name string) {
		r, ok := parseRule(dir, line)
		if !ok {
			return
		}
		ignored(t.Context(), []rule{r}, name, true)
		if plain := strings.Join(r.parts, "/"); r.anchored && r.dir == "" && !strings.ContainsAny(plain, `*?[\`) && r.matches(name) != (name == plain) {
			t.Errorf("%q matches %q: %t", line, name, r.matches(name))
		}
	})
}
