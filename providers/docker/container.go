package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"

	"github.com/sandplan/sandplan/planner"
)

// Proxies, agents and runners are containers and have everything in common but what is wanted: how one
// is made and removed is here, what of it is compared is in containerrows.go, and how both sides get
// the one form in which they are compared is in containertree.go.

// containerSpec is all that is sent to make one container.
type containerSpec struct {
	name   string
	config container.Config
	host   container.HostConfig
	// endpoints are the networks that it is on: created on the first, connected to the others. Without
	// any it is on the engine's network "none".
	endpoints []endpointSpec
	// own says that its image is sandplan.image, which is loaded when it is missing.
	own bool
}

// endpointSpec is one network of a container.
type endpointSpec struct {
	role     string // under which it stands in rows
	network  planner.Address
	settings network.EndpointSettings
}

// The roles of a container's networks.
const (
	roleUplink  = "uplink"
	roleNetwork = "network"
	roleNone    = "none" // the engine's own name for it
)

func isRole(name string) bool { return name == roleUplink || name == roleNetwork || name == roleNone }

// newEndpoint is a fixed address on a network, and nothing that the engine would choose by itself.
func newEndpoint(role string, a planner.Address, addr netip.Addr) endpointSpec {
	return endpointSpec{role: role, network: a, settings: network.EndpointSettings{
		IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: addr.String()},
		Links:      []string{},
		Aliases:    []string{},
		DriverOpts: map[string]string{},
	}}
}

// tree is the container as inspect will show it.
func (s containerSpec) tree() tree {
	var buf bytes.Buffer
	s.encode(&buf)
	v, err := decodeTree(buf.Bytes())
	if err != nil {
		panic(fmt.Sprintf("request of container %s: %v", s.name, err))
	}
	arrangeWanted(v)
	return v
}

// encode writes the container as JSON, as inspect will show it but for what arrangeWanted does.
func (s containerSpec) encode(buf *bytes.Buffer) {
	buf.Reset()
	err := json.NewEncoder(buf).Encode(map[string]any{
		"Name":            "/" + s.name,
		"Image":           s.config.Image,
		"Platform":        "linux",
		"Config":          s.config,
		"HostConfig":      s.host,
		"NetworkSettings": map[string]any{"Networks": s.networks()},
	})
	if err != nil {
		panic(fmt.Sprintf("request of container %s without a JSON form: %v", s.name, err)) // the SDK's types all have one
	}
}

// networks are the container's endpoints by their roles.
func (s containerSpec) networks() map[string]network.EndpointSettings {
	if len(s.endpoints) == 0 {
		return map[string]network.EndpointSettings{roleNone: {}}
	}
	out := make(map[string]network.EndpointSettings, len(s.endpoints))
	for _, e := range s.endpoints {
		out[e.role] = e.settings
	}
	return out
}

// create makes the container. The engine takes a network by its ID and shows it by its name.
func (s containerSpec) create(ctx context.Context, e *Engine, labels map[string]string, ids planner.IDs) (string, error) {
	config, host := s.config, s.host
	config.Labels = maps.Clone(s.config.Labels)
	if config.Labels == nil {
		config.Labels = map[string]string{}
	}
	maps.Copy(config.Labels, labels)
	mode, err := resolveRef(string(host.NetworkMode), ids)
	if err != nil {
		return "", err
	}
	host.NetworkMode = container.NetworkMode(mode)
	networking := &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{}}
	if len(s.endpoints) > 0 {
		settings := s.endpoints[0].settings
		networking.EndpointsConfig[mode] = &settings
	}
	create := func() (string, error) {
		made, err := e.cli.ContainerCreate(ctx, &config, &host, networking, nil, s.name)
		return made.ID, err
	}
	id, err := "", error(nil)
	if s.own {
		own, ownErr := e.own()
		if ownErr != nil {
			return "", ownErr
		}
		id, err = createFrom(ctx, e.cli, own, create)
	} else {
		id, err = create()
	}
	if errdefs.IsConflict(err) {
		return "", fmt.Errorf("create container %s: another one of this name is there and is not this scope's; "+
			"see it with \"docker inspect %s\" and remove or rename it: %w", s.name, s.name, err)
	}
	if err != nil && strings.Contains(err.Error(), "max-buffer-size") {
		// The engine adds its own options for logs, and then refuses this one without the mode that goes with it.
		return "", fmt.Errorf("create container %s: %w; the engine's daemon.json has it among its log-opts: take it out there", s.name, err)
	}
	if err != nil {
		return "", fmt.Errorf("create container %s: %w", s.name, err)
	}
	for i := 1; i < len(s.endpoints); i++ {
		if err := connect(ctx, e, s.endpoints[i], id, ids); err != nil {
			return id, fmt.Errorf("create container %s: %w", s.name, err)
		}
	}
	return id, nil
}

