//go:build linux

package shim

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// drainBound is how long the streams may take to end once every process that could write is dead.
const drainBound = 5 * time.Second

// guard watches over the command, from its start until nothing of it is left.
type guard struct {
	*session
	proof *proof

	cmd     *command
	out     *output
	outSeen atomic.Int64 // bytes that the command printed
	errSeen atomic.Int64
}

// run executes the command and returns how it ended.
func (g *guard) run(b wire.Bundle) wire.Exit {
	h, err := place(g.cfg, b)
	defer h.wipe()
	if err != nil {
		return ended(wire.CauseInternal, err.Error())
	}
	kills := oomKills()
	if err := g.start(h); err != nil {
		return startFailure(g.cfg, err)
	}
	h.forget(b)
	broken := make(chan wire.Exit, 1)
	stop := make(chan struct{})
	go g.watch(stop, broken)
	exit := g.supervise(broken)
	close(stop)
	exit.Stdout, exit.Stderr = g.outSeen.Load(), g.errSeen.Load()
	if exit.By == wire.ByAgent && exit.Signal == int(syscall.SIGKILL) && oomKills() > kills {
		exit.Detail = wire.OutOfMemory
	}
	return exit
}

// start executes the command with pipes for its output.
func (g *guard) start(h *handover) error {
	defer h.stdin.Close()
	outR, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer outW.Close()
	errR, errW, err := os.Pipe()
	if err != nil {
		outR.Close()
		return err
	}
	defer errW.Close()
	cmd, err := start(g.cfg, h.env, [3]*os.File{h.stdin, outW, errW})
	if err != nil {
		outR.Close()
		errR.Close()
		return err
	}
	g.cmd, g.out = cmd, newOutput(g.cfg.Bounds.Output)
	g.out.copy(g.stdout, outR, &g.outSeen)
	g.out.copy(g.stderr, errR, &g.errSeen)
	return nil
}

// supervise waits for whatever comes first, and leaves no process behind.
func (g *guard) supervise(broken <-chan wire.Exit) wire.Exit {
	deadline := time.NewTimer(ms(g.cfg.Bounds.TimeoutMS))
	defer deadline.Stop()
	for {
		select {
		case status := <-g.cmd.exited:
			return g.finish(byAgent(status))
		case <-deadline.C:
			return g.gently(ended(wire.CauseTimeout, fmt.Sprintf("the timeout of %s is over", ms(g.cfg.Bounds.TimeoutMS))))
		case <-g.lease.Done():
			// Somebody asked for it and waits, or nobody can be waiting any more.
			if exit := leaseEnd(g.lease.Err()); exit.Cause == wire.CauseStop {
				return g.gently(exit)
			}
			return g.finish(leaseEnd(g.lease.Err()))
		case <-g.out.full:
			return g.finish(ended(wire.CauseOutput, fmt.Sprintf("more than %d bytes of output", g.cfg.Bounds.Output)))
		case exit := <-broken:
			return g.finish(exit)
		case sig := <-g.signals:
			g.forward(sig)
		}
	}
}

// gently asks the command to end, and kills it after the grace or when the lease breaks meanwhile.
func (g *guard) gently(exit wire.Exit) wire.Exit {
	signalAll(syscall.SIGTERM)
	grace := time.NewTimer(ms(g.cfg.Bounds.GraceMS))
	defer grace.Stop()
	lease := g.lease.Done()
	if errors.Is(g.lease.Err(), wire.ErrStopped) {
		lease = nil // it is over, as asked
	}
	select {
	case <-g.cmd.exited:
	case <-grace.C:
	case <-lease:
	case <-g.out.full:
	}
	return g.finish(exit)
}

// finish kills what is left, waits until it is dead, and lets what was printed come through.
func (g *guard) finish(exit wire.Exit) wire.Exit {
	for again := time.Duration(0); ; again = 100 * time.Millisecond {
		signalAll(syscall.SIGKILL)
		if within(again+time.Millisecond, func() error { <-g.cmd.empty; return nil }) == nil {
			break
		}
	}
	select {
	case <-g.out.drained():
	case <-time.After(drainBound): // the engine does not read; what it has is all there will be
	}
	return exit
}

// forward passes on what the engine was asked to send. The command's own group gets it, as from a
// terminal. Signals that the kernel or the runtime sends to this process stay here.
func (g *guard) forward(sig os.Signal) {
	switch s := sig.(syscall.Signal); s {
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2:
		_ = syscall.Kill(-g.cmd.pid, s)
	}
}

// byAgent is the end that the command chose itself.
func byAgent(status syscall.WaitStatus) wire.Exit {
	if status.Signaled() {
		n := int(status.Signal())
		return wire.Exit{By: wire.ByAgent, Code: 128 + n, Signal: n}
	}
	return wire.Exit{By: wire.ByAgent, Code: status.ExitStatus()}
}
