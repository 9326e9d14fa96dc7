package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/sandplan/sandplan/drift"
	"github.com/sandplan/sandplan/planner"
)

// changedInside is the decision that follows when a sandbox that had been proven is found changed from the inside. The
// inside sees an effect, perhaps a neighbour that answers; what made it, and may still be there, shows at the host.
func (r *run) changedInside(ctx context.Context, said string) *Decision {
	links, err := net.Interfaces()
	if err == nil {
		said += whose(said, links, bridgeOf)
	}
	return &Decision{Code: CodeDrift, Reason: "the sandbox changed while it ran", Err: errors.New(said), Findings: r.networkFindings(ctx)}
}

// networkFindings are what is wrong now with the networks of the run, whose own containers have ended. Somebody who
// cannot be asked says nothing: the decision stands without.
func (r *run) networkFindings(ctx context.Context) []planner.Finding {
	if r.Runner != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	networks := []planner.Address{planner.AddrUplink, r.inv.With(planner.PartNetwork)}
	s, err := r.Engine.Recheck(ctx, r.Scope, networks)
	if err != nil {
		return nil
	}
	return drift.Gate(r.resources, r.compiled.Complete(s), drift.Look{
		Run: []planner.Address{r.subject()}, Lease: r.lease.Info().ID, Only: networks,
	}).Refusals
}

var linkAddress = regexp.MustCompile(`\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b`)

// whose says of each link-layer address in a text which interface of this machine has it.
func whose(text string, links []net.Interface, bridge func(string) string) string {
	var b strings.Builder
	for _, mac := range linkAddress.FindAllString(text, -1) {
		found := "no interface of this machine by now"
		for _, l := range links {
			if l.HardwareAddr.String() != mac {
				continue
			}
			found = "this machine's interface " + l.Name
			if br := bridge(l.Name); br != "" {
				found += ", a port of " + br
			}
		}
		fmt.Fprintf(&b, "; %s is %s", mac, found)
	}
	return b.String()
}

// bridgeOf is the bridge that an interface is a port of, "" for none.
func bridgeOf(link string) string {
	master, err := os.Readlink("/sys/class/net/" + link + "/master")
	if err != nil {
		return ""
	}
	return filepath.Base(master)
}