func connect(ctx context.Context, e *Engine, to endpointSpec, container string, ids planner.IDs) error {
	id, err := resolveRef(refTo(to.network), ids)
	if err != nil {
		return err
	}
	settings := to.settings
	if err := e.cli.NetworkConnect(ctx, id, container, &settings); err != nil {
		return fmt.Errorf("connect it to %s: %w", to.network, err)
	}
	return nil
}

// containerKind is what the kinds of containers have in common.
func containerKind(name planner.Kind, rows []row) kind {
	t := newTable([]string{"Config", "HostConfig", "NetworkSettings.Networks", "Mounts", "Changes"}, rows)
	t.leaveOut(readOfContainers()...)
	t.argument = t.root.at(mustParsePath(pathArgument))
	return kind{
		name:     name,
		table:    t,
		list:     listContainers,
		inspect:  inspectContainer,
		complete: completeContainer,
		remove:   removeContainer,
	}
}

// readOfContainers are the paths of a container's tree that are read, or rewritten, before its fields are made:
// in completeContainer and all that it calls, and in tree.go.
func readOfContainers() []string {
	return []string{"Id", "Name", "State", "Image", "Path", "Args", "Mounts", "Changes", "NetworkSettings.Networks",
		"Config.Labels", "Config.Hostname", "Config.Image", "Config.Env", "Config.Entrypoint", "Config.Cmd",
		"HostConfig.Memory", "HostConfig.Mounts", "HostConfig.Tmpfs", "GraphDriver"}
}

// writtenBehind reports whether there is more in the layer of a container than the directories that lead to
// its mounts. It takes root to see it, and it takes root to write there: whoever may not look is told by the
// gate, which asks the engine.
func writtenBehind(v tree) bool {
	upper, _ := lookup(v, mustParsePath("GraphDriver.Data.UpperDir")).(string)
	if upper == "" {
		return false
	}
	return holdsMore(v, upper, "/")
}

// holdsMore looks below one directory of a layer. Whatever keeps it from looking where it may look and something is,
// is for the engine to answer.
func holdsMore(v tree, upper, at string) bool {
	entries, err := os.ReadDir(filepath.Join(upper, at))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission)
	}
	for _, entry := range entries {
		path := filepath.Join(at, entry.Name())
		if !entry.IsDir() || !leadsToMount(v, path) || holdsMore(v, upper, path) {
			return true
		}
	}
	return false
}

func inspectContainer(ctx context.Context, e *Engine, id string) (tree, error) {
	return e.inspect(ctx, "/containers/"+id+"/json")
}

// isWhole reports whether the engine has shown a container in full: a part that is missing must not read as one that is empty.
func isWhole(v tree) bool {
	host, _ := v["HostConfig"].(map[string]any)
	state, _ := v["State"].(map[string]any)
	return host["Memory"] != nil && state["Status"] != nil && treeID(v) != ""
}

// completeContainer names the container's networks by their roles, adds what was written into its
// file system, and brings the rest into the form of rows.
func completeContainer(ctx context.Context, l *look, v tree) error {
	id, labelled := readIdentity(labelsOf(treeLabels(v)))
	if !labelled || !isWhole(v) {
		return fmt.Errorf("container %s: the engine showed the short form of it", treeName(v))
	}
	nameNetworks(v, id.address, l)
	// What never started cannot have written anything, and copying into a read-only root is refused. The gate
	// asks all the same, and so does whoever can see that somebody was at the engine's own files.
	if l.gate || treeStatus(v) != planner.StatusCreated || writtenBehind(v) {
		raw, err := l.engine.get(ctx, "/containers/"+treeID(v)+"/changes", nil)
		if err != nil {
			return fmt.Errorf("see what was written into container %s: %w", treeName(v), err)
		}
		changes, err := decodeTrees(orNull(raw))
		if err != nil {
			return fmt.Errorf("see what was written into container %s: %w", treeName(v), err)
		}
		v["Changes"] = unexpectedChanges(v, changes)
	}
	arrangeBy(v, l.engine.info.DataDir, exact) // the argument comes last, see objectOf
	return nil
}

