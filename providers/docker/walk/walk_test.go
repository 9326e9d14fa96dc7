package walk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandplan/sandplan/planner"
)

// make builds a tree: a path ending in / is a directory, "a -> b" a symlink, others files with a text.
func build(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func project(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	build(t, root, map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n", ".git/hooks/pre-commit": "#!/bin/sh\n", ".git/objects/ab/cd": "x",
		".claude/settings.json": "{}", "main.go": "package main\n", "sub/a.txt": "a", "lib/.git/config": "[core]\n", "lib/.git/objects/1": "x",
	})
	return root
}

func seen(t *testing.T, w *Walker) planner.Tree {
	t.Helper()
	tree, err := w.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestLookFindsWhatAnAgentLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(root string) error
		want   []string
		same   bool // the hash
		reason string
	}{
		"nothing":            {func(string) error { return nil }, nil, true, "a look changes nothing"},
		"a file":             {func(r string) error { return os.WriteFile(r+"/sub/b.txt", []byte("b"), 0o644) }, nil, false, "what agents are for"},
		"same size":          {func(r string) error { return os.WriteFile(r+"/sub/a.txt", []byte("b"), 0o644) }, nil, false, "content counts"},
		"mode":               {func(r string) error { return os.Chmod(r+"/main.go", 0o755) }, nil, false, "a program now"},
		"commit by the user": {func(r string) error { return os.WriteFile(r+"/.git/objects/ab/ef", []byte("y"), 0o644) }, nil, true, "objects run nothing"},
		"hook":               {func(r string) error { return os.WriteFile(r+"/.git/hooks/post-checkout", nil, 0o755) }, []string{`".git/hooks/post-checkout" is new`}, true, "the user's git runs it"},
		"config":             {func(r string) error { return os.WriteFile(r+"/.git/config", []byte("[x]\n"), 0o644) }, []string{`".git/config" is changed`}, true, "aliases, filters, fsmonitor"},
		"nested repository": {func(r string) error {
			return os.MkdirAll(r+"/sub/deep/.git/hooks", 0o755)
		}, []string{`"sub/deep/.git" is new`}, false, "git finds it when the user goes there"},
		"inside a nested one": {func(r string) error { return os.WriteFile(r+"/lib/.git/objects/2", nil, 0o644) }, []string{`"lib/.git" is changed`}, false, "not read-only to the agent"},
		"moved nested one":    {func(r string) error { return os.Rename(r+"/lib", r+"/lob") }, []string{`"lob/.git" is new`, `"lib/.git" is removed`}, false, "its directory was renamed"},
		"git file":            {func(r string) error { return os.WriteFile(r+"/sub/.git", []byte("gitdir: /tmp/x\n"), 0o644) }, []string{`"sub/.git" is new`}, false, "leads git elsewhere"},
		"git symlink":         {func(r string) error { return os.Symlink("../x", r+"/sub/.git") }, []string{`"sub/.git" is new`}, false, "leads git elsewhere"},
		"bare repository": {func(r string) error {
			build(t, r, map[string]string{"b/HEAD": "", "b/objects/x": "", "b/refs/x": ""})
			return nil
		}, []string{`"b" is new`}, false, "git takes it for one, and does what its config says"},
		"settings":    {func(r string) error { return os.WriteFile(r+"/.claude/settings.json", []byte(`{"hooks":{}}`), 0o644) }, []string{`".claude/settings.json" is changed`}, false, "hooks of the user's CLI"},
		"no settings": {func(r string) error { return os.RemoveAll(r + "/.claude") }, []string{`".claude" is removed`, `".claude/settings.json" is removed`}, false, "they may have forbidden something"},
		"servers":     {func(r string) error { return os.WriteFile(r+"/sub/.mcp.json", nil, 0o644) }, []string{`"sub/.mcp.json" is new`}, false, "programs that the CLI starts"},
		"codex":       {func(r string) error { return os.Mkdir(r+"/.Codex", 0o755) }, []string{`".Codex" is new`}, false, "case does not count everywhere"},
		"set-uid":     {func(r string) error { return os.Chmod(r+"/main.go", os.ModeSetuid|0o755) }, []string{`"main.go" is a set-id program`}, false, "runs as its owner"},
		"FIFO":        {func(r string) error { return syscall.Mkfifo(r+"/sub/f\x1b[2J", 0o600) }, []string{`"sub/f\x1b[2J" is a FIFO`}, false, "and its name is quoted"},
		"device":      {func(r string) error { return syscall.Mknod(r+"/null", syscall.S_IFCHR|0o666, 1<<8|3) }, []string{`"null" is a device`}, false, "hardware"},
		"symlink out": {func(r string) error { return os.Symlink("/etc", r+"/etc") }, nil, false, "told by its target, and not followed"},
	} {
		t.Run(name, func(t *testing.T) {
			root := project(t)
			w := New(root, DefaultLimits(), time.Now)
			before := seen(t, w)
			if err := c.do(root); err != nil {
				t.Fatal(err)
			}
			after := seen(t, w)
			var got []string
			for _, ch := range planner.MarkChanges(before.Marks, after.Marks) {
				got = append(got, ch.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q (%s)", got, c.want, c.reason)
			}
			if same := before.SHA256 == after.SHA256; same != c.same {
				t.Errorf("same hash: %v, want %v (%s)", same, c.same, c.reason)
			}
		})
	}
}

