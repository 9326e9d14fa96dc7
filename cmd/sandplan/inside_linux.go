package main

import (
	"os"

	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker"
	"github.com/sandplan/sandplan/providers/docker/codex"
	"github.com/sandplan/sandplan/providers/docker/egress"
	"github.com/sandplan/sandplan/providers/docker/probe"
	"github.com/sandplan/sandplan/providers/docker/shim"
)

// inside runs what the same binary is in containers: the first process of agents, the proxy, what drives Codex, the
// probe, and the helper that sets up a bridge. In there no flag, no environment variable and no configuration has a say.
func inside(program string, args []string) (code int, mine bool) {
	switch program {
	case "shim":
		return shim.Main(args, os.Stdin, os.Stdout, os.Stderr), true
	case "egress":
		return egress.Main(args, os.Stdin, os.Stdout, os.Stderr), true
	case policy.CodexCommand:
		return codex.Main(args, os.Stdin, os.Stdout, os.Stderr), true
	case policy.ProbeCommand:
		return probe.Main(args, os.Stdin, os.Stdout, os.Stderr), true
	case "bridge":
		return docker.BridgeMain(args, os.Stdin, os.Stdout, os.Stderr), true
	}
	return 0, false
}
