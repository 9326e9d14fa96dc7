package docker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"

	"github.com/sandplan/sandplan/planner"
)

// This file is the whole of one kind, invocation.N.network, and the pattern of every other: what is
// wanted (desiredNetwork), what of it is compared (networkRows), how the engine shows it
// (completeNetwork), how it is made, how it is removed. A new property is one field of the request and
// one row. Uplinks are Docker networks too and share everything but what is wanted, see uplink.go.

// desiredNetwork is the network that one invocation's proxy and agent share, and nobody else. It leads
// nowhere: internal, and without an address of the host on it.
type desiredNetwork struct {
	Name    string
	Bridge  string // of the host's interface; named by us, so that settings can be read and put on it
	Subnet  netip.Prefix
	Gateway netip.Addr // held by no interface
}

// request is everything that Docker can be told about a network; nothing is left to its defaults or
// to daemon.json.
func (d desiredNetwork) request() network.CreateOptions {
	r := bridgeRequest(d.Bridge, d.Subnet, d.Gateway)
	r.Internal = true
	// An internal bridge still has the gateway's address, and with it every service that the host binds
	// on 0.0.0.0 (seen on 20.10, 26.1 and 28.5). This leaves the bridge without an address.
	r.Options[optionInhibitIPv4] = "true"
	r.Options[optionICC] = "true" // the agent talks to the proxy
	r.Options[optionMasquerade] = "false"
	return r
}

func (d desiredNetwork) tree() tree { return networkTree(d.Name, d.request(), wantedBridge()) }

func (d desiredNetwork) create(ctx context.Context, e *Engine, labels map[string]string, _ planner.IDs) (string, error) {
	return createNetwork(ctx, e, d.Name, d.request(), labels)
}

// The options that the bridge driver knows and that matter here. Rows exist for those that we send or
// that engines add by themselves; any other is an unknown property, and so a mismatch.
const (
	optionBridge      = "com.docker.network.bridge.name"
	optionInhibitIPv4 = "com.docker.network.bridge.inhibit_ipv4"
	optionICC         = "com.docker.network.bridge.enable_icc"
	optionMasquerade  = "com.docker.network.bridge.enable_ip_masquerade"
	optionMTU         = "com.docker.network.driver.mtu"
	optionBinding     = "com.docker.network.bridge.host_binding_ipv4"
	optionEnableIPv4  = "com.docker.network.enable_ipv4"
	optionEnableIPv6  = "com.docker.network.enable_ipv6"
)

// Rows that other files look up by their path.
const (
	pathName   = "Name"
	pathSubnet = "IPAM.Config[0].Subnet"
	pathBridge = `Options["` + optionBridge + `"]`
)

// bridgeRequest is what all our networks have in common.
func bridgeRequest(bridge string, subnet netip.Prefix, gateway netip.Addr) network.CreateOptions {
	yes, no := true, false
	return network.CreateOptions{
		Driver:     "bridge",
		Scope:      "local",
		EnableIPv4: &yes,
		EnableIPv6: &no,
		IPAM: &network.IPAM{
			Driver:  "default",
			Options: map[string]string{},
			Config:  []network.IPAMConfig{{Subnet: subnet.String(), Gateway: gateway.String()}},
		},
		Internal:   false,
		Attachable: false,
		Ingress:    false,
		ConfigOnly: false,
		// Nothing is published. Where it would be is said all the same: default-network-opts of daemon.json, which
		// engines since 24 add to whatever is not said, most often holds this one.
		Options: map[string]string{optionBridge: bridge, optionMTU: "1500", optionBinding: "127.0.0.1"},
	}
}

// networkTree is a network as inspect will show it: the request itself, and the bridge behind it.
func networkTree(name string, r network.CreateOptions, bridge map[string]any) tree {
	v := treeOf(network.CreateRequest{CreateOptions: r, Name: name})
	v["Bridge"] = bridge
	return v
}

