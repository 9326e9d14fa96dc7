package docker

import (
	"os/exec"
	"testing"

	"github.com/sandplan/sandplan/planner"
)

func TestBridgeSettings(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 32)
	want := resourceOf(t, e, planner.KindNetwork, a, d)
	o := created(t, e, s, want, d)
	ip(t, "link", "set", "dev", d.Bridge, "down") // settings do not depend on the state of the link
	if out, err := exec.Command("sysctl", "-w", "net.ipv4.conf."+d.Bridge+".arp_ignore=0", "net.ipv4.conf."+d.Bridge+".rp_filter=2").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := differsAt(t, e, s, want); got != "Bridge.arp_ignore Bridge.rp_filter" {
		t.Errorf("tampered settings are seen at %q", got)
	}
	k, _ := e.kind(planner.KindNetwork)
	if err := k.restore(t.Context(), e, s, o); err != nil {
		t.Fatal(err)
	}
	if got := differsAt(t, e, s, want); got != "" {
		t.Errorf("after the restore it differs at %q", got)
	}
	ip(t, "address", "add", d.Gateway.String()+"/29", "dev", d.Bridge)
	if got := differsAt(t, e, s, want); got != "Bridge.addresses" {
		t.Errorf("an address of the host on the bridge is seen at %q", got)
	}
	ip(t, "address", "del", d.Gateway.String()+"/29", "dev", d.Bridge)
	ip(t, "link", "add", unique("dcp"), "type", "veth", "peer", "name", unique("dcq"))
	defer ip(t, "link", "delete", unique("dcp"))
	ip(t, "link", "set", unique("dcp"), "master", d.Bridge)
	if got := differsAt(t, e, s, want); got != "Bridge.foreign_ports" {
		t.Errorf("a port that belongs to no endpoint is seen at %q", got)
	}
}
