package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// bounded is far above the limit of a call, for machines that do something else too, and far below what a call
// takes that is not held to it.
const bounded = 2 * time.Minute

func TestHostilePatterns(t *testing.T) {
	t.Parallel()
	r := tree(t, map[string]string{"long": strings.Repeat("ab", 1<<20), "lines": strings.Repeat("aaaaaaaaaaaaaaaab\n", 100_000)})
	r.limit = time.Second
	for _, c := range []struct{ reason, pattern, fails string }{
		{"repetitions that multiply", strings.Repeat(".{0,999}", 120), "repeat less"},
		{"repetitions of repetitions", "((a{0,30}){0,30}){0,30}c", "the pattern"},
		{"classes, many of them", strings.Repeat(`(\pL|\pN)`, 100), ""},
		{"what takes others for ever", "(a+)+$", ""},
		{"the same, upside down", "(a|aa)+c", ""},
		{"hundreds of ways at once", ".{0,400}c", ""},
		{"nothing at all", "()*", ""},
		{"a look behind", "(?<=a)b", "the pattern"},
		{"a reference back", `(a)\1`, "the pattern"},
		{"deep brackets", strings.Repeat("(", 400) + strings.Repeat(")", 400), ""},
		{"no UTF-8", "\xff\xfe", ""},
		{"a NUL", "a\x00b", ""},
	} {
		began := time.Now()
		got, err := call(t, r, Search, object{"pattern": c.pattern, "ignore_case": true})
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %.100q, %v; want %q in the error", c.reason, got, err, c.fails)
		}
		if took := time.Since(began); took > bounded {
			t.Errorf("%s: takes %s", c.reason, took)
		}
	}
}

func TestLongLinesAreSearchedInPieces(t *testing.T) {
	t.Parallel()
	far := strings.Repeat("x", 3*maxPiece) + "needle" + strings.Repeat("y", 100)
	lines := strings.Repeat("some line of text\n", 10_000) + "needle\n" + strings.Repeat("é", maxPiece) + "\nneedle again"
	r := tree(t, map[string]string{"far": far, "lines": lines})
	if got, err := call(t, r, Search, object{"pattern": "needle", "path": "far"}); err != nil || !strings.HasPrefix(got, "far:1:") || len(got) > maxLine+20 {
		t.Errorf("%.100q (%d bytes), %v", got, len(got), err)
	}
	want := "lines:10001:needle\nlines:10003:needle again\n"
	for _, pattern := range []string{"needle", "^needle"} {
		if got, err := call(t, r, Search, object{"pattern": pattern, "path": "lines"}); err != nil || got != want {
			t.Errorf("%q: %.200q, %v; want %q", pattern, got, err, want)
		}
	}
}

// TestHostileIgnoreFiles: in each of many directories as many rules as fit, each as slow as can be.
func TestHostileIgnoreFiles(t *testing.T) {
	for _, c := range []struct{ reason, rule string }{
		{"stars", strings.Repeat("*a", 400) + "b"},
		{"directories", strings.Repeat("**/a*/", 160) + "b"},
		{"classes", strings.Repeat("[a-z]", 190)},
		{"short ones", "*q"},
	} {
		files := map[string]string{}
		ignore := strings.Repeat(c.rule+"\n", maxIgnoreFile/(len(c.rule)+1))
		dir := ""
		for range 40 {
			dir = filepath.Join(dir, strings.Repeat("a", 80))
			files[filepath.Join(dir, ignoreFile)] = ignore
			for i := range 20 {
				files[filepath.Join(dir, fmt.Sprintf("%s%d", strings.Repeat("a", 200), i))] = "needle\n"
			}
		}
		r := tree(t, files)
		r.limit = time.Second
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		got, err := call(t, r, Search, object{"pattern": "needle"})
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		if err != nil || took > bounded {
			t.Errorf("%s: %.100q, %v after %s", c.reason, got, err, took)
		}
		used := (after.TotalAlloc - before.TotalAlloc) >> 20
		if t.Logf("%s: %s, %d MiB", c.reason, took, used); used > 400 {
			t.Errorf("%s: %d MiB", c.reason, used)
		}
	}
}