// nameNetworks keys a container's endpoints by role. A running endpoint shows the ID of its network,
// one that never ran only the name, under which it will look for it. Every other endpoint gets a key
// that is no role, whatever its network is called, and becomes a clause: an endpoint that shows nothing
// but zero values is one too many all the same.
func nameNetworks(v tree, a planner.Address, l *look) {
	settings, _ := v["NetworkSettings"].(map[string]any)
	networks, ok := settings["Networks"].(map[string]any)
	if !ok {
		return
	}
	roles := l.rolesOf(a)
	out := make(map[string]any, len(networks))
	for _, name := range sortedKeys(networks) {
		endpoint, _ := networks[name].(map[string]any)
		role := ""
		if id, _ := endpoint["NetworkID"].(string); id != "" {
			role = roles[string(l.refs[id])]
		} else {
			role = roles[name]
		}
		if name == roleNone && roles[roleNone] != "" {
			role = roleNone // the engine's own: nobody can make another of that name
		}
		if _, taken := out[role]; role == "" || taken {
			key := name
			if isRole(name) {
				key = "other " + name // no network's name holds a space
			}
			out[key] = clause(fmt.Sprintf("attached to the network %q", name))
			continue
		}
		out[role] = endpoint
	}
	settings["Networks"] = out
}

// rolesOf are the roles of the networks that a container at an address is on, by the address and by
// the name of each.
func (l *look) rolesOf(a planner.Address) map[string]string {
	out := map[string]string{}
	add := func(network planner.Address, role string) {
		out[string(network)], out[objectName(l.scope, network)] = role, role
	}
	switch a.Part() {
	case planner.PartProxy:
		add(planner.AddrUplink, roleUplink)
		add(a.Invocation().With(planner.PartNetwork), roleNetwork)
	case planner.PartAgent:
		add(a.Invocation().With(planner.PartNetwork), roleNetwork)
	default:
		out[roleNone] = roleNone
	}
	return out
}

// unexpectedChanges are the differences of a container's file system from its image, without the
// directories that the engine makes to mount something on.
func unexpectedChanges(v tree, changes []tree) []any {
	const deleted = "2"
	out := []any{}
	for _, c := range changes {
		path, _ := c["Path"].(string)
		if fmt.Sprint(c["Kind"]) != deleted && leadsToMount(v, path) {
			continue
		}
		out = append(out, map[string]any(c))
	}
	return out
}

func leadsToMount(v tree, path string) bool {
	host, _ := v["HostConfig"].(map[string]any)
	tmpfs, _ := host["Tmpfs"].(map[string]any)
	for target := range tmpfs {
		if within(path, target) {
			return true
		}
	}
	mounts, _ := host["Mounts"].([]any)
	for _, m := range mounts {
		m, _ := m.(map[string]any)
		if target, _ := m["Target"].(string); within(path, target) {
			return true
		}
	}
	return false
}

// removeContainer ends and removes a container with its anonymous volumes.
func removeContainer(ctx context.Context, e *Engine, o planner.Object) error {
	for try := 1; ; try++ {
		err := e.cli.ContainerRemove(ctx, o.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		switch {
		case err == nil || errdefs.IsNotFound(err):
			return nil
		case errdefs.IsConflict(err) && strings.Contains(err.Error(), "already in progress"):
			gone, waitErr := e.waitGone(ctx, o)
			if gone || waitErr != nil {
				return waitErr
			}
			if try == endTries {
				return fmt.Errorf("remove container %s: somebody else's removal of it fails again and again: %w", o.Name, err)
			}
		case !isEndingLate(err) || try == endTries || pause(ctx, patienceStep) != nil:
			return fmt.Errorf("remove container %s: %w", o.Name, err)
		}
	}
}

// endTries is how often an engine is asked that has killed a container and waited for its end in vain, for 12 s each
// time.
const endTries = 5

// waitGone waits for somebody else's removal of the same container, and reports whether it went: a removal may fail,
// and the container, which is called dead then, waits for the next one.
func (e *Engine) waitGone(ctx context.Context, o planner.Object) (bool, error) {
	for {
		v, err := inspectContainer(ctx, e, o.ID)
		switch {
		case errdefs.IsNotFound(err):
			return true, nil
		case err == nil && engineStatus(v) != "removing":
			return false, nil
		case err == nil:
			err = pause(ctx, settleTime)
		}
		if err != nil {
			return false, fmt.Errorf("wait for the removal of container %s: %w", o.Name, err)
		}
	}
}

// bindMount is a bind with every option spelled out. It is not recursive: on 20.10 a mount below a
// read-only bind stays writable.
func (b bind) mount() mount.Mount {
	return mount.Mount{
		Type:        mount.TypeBind,
		Source:      b.source,
		Target:      b.target,
		ReadOnly:    b.readOnly,
		Consistency: mount.ConsistencyDefault,
		BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate, NonRecursive: true},
	}
}

// orNull: an engine that has no changes to tell answers null.
func orNull(raw []byte) []byte {
	if strings.TrimSpace(string(raw)) == "null" {
		return []byte("[]")
	}
	return raw
}