// networkRows are all properties of a Docker network, and of the bridge behind it.
func networkRows() []row {
	return append(settingRows(), []row{
		{path: pathName, norm: text, label: "name", show: planner.Headline},
		{path: "Driver", norm: text},
		{path: "Scope", norm: text},
		// Engines before 28 have no network without IPv4, and no property that says so.
		{path: "EnableIPv4", norm: orElse(true)},
		{path: "EnableIPv6", norm: boolean},
		{path: "Internal", norm: boolean},
		{path: "Attachable", norm: boolean},
		{path: "Ingress", norm: boolean},
		{path: "ConfigOnly", norm: boolean},
		{path: "ConfigFrom.Network", norm: text},

		{path: "IPAM.Driver", norm: text},
		{path: "IPAM.Options", norm: dict},
		{path: pathSubnet, norm: text, label: "subnet", show: planner.Headline},
		{path: "IPAM.Config[0].Gateway", norm: text},
		{path: "IPAM.Config[0].IPRange", norm: text},
		{path: "IPAM.Config[0].AuxiliaryAddresses", norm: dict},

		{path: pathBridge, norm: text},
		{path: optionPath(optionInhibitIPv4), norm: text},
		{path: optionPath(optionICC), norm: text},
		{path: optionPath(optionMasquerade), norm: text},
		{path: optionPath(optionMTU), norm: text},
		{path: optionPath(optionBinding), norm: text},
		// 28 writes these two by itself, after EnableIPv4 and EnableIPv6.
		{path: optionPath(optionEnableIPv4), norm: orElse("true")},
		{path: optionPath(optionEnableIPv6), norm: orElse("false")},

		{path: "Bridge.addresses", norm: set},
		{path: "Bridge.foreign_ports", norm: exact},
		{path: "Bridge.joined", norm: set},
		{path: "Bridge.answers_for", norm: set},
		// Who is attached, without those who belong there.
		{path: "Containers", norm: dict},

		{path: "Labels", norm: foreignLabels},
		{path: "Peers", norm: list},
		{path: "Services", norm: dict},

		{path: "Id", class: planner.ClassIgnored,
			reason: "chosen by the engine; what refers to the network compares it in a row of its own"},
		{path: "Created", class: planner.ClassIgnored,
			reason: "written by the engine when it makes the network; says when, not what"},
	}...)
}

func optionPath(option string) string { return `Options["` + option + `"]` }

func networkKind() kind {
	return kind{
		name:     planner.KindNetwork,
		table:    newTable([]string{""}, networkRows()),
		list:     listNetworks,
		inspect:  inspectNetwork,
		complete: completeNetwork,
		remove:   removeNetwork,
		restore:  restoreBridge,
	}
}

func inspectNetwork(ctx context.Context, e *Engine, id string) (tree, error) {
	return e.inspect(ctx, "/networks/"+id)
}

// completeNetwork adds what the engine does not show of a network: its bridge, and who is on it. The
// engine's list never names endpoints, and inspecting one network takes longer the more there are, so
// only those are inspected whose bridge has a port, and those at the gate.
func completeNetwork(ctx context.Context, l *look, v tree) error {
	bridge, _ := lookup(v, mustParsePath(pathBridge)).(string)
	// A container that starts or ends just now is in one of the two lists only: look again.
	for w := l.waitFor(v); ; {
		state, err := l.bridge(bridge, w.again)
		if err != nil {
			return err
		}
		if state.ports > 0 || l.gate || w.again { // what was on it a moment ago may all be gone
			fresh, err := inspectNetwork(ctx, l.engine, treeID(v))
			if err != nil {
				return fmt.Errorf("inspect network %s: %w", treeName(v), err)
			}
			v["Containers"] = fresh["Containers"]
		}
		endpoints, _ := dict(v["Containers"]).(map[string]any)
		if state.ports == len(endpoints) || w.over() {
			v["Bridge"] = l.observedBridge(bridge, state, state.ports-len(endpoints))
			break
		}
		if err := w.pause(ctx); err != nil {
			return err
		}
	}
	attached, err := strangers(ctx, l, v)
	v["Containers"] = attached
	return err
}