// TestTheMemoryOfAWalkerChangesNothing holds a walker that remembers against one that does not, over
// changes that keep size and modification time.
func TestTheMemoryOfAWalkerChangesNothing(t *testing.T) {
	root := project(t)
	later := func() time.Time { return time.Now().Add(time.Hour) } // nothing is too young to be remembered
	w := New(root, DefaultLimits(), later)
	first := seen(t, w)
	if len(w.known) == 0 {
		t.Fatal("nothing is remembered")
	}
	name := root + "/sub/a.txt"
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // a tick of the file system's clock
	if err := os.WriteFile(name, []byte("z"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	second, fresh := seen(t, w), seen(t, New(root, DefaultLimits(), time.Now))
	if second.SHA256 == first.SHA256 || second.SHA256 != fresh.SHA256 {
		t.Errorf("first %.8s, second %.8s, without memory %.8s", first.SHA256, second.SHA256, fresh.SHA256)
	}
}

// TestASlowLookChangesNothing: a file that is new when it is looked at for the first time is identified alike by both
// looks, even if one of them takes so long that it reads no further.
func TestASlowLookChangesNothing(t *testing.T) {
	for name, slow := range map[string]int{"the first": 1, "the second": 2} {
		root := t.TempDir()
		if err := os.WriteFile(root+"/.mcp.json", []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
		looks, asked := 0, 0
		w := New(root, DefaultLimits(), func() time.Time {
			now := time.Now()
			if asked++; looks == slow && asked == 1 { // when it began
				now = now.Add(-time.Minute)
			}
			return now
		})
		var marks [2][]planner.Mark
		for i := range marks {
			looks, asked = i+1, 0
			tree, err := w.Look(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			marks[i] = tree.Marks
		}
		if changes := planner.MarkChanges(marks[0], marks[1]); len(changes) > 0 || len(marks[0]) != 1 {
			t.Errorf("%s took long: %v of %v", name, changes, marks[0])
		}
	}
}

func TestSpecial(t *testing.T) {
	root := project(t)
	if marks, err := Special(t.Context(), root, DefaultLimits()); err != nil || len(marks) != 0 {
		t.Fatalf("%v, %v in a tree without any", marks, err)
	}
	if err := os.Symlink("/dev", root+"/dev"); err != nil { // leads to many devices, and is not followed
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(root+"/.git/f", 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", root+"/sub/s")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	marks, err := Special(t.Context(), root, DefaultLimits())
	want := []planner.Mark{{Path: ".git/f", Kind: planner.MarkFIFO}, {Path: "sub/s", Kind: planner.MarkSocket}}
	if err != nil || !slices.Equal(marks, want) {
		t.Errorf("%v, %v, want %v", marks, err, want)
	}
}

func TestHostileTrees(t *testing.T) {
	small := Limits{Entries: 100, Depth: 10, FileBytes: 1 << 20, Bytes: 2 << 20, Patience: time.Hour}
	for name, c := range map[string]struct {
		do     func(root string) error
		err    string
		unread int
		reason string
	}{
		"many entries": {func(r string) error {
			for i := range 200 {
				if err := os.Mkdir(fmt.Sprintf("%s/%d", r, i), 0o755); err != nil {
					return err
				}
			}
			return nil
		}, "more than the 100", 0, "something may hide behind them"},
		"deep": {func(r string) error { return os.MkdirAll(r+strings.Repeat("/d", 20), 0o755) }, "deeper than the 10 levels", 0, "directories without end"},
		"sparse": {func(r string) error {
			f, err := os.Create(r + "/sparse")
			if err != nil {
				return err
			}
			defer f.Close()
			return f.Truncate(1 << 40)
		}, "", 1, "a terabyte of nothing takes no time"},
		"much": {func(r string) error {
			for i := range 5 {
				if err := os.WriteFile(fmt.Sprintf("%s/%d", r, i), make([]byte, 900<<10), 0o644); err != nil {
					return err
				}
			}
			return nil
		}, "", 3, "what is read has a bound"},
		"loop": {func(r string) error { return os.Symlink(".", r+"/loop") }, "", 0, "symlinks are not followed"},
		"FIFO": {func(r string) error { return syscall.Mkfifo(r+"/f", 0o600) }, "", 0, "nobody ever opens the other end"},
		"leased": {func(r string) error {
			f, err := os.Create(r + "/leased")
			if err != nil {
				return err
			}
			t.Cleanup(func() { f.Close() })
			// Whoever opens it waits for up to 45 s, and one who does not want to wait is told to try again.
			_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
			return err
		}, "", 1, "it is told by its times, like what may not be read"},
		"newest": {func(r string) error { return os.Symlink("/etc/shadow", r+"/.mcp.json") }, "", 0, "guarded, and not followed"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := c.do(root); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // a lease would keep it waiting for 45
			defer cancel()
			tree, err := New(root, small, time.Now).Look(ctx)
			switch {
			case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("error %v, want %q (%s)", err, c.err, c.reason)
			case tree.Unread != c.unread:
				t.Errorf("%d files told by their times, want %d (%s)", tree.Unread, c.unread, c.reason)
			}
			_, err = Special(ctx, root, small)
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("the search for specials: %v, want %q (%s)", err, c.err, c.reason)
			}
		})
	}
}

// TestASwappedDirectoryIsNotFollowed replaces a directory by a symlink to another one over and over,
// while looks go on: none of them may ever see what the symlink leads to.
func TestASwappedDirectoryIsNotFollowed(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	if err := syscall.Mkfifo(outside+"/secret", 0o600); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Mkdir(root+"/d", 0o755)
			_ = os.Remove(root + "/d")
			_ = os.Symlink(outside, root+"/d")
			_ = os.Remove(root + "/d")
		}
	}()
	for range 500 {
		tree, err := New(root, DefaultLimits(), time.Now).Look(t.Context())
		if err != nil || len(tree.Marks) > 0 {
			t.Fatalf("%v, %v", tree.Marks, err)
		}
		if marks, err := Special(t.Context(), root, DefaultLimits()); err != nil || len(marks) > 0 {
			t.Fatalf("%v, %v", marks, err)
		}
	}
	close(stop)
	<-stopped
}

func TestALookEndsWithItsContext(t *testing.T) {
	root := t.TempDir()
	for i := range 300 {
		build(t, root, map[string]string{fmt.Sprint(i): "x"})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(root, DefaultLimits(), time.Now).Look(ctx); err == nil {
		t.Error("a look went on after the end of its context")
	}
	if _, err := Special(ctx, root, DefaultLimits()); err == nil {
		t.Error("the search for ways to the host went on after the end of its context")
	}
	bare := t.TempDir() // of directories alone, where nothing is read
	for i := range 300 {
		if err := os.Mkdir(filepath.Join(bare, fmt.Sprint(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := New(bare, DefaultLimits(), time.Now).Look(ctx); err == nil {
		t.Error("a look over directories went on after the end of its context")
	}
}

// TestOpenBelow: what was a file when it was looked at may be something else when it is opened.
func TestOpenBelow(t *testing.T) {
	root := t.TempDir()
	build(t, root, map[string]string{"file": "x", "sub/file": "x"})
	if err := errors.Join(syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600), os.Symlink("file", filepath.Join(root, "link")),
		os.Symlink("sub", filepath.Join(root, "linked"))); err != nil {
		t.Fatal(err)
	}
	dir, err := openRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(dir)
	for _, c := range []struct {
		name, reason string
		opens        bool
	}{
		{"file", "a file", true}, {"sub/file", "one below a directory", true},
		{"fifo", "it is not waited for whoever writes to it", true},
		{"link", "a symlink", false}, {"linked/file", "through a symlink", false},
		{"..", "out of it", false}, {"sub/../../x", "out of it", false}, {"/etc/passwd", "an absolute path", false},
	} {
		opened := make(chan error, 1)
		go func() {
			fd, err := openBelow(dir, c.name, 0)
			if err == nil {
				_ = syscall.Close(fd)
			}
			opened <- err
		}()
		select {
		case err := <-opened:
			if (err == nil) != c.opens {
				t.Errorf("%s (%s): %v", c.name, c.reason, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s (%s): it is waited for", c.name, c.reason)
		}
	}
}

func BenchmarkLookAgain(b *testing.B) {
	root := b.TempDir()
	for i := range 10_000 {
		if err := os.WriteFile(fmt.Sprintf("%s/%d", root, i), make([]byte, 1000), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	w := New(root, DefaultLimits(), func() time.Time { return time.Now().Add(time.Hour) })
	for b.Loop() {
		if _, err := w.Look(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSpecial(b *testing.B) {
	root := b.TempDir()
	for i := range 10_000 {
		if err := os.WriteFile(fmt.Sprintf("%s/%d", root, i), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := Special(b.Context(), root, DefaultLimits()); err != nil {
			b.Fatal(err)
		}
	}
}
