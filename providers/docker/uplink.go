package docker

import (
	"context"
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

func (d desiredUplink) tree() tree { return networkTree(d.Name, d.request()) }

func (d desiredUplink) create(ctx context.Context, e *Engine, labels map[string]string, _ planner.IDs) (string, error) {
	return createNetwork(ctx, e, d.Name, d.request(), labels)
}

// uplinkKind differs from the kind of an invocation's network in what is wanted only.
func uplinkKind() kind {
	k := networkKind()
	k.name = planner.KindUplink
	return k
}
