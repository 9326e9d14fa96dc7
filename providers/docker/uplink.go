package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/docker/docker/api/types/network"

	"github.com/sandplan/sandplan/planner"
)

// desiredUplink is the way out for a scope's proxies, and for nobody else: an ordinary bridge whose
// containers cannot reach each other.
type desiredUplink struct {
	Name    string
	Bridge  string
	Subnet  netip.Prefix
	Gateway netip.Addr // the host's address on it
}

func (d desiredUplink) request() network.CreateOptions {
	r := bridgeRequest(d.Bridge, d.Subnet, d.Gateway)
	r.Options[optionInhibitIPv4] = "false"
	r.Options[optionICC] = "false" // one invocation's proxy must not reach another's
	r.Options[optionMasquerade] = "true"
	return r
}

func (d desiredUplink) tree() tree {
	bridge := wantedBridge(netip.PrefixFrom(d.Gateway, d.Subnet.Bits()).String())
	bridge["netfilter"] = json.Number("1")
	return networkTree(d.Name, d.request(), bridge)
}

func (d desiredUplink) create(ctx context.Context, e *Engine, labels map[string]string, _ planner.IDs) (string, error) {
	id, err := createNetwork(ctx, e, d.Name, d.request(), labels)
	if err != nil {
		return id, err
	}
	// After the network: engine 28 loads the kernel's module only when a network asks for it.
	if v := readSetting(e.options.Kernel, netfilterPath); v != json.Number("1") {
		if v == nil {
			v = "missing"
		}
		return id, fmt.Errorf("bridge netfilter is off on this machine (%s is %v), so the engine cannot keep containers on "+
			"the uplink apart; run \"modprobe br_netfilter\" and \"sysctl -w net.bridge.bridge-nf-call-iptables=1\"", netfilterPath, v)
	}
	return id, nil
}

// netfilterPath says whether frames between two containers of one bridge go through iptables, where the
// engine's rule against them stands. It is the machine's setting, not ours: it is checked and never set.
const netfilterPath = "/proc/sys/net/bridge/bridge-nf-call-iptables"

// uplinkKind differs from the kind of an invocation's network in what is wanted, and in one row.
func uplinkKind() kind {
	k := networkKind()
	k.name = planner.KindUplink
	k.table = newTable([]string{""}, append(networkRows(), row{path: "Bridge.netfilter", norm: exact}))
	k.complete = func(ctx context.Context, l *look, v tree) error {
		if err := completeNetwork(ctx, l, v); err != nil {
			return err
		}
		v["Bridge"].(map[string]any)["netfilter"] = readSetting(l.engine.options.Kernel, netfilterPath)
		return nil
	}
	return k
}
