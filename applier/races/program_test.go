package races

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
	"github.com/sandplan/sandplan/providers/docker/egress"
	"github.com/sandplan/sandplan/providers/docker/shim/inside"
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
		ready, err := readyLine(p.Args[1], challenge.Nonce)
		if err != nil || wire.WriteReady(p.Stdout, ready) != nil {
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

// readyLine is what a proxy says that has found everything that its argument declares.
func readyLine(arg, nonce string) (wire.Ready, error) {
	cfg, err := egress.ParseConfig(arg)
	if err != nil {
		return wire.Ready{}, err
	}
	r := wire.Ready{Nonce: nonce, Listen: cfg.Listen}
	for i, a := range cfg.Addresses {
		own, err := netip.ParsePrefix(a)
		if err != nil {
			return r, err
		}
		link := fmt.Sprintf("eth%d", i)
		r.Addresses = append(r.Addresses, wire.Address{Interface: link, Prefix: a})
		r.Routes = append(r.Routes, wire.Route{Interface: link, Dest: own.Masked().String()})
		r.Hosts += own.Addr().String() + "\t" + egress.Hostname + "\n"
	}
	r.Routes = append(r.Routes, wire.Route{Interface: "eth0", Dest: "0.0.0.0/0", Gateway: cfg.Gateway})
	for _, s := range cfg.Nameservers {
		r.ResolvConf += "nameserver " + s + "\n"
	}
	for _, c := range cfg.Inside().Checks(inside.Status{}, nil, r) {
		r.Checks = append(r.Checks, wire.Check{Name: c.Name, OK: true})
	}
	return r, nil
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
