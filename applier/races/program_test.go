package races

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// program stands in for sandplan's own program in containers. It speaks the protocol as that does, and
// proves nothing: what can be seen from the inside is tested on real engines.
func (w *world) program(p *dockertest.Process) int {
	if len(p.Args) == 0 { // somebody else's
		<-p.Killed
		return 137
	}
	held := wire.Hold(p.Stdin, wire.Silence)
	challenge, err := held.Challenge(context.Background())
	if err != nil {
		return 1
	}
	if p.Args[0] == "egress" {
		if wire.WriteReady(p.Stdout, wire.Ready{Nonce: challenge.Nonce, Listen: "listening", Checks: []wire.Check{{Name: "net.listen", OK: true}}}) != nil {
			return 1
		}
		<-held.Done()
		_, _ = p.Stdout.Write([]byte(`{"seq":1,"event":"end"}` + "\n"))
		return 0
	}
	w.started.Store(true)
	defer w.stopped.Store(true)
	return w.shim(p, held, challenge)
}

// shim is the agent's first process.
func (w *world) shim(p *dockertest.Process, held *wire.Lease, challenge wire.Challenge) int {
	exit := wire.Exit{Token: challenge.Token, By: wire.ByShim}
	if w.noReport {
		<-held.Done()
		return 1
	}
	held.AllowBundle()
	report := wire.Report{Nonce: challenge.Nonce, Checks: []wire.Check{{Name: "proc.user", OK: true}}}
	for target, source := range p.Mounts {
		var st syscall.Stat_t
		if err := syscall.Stat(source, &st); err != nil && !errors.Is(err, os.ErrNotExist) {
			return 1
		}
		report.Mounts = append(report.Mounts, wire.Mount{Path: target, Dev: uint64(st.Dev), Inode: st.Ino})
	}
	if wire.WriteReport(p.Stdout, report) != nil {
		return 1
	}
	end := func(err error) int {
		exit.Cause = wire.CauseLease
		if errors.Is(err, wire.ErrStopped) {
			exit.Cause = wire.CauseStop
		}
		_ = wire.WriteExit(p.Stderr, exit)
		return 1
	}
	if _, err := held.Bundle(context.Background()); err != nil {
		return end(err)
	}
	w.fed.Store(true)
	select {
	case <-held.Done():
		return end(held.Err())
	case <-w.end:
		exit.By = wire.ByAgent
		_ = wire.WriteExit(p.Stderr, exit)
		return 0
	}
}
