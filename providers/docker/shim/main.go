//go:build linux

package shim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// Exit codes of the process. They are for people who look at a container; sandplan itself goes by the
// exit record.
const (
	exitOutput        = 119
	exitProof         = 121
	exitLease         = 122
	exitProxy         = 123
	exitTimeout       = 124
	exitUsage         = 125
	exitNotExecutable = 126
	exitNotFound      = 127
	exitStop          = 130
)

var causeCodes = map[wire.Cause]int{
	wire.CauseOutput: exitOutput, wire.CauseProof: exitProof, wire.CauseMount: exitProof, wire.CauseLease: exitLease,
	wire.CauseProxy: exitProxy, wire.CauseTimeout: exitTimeout, wire.CauseNotExecutable: exitNotExecutable,
	wire.CauseNotFound: exitNotFound, wire.CauseStop: exitStop, wire.CauseInternal: exitUsage,
}

// Main is the first process of a container: args is its one argument, a Config. It returns the exit
// code of the process.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// First of all: from here on nobody of the same user can trace this process or open its memory.
	hardened := harden()
	if len(args) != 1 {
		fmt.Fprintln(stderr, "sandplan: shim: it takes one argument, its configuration")
		return exitUsage
	}
	cfg, err := parseConfig(args[0])
	if err == nil {
		err = hardened
	}
	if err == nil && os.Getpid() != 1 {
		// At the end it kills every process that it can see.
		err = errors.New("it runs only as the first process of a container")
	}
	if err != nil {
		fmt.Fprintln(stderr, "sandplan: shim:", err)
		return exitUsage
	}
	reserveThreads(spareThreads)
	signals := make(chan os.Signal, 64)
	signal.Notify(signals) // all: a signal without a handler could end or stop the guard

	lease := wire.Hold(stdin, ms(cfg.Bounds.SilenceMS))
	challenge, err := lease.Challenge(context.Background())
	if err != nil {
		fmt.Fprintln(stderr, "sandplan: shim:", err)
		return exitLease
	}
	s := &session{cfg: cfg, lease: lease, challenge: challenge, stdout: stdout, stderr: stderr, signals: signals}
	exit := s.run()
	exit.Token = challenge.Token
	// The engine may have stopped reading. Without the record the run counts as failed, which it is.
	_ = within(writeBound, func() error { return wire.WriteExit(stderr, exit) })
	if exit.By == wire.ByAgent {
		return exit.Code
	}
	return causeCodes[exit.Cause]
}

// writeBound is how long the last words may take.
const writeBound = 5 * time.Second

// harden protects the process from others of its user, and its files from its children.
func harden() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("become undumpable: %w", err)
	}
	// No core file in the worktree, with the prompt or a credential in it.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("switch off core files: %w", err)
	}
	// An engine that leaks a descriptor into containers (CVE-2024-21626) must not hand it on.
	if err := unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("mark descriptors: %w", err)
	}
	return nil
}

// spareThreads are more than the guard ever blocks at once.
const spareThreads = 12

// reserveThreads makes threads that the runtime then keeps. It cannot go on when it needs one and the
// container's process limit, which counts threads, has been used up by what it guards.
func reserveThreads(n int) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			// Blocked in the kernel, so that the next one needs a thread of its own.
			_ = unix.Nanosleep(&unix.Timespec{Nsec: int64(5 * time.Millisecond)}, nil)
		})
	}
	wg.Wait()
}

// within runs f for at most d; f goes on in the background when that is not enough.
func within(d time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(d):
		return context.DeadlineExceeded
	}
}

// session is one life of the shim, from the challenge on.
type session struct {
	cfg       *Config
	lease     *wire.Lease
	challenge wire.Challenge
	stdout    io.Writer
	stderr    io.Writer
	signals   <-chan os.Signal
}

// run proves the sandbox, and executes the command if it is as declared and sandplan agrees.
func (s *session) run() wire.Exit {
	proof := prove(s.cfg, s.challenge)
	defer proof.resolver.close()
	failed := proof.report.Failed()
	if len(failed) == 0 {
		s.lease.AllowBundle()
	}
	if err := within(writeBound, func() error { return wire.WriteReport(s.stdout, proof.report) }); err != nil {
		return ended(wire.CauseInternal, fmt.Sprintf("write the report: %v", err))
	}
	if len(failed) > 0 {
		return ended(wire.CauseProof, failed[0].Name+": "+failed[0].Detail)
	}
	bundle, err := s.lease.Bundle(context.Background())
	if err != nil {
		return leaseEnd(err)
	}
	g := &guard{session: s, proof: proof}
	return g.run(bundle)
}

// ended is an end that the shim decided.
func ended(cause wire.Cause, detail string) wire.Exit {
	return wire.Exit{By: wire.ByShim, Cause: cause, Detail: detail}
}

// leaseEnd is the end that follows from the end of the lease.
func leaseEnd(err error) wire.Exit {
	if errors.Is(err, wire.ErrStopped) {
		return ended(wire.CauseStop, "")
	}
	return ended(wire.CauseLease, err.Error())
}
