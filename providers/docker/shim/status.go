//go:build linux

package shim

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

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
