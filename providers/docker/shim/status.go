//go:build linux

package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// status is what /proc/self/status says, as far as a sandbox shows in it.
type status struct {
	uids, gids, groups  []int
	caps                map[string]string
	noNewPrivs, seccomp int
}

// capNames are the capability sets as checks name them.
var capNames = map[string]string{
	"CapInh": "cap_inh", "CapPrm": "cap_prm", "CapEff": "cap_eff", "CapBnd": "cap_bnd", "CapAmb": "cap_amb",
}

// parseStatus reads /proc/self/status. A line that is absent leaves a value that no check accepts.
func parseStatus(text string) (status, error) {
	st := status{caps: map[string]string{}, noNewPrivs: -1, seccomp: -1}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		var err error
		switch key {
		case "Uid":
			st.uids, err = ints(value)
		case "Gid":
			st.gids, err = ints(value)
		case "Groups":
			st.groups, err = ints(value)
		case "NoNewPrivs":
			st.noNewPrivs, err = strconv.Atoi(value)
		case "Seccomp":
			st.seccomp, err = strconv.Atoi(value)
		default:
			if _, known := capNames[key]; known {
				st.caps[key] = value
			}
		}
		if err != nil {
			return status{}, fmt.Errorf("%s of /proc/self/status: %w", key, err)
		}
	}
	return st, nil
}

func ints(s string) ([]int, error) {
	var out []int
	for _, f := range strings.Fields(s) {
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// allUIDs reports whether the real, effective, saved and file system IDs all are id.
func (s status) allUIDs(id int) bool { return four(s.uids, id) }
func (s status) allGIDs(id int) bool { return four(s.gids, id) }

func four(ids []int, id int) bool {
	for _, got := range ids {
		if got != id {
			return false
		}
	}
	return len(ids) == 4
}

func (s status) process() wire.Process {
	p := wire.Process{UID: -1, GID: -1, Groups: s.groups, CapEff: s.caps["CapEff"], CapBnd: s.caps["CapBnd"],
		NoNewPrivs: s.noNewPrivs == 1, Seccomp: s.seccomp}
	if len(s.uids) == 4 && len(s.gids) == 4 {
		p.UID, p.GID = s.uids[1], s.gids[1]
	}
	return p
}

// otherProcesses are the processes that can be seen besides this one: somebody's exec, or those of
// another PID namespace.
func otherProcesses() ([]string, error) {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range list {
		if _, err := strconv.Atoi(e.Name()); err == nil && e.Name() != strconv.Itoa(os.Getpid()) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// leakedDescriptors are descriptors beyond standard error that stand for files or directories: ways
// out of the container that a mistake of the engine left open. The shim opens none before this.
func leakedDescriptors() ([]string, error) {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range list {
		n, err := strconv.Atoi(e.Name())
		if err != nil || n <= 2 {
			continue
		}
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // the listing itself
		}
		if err != nil {
			return nil, err
		}
		// The Go runtime keeps its CPU limit open, to follow it.
		if strings.HasPrefix(to, "/") && !strings.HasPrefix(to, cgroupDir+"/") {
			out = append(out, e.Name()+" → "+to)
		}
	}
	return out, nil
}
