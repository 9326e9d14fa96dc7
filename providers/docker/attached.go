package docker

import (
	"context"

	"github.com/sandplan/sandplan/planner"
)

// strangers are the containers on a network that have no business there: those that are attached now,
// and those that will be when they start, which no list of endpoints names.
func strangers(ctx context.Context, l *look, v tree) (map[string]any, error) {
	id, _ := readIdentity(labelsOf(v["Labels"]))
	out := map[string]any{}
	endpoints, _ := dict(v["Containers"]).(map[string]any)
	for _, container := range sortedKeys(endpoints) {
		if belongs(id.address, l.refs[container]) {
			continue
		}
		stranger, err := l.isStranger(ctx, v, container, endpoints[container])
		if err != nil {
			return nil, err
		}
		if stranger {
			out[container] = endpoints[container]
		}
	}
	// 20.10 keeps what it was given: the ID where we bind, the name where people do, and it starts a
	// container on whatever has that name by then.
	for _, key := range []string{treeID(v), treeName(v)} {
		for container, name := range l.joining[key] {
			if out[container] == nil && !belongs(id.address, l.refs[container]) {
				out[container] = map[string]any{"Name": name}
			}
		}
	}
	return out, nil
}

// joining are the containers that name a network, by what they call it (its ID or its name) and their ID.
func joining(containers []tree) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, c := range containers {
		note := func(network any) {
			if key, ok := network.(string); ok && key != "" {
				if out[key] == nil {
					out[key] = map[string]string{}
				}
				out[key][treeID(c)] = treeName(c)
			}
		}
		host, _ := c["HostConfig"].(map[string]any)
		note(host["NetworkMode"])
		settings, _ := c["NetworkSettings"].(map[string]any)
		networks, _ := settings["Networks"].(map[string]any)
		for key, endpoint := range networks {
			e, _ := endpoint.(map[string]any)
			note(key)
			note(e["NetworkID"])
		}
	}
	return out
}

// belongs reports whether the container at an address may be attached to the network at another one. It
// knows addresses only, and a second container with the same labels has none (see claim): it is a
// stranger, as is the agent of another invocation.
func belongs(network, container planner.Address) bool {
	part := container.Part()
	if network == planner.AddrUplink {
		return part == planner.PartProxy
	}
	return container.Invocation() != "" && container.Invocation() == network.Invocation() &&
		(part == planner.PartProxy || part == planner.PartAgent)
}
