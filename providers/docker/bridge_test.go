package docker

import (
	"os"
	"path/filepath"
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
	ip(t, "link", "set", "dev", d.Bridge, "mtu", "1400", "down")
	ip(t, "link", "set", "dev", d.Bridge, "type", "bridge", "group_fwd_mask", "0x4000")
	sysctl(t, d.Bridge, "ipv4", "arp_ignore", "0")
	sysctl(t, d.Bridge, "ipv4", "rp_filter", "2")
	if got := differsAt(t, e, s, want); got != "Bridge.arp_ignore Bridge.group_fwd_mask Bridge.mtu Bridge.rp_filter Bridge.up" {
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

// sysctl changes a setting of an interface behind sandplan's back.
func sysctl(t *testing.T, dev, family, name, value string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join("/proc/sys/net", family, "conf", dev, name), []byte(value), 0o644); err != nil {
		t.Fatal(err)
	}
}
