package verify

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestLeftoverHolder is no test: it is the other process of the test below. It makes a place for what is
// tried, says so, and is killed.
func TestLeftoverHolder(t *testing.T) {
	dir := os.Getenv("LEFTOVER_HOLDER_DIR")
	if dir == "" {
		return
	}
	v := &verification{Params: Params{TempDir: dir, Session: "0123456789ab", Now: time.Now, Tell: func(string) {}}}
	if err := v.makePlaces(t.Context()); err != nil {
		fmt.Println("failed:", err)
		return
	}
	fmt.Println(v.places.root)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// TestLeftovers: a verification that was killed leaves its directory, and the next one removes it, but
// nobody's who lives, and nothing that only has such a name.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	start := func() (root string, kill func()) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLeftoverHolder$")
		cmd.Env = append(os.Environ(), "LEFTOVER_HOLDER_DIR="+dir)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill = func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = stdin.Close() }
		t.Cleanup(kill)
		root, err = bufio.NewReader(stdout).ReadString('\n')
		if root = strings.TrimSpace(root); err != nil || filepath.Dir(root) != dir {
			t.Fatalf("the other process said %q: %v", root, err)
		}
		return root, kill
	}
	dead, kill := start()
	live, _ := start()
	kill()
	outside := t.TempDir()
	if err := os.WriteFile(outside+"/kept", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	young, old := dir+"/sandplan-verify-young", dir+"/sandplan-verify-old"
	for _, d := range []string{young, old, dir + "/another"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, dir+"/sandplan-verify-link"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/sandplan-verify-file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	strangers := os.Getuid() == 0 // nobody else can give a directory away
	foreign := dir + "/sandplan-verify-foreign"
	if strangers {
		if err := os.Mkdir(foreign, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(foreign, 4321, 4321); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(foreign, past, past); err != nil {
			t.Fatal(err)
		}
	}

	var told []string
	v := &verification{Params: Params{TempDir: dir, Session: "ba9876543210", Now: time.Now, Tell: func(s string) { told = append(told, s) }}}
	if err := v.makePlaces(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone := func(path string) bool { _, err := os.Lstat(path); return os.IsNotExist(err) }
	for _, path := range []string{dead, old} {
		if !gone(path) {
			t.Errorf("%s is left", path)
		}
		if !slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, path) }) {
			t.Errorf("nobody is told of %s: %q", path, told)
		}
	}
	kept := []string{live, young, dir + "/another", dir + "/sandplan-verify-link", dir + "/sandplan-verify-file", outside + "/kept", v.places.root}
	if strangers {
		kept = append(kept, foreign)
	}
	for _, path := range kept {
		if gone(path) {
			t.Errorf("%s was removed", path)
		}
	}
	if err := v.places.remove(); err != nil || !gone(v.places.root) {
		t.Errorf("its own places are left: %v", err)
	}
}
