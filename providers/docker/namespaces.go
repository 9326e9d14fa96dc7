package docker

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// apart says in which namespaces the process behind the engine's socket is not ours, as far as can be
// seen: worktrees, routes and bridge settings that are read here would not be the engine's.
type apart struct {
	// known is false when the process cannot be looked at: it takes root.
	known bool
	names []string // "network", "mount"
}

// namespacesOf compares this process with the one that listens on a socket.
func namespacesOf(socket, proc string) apart {
	// The peer is whoever called listen: the engine itself, or the init that started it by socket, and
	// both are where the engine is.
	pid, err := peerPID(socket)
	if err != nil || pid <= 0 { // 0: a process that is not visible from here
		return apart{}
	}
	out := apart{known: true}
	for _, ns := range []struct{ file, name string }{{"net", "network"}, {"mnt", "mount"}} {
		theirs, err := os.Readlink(fmt.Sprintf("%s/%d/ns/%s", proc, pid, ns.file))
		if err != nil {
			return apart{}
		}
		ours, err := os.Readlink(proc + "/self/ns/" + ns.file)
		if err != nil {
			return apart{}
		}
		if theirs != ours {
			out.names = append(out.names, ns.name)
		}
	}
	return out
}

func peerPID(socket string) (int, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return peerOf(conn.(*net.UnixConn))
}

// checkNamespaces notes what only an apply can prove, and what cannot be trusted at all.
func (l *look) checkNamespaces() {
	a := l.engine.apart
	switch {
	case !a.known:
		l.note("whether the engine shares this machine's file system and network: checked at apply")
	case len(a.names) > 0:
		l.note("the engine runs in another %s namespace: worktrees, routes and bridge settings seen from here are not its own; "+
			"run sandplan where the engine runs", strings.Join(a.names, " and "))
	}
}
