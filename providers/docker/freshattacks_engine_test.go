package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"golang.org/x/sys/unix"

	"github.com/sandplan/sandplan/planner"
)

// labelAttempts are objects with the scope's labels that claim to be what a look passes over.
func (v *victim) labelAttempts() []attempt {
	const noPlace = "no place in the scope"
	lock, lease := string(kindLock), string(kindLease)
	leaseName := objectName(v.scope(), "invocation.one", "lease")
	none := container.HostConfig{}
	return []attempt{
		{reason: "a network that says it is a lock", want: noPlace,
			do: v.net(unique("fa-lock"), "10.231.254.80/28", network.CreateOptions{Internal: true, Labels: v.labels(labelKind, lock)})},
		{reason: "a volume that says it is a lease", want: noPlace, do: v.volume(unique("fa-lease"), v.labels(labelKind, lease), nil)},
		{reason: "a container of another name that says it is the lock", want: noPlace,
			do: v.container(unique("fa-lock"), v.labels(labelKind, lock), none, false)},
		{reason: "a container with the lock's name that was started", want: noPlace,
			do: v.container(objectName(v.scope(), "lock"), v.labels(labelKind, lock), none, true)},
		{reason: "a container with a lease's name that was started", want: noPlace,
			do: v.container(leaseName, v.labels(labelKind, lease, labelAddress, "invocation.one"), none, true)},
		{reason: "a container that says it has filled the shim's volume, which it does not have", want: "is there twice",
			do: v.container(unique("fa-seed"), v.labels(labelKind, string(kindSeed), labelAddress, string(planner.AddrShim)), none, false)},
		{reason: "a container that says it sets the bridge", want: "is there twice",
			do: v.container(unique("fa-helper"), v.labels(labelKind, string(helperKind().name), labelAddress, "invocation.one.network"), none, false)},
	}
}

// networkAttempts put somebody beside the agent who is on no port of its bridge and in no list of endpoints,
// or in one under another name.
func (v *victim) networkAttempts() []attempt {
	on := func(bridge string) map[string]string { return map[string]string{"parent": bridge} }
	name := objectName(v.scope(), "invocation.one.network")
	joins := func(network string) func() (func(), error) {
		return v.container(unique("fa-joins"), nil, container.HostConfig{NetworkMode: container.NetworkMode(network)}, false)
	}
	// Engines before 25 make it when they are asked not to look for the name.
	second := func(labels map[string]string) func() (func(), error) {
		return func() (func(), error) {
			made, err := v.engine.post(v.t.Context(), "/networks/create", nil, map[string]any{"Name": name, "CheckDuplicate": false, "Labels": labels,
				"IPAM": map[string]any{"Config": []any{map[string]any{"Subnet": "10.231.254.64/28"}}}})
			v.second = treeID(made)
			return func() { _ = v.engine.cli.NetworkRemove(context.Background(), treeID(made)) }, err
		}
	}
	const stands = "stands on its bridge"
	return []attempt{
		{reason: "a macvlan network on the agent's bridge", want: stands, last: true,
			do: v.net(unique("fa-macvlan"), "10.231.254.0/28", network.CreateOptions{Driver: "macvlan", Options: on(v.bridge)})},
		{reason: "an ipvlan network on the uplink's", want: stands, last: true, refused: true, // the kernel may have none
			do: v.net(unique("fa-ipvlan"), "10.231.254.16/28", network.CreateOptions{Driver: "ipvlan", Options: on(v.uplink)})},
		{reason: "a macvlan network on the agent's bridge by way of a configuration", want: "of driver macvlan " + stands, last: true,
			do: both(v.net(unique("fa-config"), "10.231.254.32/28", network.CreateOptions{ConfigOnly: true, Options: on(v.bridge)}),
				v.net(unique("fa-from"), "", network.CreateOptions{Driver: "macvlan", ConfigFrom: &network.ConfigReference{Network: unique("fa-config")}}))},
		{reason: "a second network with the agent's bridge", want: "bridge", refused: true,
			do: v.net(unique("fa-bridge"), "10.231.254.48/28", network.CreateOptions{Options: map[string]string{optionBridge: v.bridge}})},
		{reason: "a second network with the name of the agent's", want: "not this scope's", refused: true, do: second(nil)},
		{reason: "the same with labels of a scope whose names begin as ours do, and the agent on it", want: "not this scope's", refused: true,
			do: both(second(map[string]string{labelProject: v.scope().Project + "-" + v.scope().Workspace, labelWorkspace: "!"}), v.moveAgent)},
		{reason: "a container on the agent's network by the beginning of its ID", want: "Containers", do: joins(v.network[:12])},
		{reason: "the same by three digits", want: "Containers", refused: true, do: joins(v.network[:3])},
		{reason: "a link to the agent, which gives it another name", refused: true,
			do: v.container(unique("fa-link"), nil, container.HostConfig{NetworkMode: "bridge", Links: []string{v.agent + ":x"}}, false)},
	}
}

