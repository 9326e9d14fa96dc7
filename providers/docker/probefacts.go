package docker

import (
	"strconv"
	"strings"

	"github.com/sandplan/sandplan/planner"
)

// Memories are the memory file systems of a container, by path, with their sizes in bytes.
func (c *Compiled) Memories(a planner.Address) map[string]int64 {
	out := map[string]int64{}
	var spec containerSpec
	switch d := c.desired[a].(type) {
	case containerSpec:
		spec = d
	default:
		return out
	}
	for path, options := range spec.host.Tmpfs {
		for _, o := range strings.Split(options, ",") {
			if size, ok := strings.CutPrefix(o, "size="); ok {
				if n, err := strconv.ParseInt(size, 10, 64); err == nil {
					out[path] = n
				}
			}
		}
	}
	if spec.host.ShmSize > 0 {
		out["/dev/shm"] = spec.host.ShmSize
	}
	return out
}

// Bridge is the name of the bridge that an invocation's network has on the host.
func (c *Compiled) Bridge(inv planner.Address) string {
	return bridgeName(c.scope, inv.With(planner.PartNetwork))
}
