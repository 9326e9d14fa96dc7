package docker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A file that somebody has a lease of, as an agent may of the worktree's .git, is not waited for.
func TestLeasedFileIsNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".git")
	write(t, path, "gitdir: /elsewhere\n")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = readSmall(path, 4096)
	if err == nil || !strings.Contains(err.Error(), "lease") {
		t.Errorf("the file is read, with %v", err)
	}
	if took := time.Since(began); took > 20*time.Second { // the kernel takes a lease away after 45
		t.Errorf("it took %s", took)
	}
}
