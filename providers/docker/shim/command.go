//go:build linux

package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// command is the declared command as a process, and everything that it leaves behind.
type command struct {
	pid    int
	exited chan syscall.WaitStatus // one value: how the command itself ended
	empty  chan struct{}           // closed when no process but this one is left
}

// start executes the command with an environment and three descriptors, and reaps whatever ends from
// then on: process 1 inherits all orphans.
func start(cfg *Config, env []string, stdio [3]*os.File) (*command, error) {
	c := &command{exited: make(chan syscall.WaitStatus, 1), empty: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The parent-death signal follows the thread that made the child, so that thread must stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		pid, err := syscall.ForkExec(executable(cfg), cfg.Argv, &syscall.ProcAttr{
			Dir:   cfg.Dir,
			Env:   env,
			Files: []uintptr{stdio[0].Fd(), stdio[1].Fd(), stdio[2].Fd()},
			// A session of its own: it cannot join the process group of process 1.
			Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
		})
		c.pid = pid
		started <- err
		if err == nil {
			c.reap()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	c.preferAsVictim()
	return c, nil
}

// executable is the file of the command: a bare name is looked up in the command's own PATH.
func executable(cfg *Config) string {
	name := cfg.Argv[0]
	if strings.Contains(name, "/") {
		return name
	}
	for _, kv := range cfg.Env {
		dirs, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range strings.Split(dirs, ":") {
			// A relative directory would look into the worktree.
			file := path.Join(dir, name)
			if info, err := os.Stat(file); path.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return file
			}
		}
	}
	return "" // which the kernel does not find
}

// reap waits for every child, adopted ones too, until there is none.
func (c *command) reap() {
	defer close(c.empty)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return // ECHILD: nobody is left
		case pid == c.pid:
			c.exited <- status
		}
	}
}

// preferAsVictim lets the kernel kill the command rather than the shim when memory runs out: then the
// shim can still tell what happened. Failure only makes that less likely.
func (c *command) preferAsVictim() {
	const first = "1000"
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", c.pid), []byte(first), 0)
}

// signalAll sends a signal to every process of the container but this one.
func signalAll(sig syscall.Signal) {
	if os.Getpid() != 1 {
		panic("the shim is not process 1: it would signal the whole machine")
	}
	_ = unix.Kill(-1, sig)
}

// startFailure is the end of a command that could not be executed.
func startFailure(cfg *Config, err error) wire.Exit {
	cause := wire.CauseNotExecutable
	if errors.Is(err, fs.ErrNotExist) {
		// The file may be there, and its interpreter or loader not.
		if _, statErr := os.Stat(executable(cfg)); statErr == nil {
			return ended(cause, fmt.Sprintf("%s: its interpreter or loader does not exist", cfg.Argv[0]))
		}
		cause = wire.CauseNotFound
	}
	return ended(cause, fmt.Sprintf("%s: %v", cfg.Argv[0], err))
}
