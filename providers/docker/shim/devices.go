//go:build linux

package shim

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// engineDevices are the device nodes of every container. Other devices are no mounts, so that the
// mount table does not show them.
var engineDevices = []string{"full", "null", "ptmx", "random", "tty", "urandom", "zero"}

// proveDevices looks for device nodes that no container has by itself.
func proveDevices() checks {
	var c checks
	list, err := os.ReadDir("/dev")
	if err != nil {
		c.fail("devices", err)
		return c
	}
	var wrong []string
	for _, e := range list {
		// What else stands there are links, and directories with mounts of their own.
		device := e.Type()&(fs.ModeDevice|fs.ModeCharDevice) != 0
		directory := e.IsDir() && !slices.Contains([]string{"mqueue", "pts", "shm"}, e.Name())
		if device && !slices.Contains(engineDevices, e.Name()) || directory {
			wrong = append(wrong, fmt.Sprintf("/dev/%s is not declared", e.Name()))
		}
	}
	c.add("devices", len(wrong) == 0, "%s", strings.Join(wrong, "; "))
	return c
}