func createNetwork(ctx context.Context, e *Engine, name string, r network.CreateOptions, labels map[string]string) (string, error) {
	bridge := r.Options[optionBridge]
	if err := refuseOverruled(e.options.Kernel); err != nil {
		return "", err
	}
	// The engine would adopt an interface of this name, with whatever is attached to it.
	if err := e.refuseForeignBridge(bridge); err != nil {
		return "", err
	}
	r.Labels = labels
	made, err := e.cli.NetworkCreate(ctx, name, r)
	if errdefs.IsConflict(err) {
		return "", fmt.Errorf("create network %s: another one of this name is there and is not this scope's; "+
			"see it with \"docker network inspect %s\" and remove or rename it: %w", name, name, err)
	}
	if isInTheWay(err) {
		return "", fmt.Errorf("create network %s: somebody took addresses of %s since the plan was made; plan again: %w",
			name, r.IPAM.Config[0].Subnet, err)
	}
	if err != nil {
		return "", fmt.Errorf("create network %s: %w", name, err)
	}
	owner, _ := readIdentity(labels)
	if err := e.setBridge(ctx, bridge, owner); err != nil {
		return made.ID, err
	}
	return made.ID, nil
}

// removeNetwork removes a network of ours. Whatever somebody else attached to it is detached first: the
// endpoint is part of our network, and would keep it alive.
func removeNetwork(ctx context.Context, e *Engine, o planner.Object) error {
	for waited := time.Duration(0); ; waited += patienceStep {
		err := e.cli.NetworkRemove(ctx, o.ID)
		if err == nil || errdefs.IsNotFound(err) {
			return nil
		}
		if !strings.Contains(err.Error(), "has active endpoints") {
			return fmt.Errorf("remove network %s: %w", o.Name, err)
		}
		left, detachErr := detachAll(ctx, e, o)
		switch {
		case detachErr != nil:
			return detachErr
		case waited >= patience && left == 0:
			return fmt.Errorf("remove network %s: %w: %w", o.Name, errMiscounted, err)
		case waited >= patience:
			return fmt.Errorf("remove network %s: %w", o.Name, err)
		case waited == 0:
			continue
		}
		if err := pause(ctx, patienceStep); err != nil {
			return fmt.Errorf("remove network %s: %w", o.Name, err)
		}
	}
}

// errMiscounted is the engine's own failure, seen on 20.10 after some hundred containers had started and ended
// on one network at the same time: it lists no endpoint, has lost count of them, and counts anew when it starts.
var errMiscounted = errors.New("the engine counts endpoints on it that it does not have any more: restart the engine, then destroy again")

// detachAll detaches whatever is on a network, and says how many endpoints there were.
func detachAll(ctx context.Context, e *Engine, o planner.Object) (found int, err error) {
	v, err := inspectNetwork(ctx, e, o.ID)
	if errdefs.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("see who is attached to network %s: %w", o.Name, err)
	}
	endpoints, _ := v["Containers"].(map[string]any)
	for _, container := range sortedKeys(endpoints) {
		if strings.HasPrefix(container, endpointPrefix) {
			// Its container is ending, and it goes by itself; one that a dead engine left goes by its name.
			endpoint, _ := endpoints[container].(map[string]any)
			name, _ := endpoint["Name"].(string)
			_ = e.cli.NetworkDisconnect(ctx, o.ID, name, true) // what is still there, the next attempt tells
			continue
		}
		if err := e.cli.NetworkDisconnect(ctx, o.ID, container, true); err != nil && !errdefs.IsNotFound(err) {
			return 0, fmt.Errorf("detach container %s from network %s: %w", shortID(container), o.Name, err)
		}
	}
	return len(endpoints), nil
}
