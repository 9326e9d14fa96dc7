//go:build sandplantest

package docker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// TestObserveOnce is no test: it is the process that the test below kills.
func TestObserveOnce(t *testing.T) {
	if os.Getenv("SANDPLAN_TEST_CALLS") == "" {
		return
	}
	e, err := Open(t.Context(), Options{Host: "unix://" + dockertest.Socket(t), Getenv: os.Getenv, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Observe(t.Context(), planner.Scope{Project: "dc-none", Workspace: "w"}); err != nil {
		t.Fatal(err)
	}
}

func TestKillAt(t *testing.T) {
	calls := filepath.Join(t.TempDir(), "calls")
	run := func(killAt string) error {
		cmd := exec.Command(os.Args[0], "-test.run=^TestObserveOnce$")
		cmd.Env = append(os.Environ(), "SANDPLAN_TEST_CALLS="+calls, "SANDPLAN_TEST_KILL_AT="+killAt)
		return cmd.Run()
	}
	read := func() string {
		raw, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(raw))
	}
	if err := run(""); err != nil {
		t.Fatal(err)
	}
	// Ping, info and three lists, which are read again while others make and remove networks.
	if undisturbed, err := strconv.Atoi(read()); err != nil || undisturbed < 5 {
		t.Errorf("an undisturbed look counts %d calls, %v", undisturbed, err)
	}
	for _, at := range []string{"1", "2", "4"} {
		err := run(at)
		exit, ok := err.(*exec.ExitError)
		if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || read() != at {
			t.Errorf("to be killed after call %s: %v after call %s", at, err, read())
		}
	}
}