// moveAgent puts the agent on the second network as it was on the first, so that the engine shows the same of it.
func (v *victim) moveAgent() (func(), error) {
	move := func(from, to string) error {
		ctx, cli := context.WithoutCancel(v.t.Context()), v.engine.cli
		if err := cli.NetworkDisconnect(ctx, from, v.agent, true); err != nil {
			return err
		}
		settings := v.c.desired["invocation.one.agent"].(containerSpec).endpoints[0].settings
		return cli.NetworkConnect(ctx, to, v.agent, &settings)
	}
	return func() {
		if err := move(v.second, v.network); err != nil {
			v.t.Error(err)
		}
	}, move(v.network, v.second)
}

// volumeAttempts reach into the volume with the program that every agent starts with, or into the agent's files.
func (v *victim) volumeAttempts() []attempt {
	const mounts = "mounts the volume"
	alias := func(options map[string]string, start bool) func() (func(), error) {
		return both(v.volume(unique("fa-alias"), nil, options), v.container(unique("fa-mounts"), nil,
			container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: unique("fa-alias"), Target: "/x"}}}, start))
	}
	bound := map[string]string{"type": "none", "o": "bind", "device": v.shimDir}
	program := filepath.Join(v.shimDir, filepath.Base(toolBinary))
	writes := func(name string) func() (func(), error) {
		file := filepath.Join(v.layer, name)
		return func() (func(), error) { return func() { _ = os.Remove(file) }, os.WriteFile(file, []byte("x"), 0o755) }
	}
	return []attempt{
		{reason: "another volume that is the same directory", want: mounts, do: alias(bound, false)},
		{reason: "the same by a container that runs", want: mounts, do: alias(bound, true)},
		{reason: "another volume of which it is a layer", want: mounts,
			do: alias(map[string]string{"type": "overlay", "device": "overlay", "o": "lowerdir=" + v.shimDir + ":/tmp"}, false)},
		{reason: "its volumes, by two digits of the agent's ID", want: mounts, refused: true, // somebody else's ID may begin so
			do: v.container(unique("fa-from"), nil, container.HostConfig{VolumesFrom: []string{v.agent[:2] + ":ro"}}, false)},
		{reason: "capabilities of the program", want: "security.capability", last: true, do: func() (func(), error) {
			netAdmin := []byte{1, 0, 0, 2, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // what setcap writes
			return func() { _ = unix.Removexattr(program, "security.capability") }, unix.Setxattr(program, "security.capability", netAdmin, 0)
		}},
		{reason: "a file in the agent's layer, past the engine", want: "/evil", last: true, do: writes("evil")},
		{reason: "another program in the place of the agent's, past the engine", want: "/agent", last: true, do: writes("agent")},
	}
}

// hostAttempts change the machine below the engine.
func (v *victim) hostAttempts() []attempt {
	stacked, gateway := unique("fam"), v.c.Allocation().Networks["invocation.one"].Gateway
	return []attempt{
		{reason: "an interface stacked on the bridge", want: "Bridge.joined", last: true,
			do: v.host("ip link add link "+v.bridge+" name "+stacked+" type macvlan", "ip link delete "+stacked)},
		{reason: "the host answers for the gateway", want: "Bridge.answers_for", last: true,
			do: v.host(fmt.Sprintf("ip neighbour add proxy %s dev %s", gateway, v.bridge), fmt.Sprintf("ip neighbour delete proxy %s dev %s", gateway, v.bridge))},
		{reason: "a start that fails, after which all is as it was", do: func() (func(), error) {
			if err := os.Rename(v.repo, v.repo+".away"); err != nil {
				return nil, err
			}
			err := v.engine.cli.ContainerStart(v.t.Context(), v.agent, container.StartOptions{})
			if back := os.Rename(v.repo+".away", v.repo); back != nil {
				return nil, back
			}
			if err == nil {
				return nil, errors.New("the engine starts it without its worktree")
			}
			return func() {}, nil
		}},
	}
}
