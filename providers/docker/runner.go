package docker

import "github.com/sandplan/sandplan/planner"

// desiredRunner is the container of one approved command of an invocation's phase: as the agent's, with
// no network at all.
type desiredRunner struct{ sandbox }

func (d desiredRunner) container() (containerSpec, error) { return d.spec(nil) }

func runnerRows() []row {
	rows := append(sandboxRows(), endpointRows(roleNone)...)
	for i := range rows {
		if rows[i].path == "Config.Cmd[1].argv" {
			rows[i].attr = "argv"
		}
		if rows[i].path == "HostConfig.NetworkMode" {
			rows[i].label, rows[i].show = "network", planner.Headline
		}
	}
	return rows
}

func runnerKind() kind {
	k := containerKind(planner.KindRunner, runnerRows())
	k.needs = func(planner.Address) []planner.Address { return []planner.Address{planner.AddrShim} }
	return k
}
