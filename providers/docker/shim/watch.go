//go:build linux

package shim

import (
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

const (
	// watchEvery is how often the sandbox is looked at again while the command runs.
	watchEvery = time.Second
	// proxyAlive is how long the proxy may take to accept a connection; it may miss one in a row.
	proxyAlive = time.Second
)

// watch looks whether the sandbox still is what was proven, until stop is closed. It sends one end.
func (g *guard) watch(stop <-chan struct{}, broken chan<- wire.Exit) {
	report := func(exit wire.Exit) {
		select {
		case broken <- exit:
		default: // another one was first
		}
	}
	go watchMounts(g.proof.mounts, stop, report)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	missed := 0
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		if why := g.networkChanged(); why != "" {
			report(ended(wire.CauseProof, why))
			return
		}
		if g.cfg.Network == nil {
			continue
		}
		conn, err := net.DialTimeout("tcp", g.cfg.Network.Proxy, proxyAlive)
		if err == nil {
			conn.Close()
			missed = 0
			continue
		}
		if missed++; missed > 1 {
			report(ended(wire.CauseProxy, err.Error()))
			return
		}
	}
}

// networkChanged compares the interfaces with those of the proof, and the neighbours with none but
// the proxy: an engine can connect a running container to a further network.
func (g *guard) networkChanged() string {
	links, err := readLinks()
	if err != nil {
		return err.Error()
	}
	same := slices.EqualFunc(links, g.proof.links, func(a, b link) bool {
		return a.index == b.index && a.name == b.name && a.mac == b.mac && slices.Equal(a.addresses, b.addresses)
	})
	if !same {
		return "the interfaces have changed: " + wrongLinks(links, g.cfg.Network)
	}
	neighbours, err := readNeighbours(links)
	if err != nil {
		return err.Error()
	}
	if wrong := wrongNeighbours(neighbours, g.cfg.Network); len(wrong) > 0 {
		return wrong[0]
	}
	return ""
}

// watchMounts ends the run when a mount goes away or another comes. A host that removes the directory
// under a read-only mount takes the mount with it, and what it makes anew in its place is writable.
func watchMounts(was []mountLine, stop <-chan struct{}, report func(wire.Exit)) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		report(ended(wire.CauseMount, err.Error()))
		return
	}
	defer f.Close()
	for {
		select {
		case <-stop:
			return
		default:
		}
		is, err := readMounts()
		if err != nil {
			report(ended(wire.CauseMount, err.Error()))
			return
		}
		if why := changedMounts(was, is); why != "" {
			report(ended(wire.CauseMount, why))
			return
		}
		// The kernel wakes who polls this file for POLLPRI when a mount comes or goes.
		fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}
		_, _ = unix.Poll(fds, int(watchEvery.Milliseconds()))
	}
}
