package docker

import (
	"slices"
	"strings"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// requireSeenInside connects a proxy to another network: whatever an engine shows of the container, it shows inside.
// The proxy says so, and so does whoever reads its line; a line without its checks is no better.
func (w *world) requireSeenInside(c *Compiled, proxy planner.Address, id string) {
	w.t.Helper()
	if err := w.engine.cli.NetworkConnect(w.t.Context(), "bridge", id, nil); err != nil {
		w.t.Fatal(err)
	}
	declared, err := c.Inside(proxy)
	if err != nil {
		w.t.Fatal(err)
	}
	ready, _ := w.readyLine(id)
	unchecked := ready
	unchecked.Checks = nil
	for who, wrong := range map[string][]wire.Check{"the proxy": ready.Failed(), "the reader": declared.Judge(unchecked)} {
		for _, name := range []string{"net.addresses", "net.routes"} {
			if !slices.ContainsFunc(wrong, func(c wire.Check) bool { return c.Name == name && strings.Contains(c.Detail, "eth") }) {
				w.t.Errorf("%s does not see by %s that %s is on a third network: %+v", who, name, proxy, wrong)
			}
		}
	}
}