func TestManyLinesTakeNoMoreThanTheirFile(t *testing.T) {
	r := tree(t, map[string]string{"lines": strings.Repeat("\n", maxFile)})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := call(t, r, ReadFile, object{"path": "lines", "offset": maxFile - 1})
	runtime.ReadMemStats(&after)
	if want := fmt.Sprintf("\n\n\n(lines %d to %d of %[2]d; read on with offset)", maxFile-1, maxFile); err != nil || got != want {
		t.Errorf("%.100q, %v; want %q", got, err, want)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 8*maxFile {
		t.Errorf("%d bytes for a file of %d", used, maxFile)
	}
}

// TestSwappedWhileRead: whoever has the worktree on the host may exchange what lies on a path at any moment.
// No answer may hold what is outside.
func TestSwappedWhileRead(t *testing.T) {
	t.Parallel()
	r := tree(t, map[string]string{"swap/secret.txt": "inside", "other/x": "inside"})
	path := func(name string) string { return filepath.Join(r.dir, name) }
	for link, target := range map[string]string{"link": "../outside", "deep": "up/outside"} {
		if err := os.Symlink(target, path(link)); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			// Directory and link change places at once: no moment has neither.
			if err := unix.Renameat2(unix.AT_FDCWD, path("swap"), unix.AT_FDCWD, path([]string{"link", "deep", "other"}[i%3]), unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
		}
	})
	inside, refused, end := 0, 0, time.Now().Add(bounded)
	for i := 0; i < 3000 || (inside == 0 || refused == 0) && time.Now().Before(end); i++ {
		for tool, arguments := range map[string]object{
			ReadFile: {"path": "swap/secret.txt"}, ListDir: {"path": "swap"}, Search: {"path": "swap", "pattern": "SECRET|inside"},
		} {
			got, err := call(t, r, tool, arguments)
			if strings.Contains(got, secret) || err != nil && strings.Contains(err.Error(), secret) {
				t.Fatalf("%s: %q, %v", tool, got, err)
			}
			if err == nil {
				inside++
			} else {
				refused++
			}
		}
	}
	close(stop)
	done.Wait()
	if inside == 0 || refused == 0 {
		t.Errorf("nothing was exchanged while it was read: %d answers, %d errors", inside, refused)
	}
}

func TestStrangeTrees(t *testing.T) {
	t.Parallel()
	r := tree(t, nil)
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.MkdirAll(strings.Repeat("d/", 1500), 0o755); err != nil { // deeper than a path can name
		t.Fatal(err)
	}
	if err := root.WriteFile(strings.Repeat("d/", 60)+"near", []byte("needle"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile(strings.Repeat("d/", 100)+"far", []byte("needle"), 0o644); err != nil {
		t.Fatal(err)
	}
	many := filepath.Join(r.dir, "many")
	if err := os.Mkdir(many, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range maxEntries + 50 {
		if err := os.WriteFile(filepath.Join(many, fmt.Sprintf("f%05d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(r.dir, "\xff\xfe\x1b[2J"), []byte("needle"), 0o644); err != nil {
		t.Fatal(err)
	}
	sparse := filepath.Join(r.dir, "sparse")
	if err := errors.Join(os.WriteFile(sparse, nil, 0o644), os.Truncate(sparse, 1<<40)); err != nil {
		t.Fatal(err)
	}
	if l, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0); err == nil {
		defer syscall.Close(l)
		_ = syscall.Bind(l, &syscall.SockaddrUnix{Name: filepath.Join(r.dir, "sock")})
	}
	for _, c := range []struct {
		reason, tool string
		arguments    object
		want, fail   string
	}{
		{"as deep as it goes", Search, object{"pattern": "needle"}, strings.Repeat("d/", 60) + "near:1:needle\n\"\\xff\\xfe\\x1b[2J\":1:needle\n(2 files", ""},
		{"deeper, when it is asked for", Search, object{"pattern": "needle", "path": strings.Repeat("d/", 100)}, strings.Repeat("d/", 100) + "far:1:needle\n", ""},
		{"at the very end", ListDir, object{"path": strings.Repeat("d/", 1500)}, "(empty)\n", ""},
		{"a directory of many", ListDir, object{"path": "many"}, fmt.Sprintf("(only the first %d entries", maxEntries), ""},
		{"a name that would move the cursor", ListDir, object{"path": "."}, "\"\\xff\\xfe\\x1b[2J\"\n", ""},
		{"a file of a terabyte", ReadFile, object{"path": "sparse"}, "", "more than the"},
		{"a socket", ReadFile, object{"path": "sock"}, "", "\"sock\""},
	} {
		got, err := call(t, r, c.tool, c.arguments)
		switch {
		case c.fail == "" && (err != nil || !strings.Contains(got, c.want)):
			t.Errorf("%s: %.300q, %v; want %q in it", c.reason, got, err, c.want)
		case c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)):
			t.Errorf("%s: %v, want %q in it", c.reason, err, c.fail)
		case len(got) > 2*maxAnswer:
			t.Errorf("%s: an answer of %d bytes", c.reason, len(got))
		}
	}
}
