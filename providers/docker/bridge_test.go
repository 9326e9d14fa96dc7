package docker

import (
	"os"
	"path/filepath"
	"strings"
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

// otherKernel is this machine with other contents of some files below /proc/sys.
type otherKernel struct {
	Kernel
	settings map[string]string
}

func (k otherKernel) Setting(path string) (string, error) {
	if v, ok := k.settings[path]; ok {
		return v, nil
	}
	return k.Kernel.Setting(path)
}

// TestOverruledSettings: the machine's settings called "all" count beside those of a bridge, which stay as they are.
func TestOverruledSettings(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 105)
	want := resourceOf(t, e, planner.KindNetwork, a, d)
	o := created(t, e, s, want, d)
	this, all := e.options.Kernel, "/proc/sys/net/ipv4/conf/all/"
	for _, tc := range []struct{ reason, setting, value, differs string }{
		{"most machines", "arp_ignore", "0", ""},
		{"stricter than ours", "arp_ignore", "2", ""},
		{"answers nobody", "arp_ignore", "8", ""},
		{"answers for every address but those of loopback", "arp_ignore", "3", "Bridge.arp_ignore"},
		{"answers for all", "arp_ignore", "4", "Bridge.arp_ignore"},
		{"as distributions have it; without an address on the bridge it drops the same", "rp_filter", "2", ""},
		{"answers for whatever it has a route to", "proxy_arp", "1", "Bridge.proxy_arp"},
		{"lets 127.0.0.1 be routed to, as on a node of Kubernetes", "route_localnet", "1", "Bridge.route_localnet"},
	} {
		e.options.Kernel = otherKernel{this, map[string]string{all + tc.setting: tc.value + "\n"}}
		if got := differsAt(t, e, s, want); got != tc.differs {
			t.Errorf("%s: with %s=%s for all it differs at %q, want %q", tc.reason, tc.setting, tc.value, got, tc.differs)
		}
		// What cannot be held is not made, and not called put back.
		k, _ := e.kind(planner.KindNetwork)
		err := k.restore(t.Context(), e, s, o)
		if fix := "sysctl -w net.ipv4.conf.all." + tc.setting; (err != nil) != (tc.differs != "") || err != nil && !strings.Contains(err.Error(), fix) {
			t.Errorf("%s: putting it back says %v, want %q in it", tc.reason, err, fix)
		}
		more := testNetwork(s, "invocation.more.network", 106)
		if id, err := createNetwork(t.Context(), e, more.Name, more.request(), labelsFor(s, "test:/here", want)); tc.differs != "" && (err == nil || id != "") {
			t.Errorf("%s: a network was made all the same: %q, %v", tc.reason, id, err)
		} else if id != "" {
			if err := e.Delete(t.Context(), planner.Object{Kind: planner.KindNetwork, ID: id, Name: more.Name}); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.options.Kernel = this
}

// sysctl changes a setting of an interface behind sandplan's back.
func sysctl(t *testing.T, dev, family, name, value string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join("/proc/sys/net", family, "conf", dev, name), []byte(value), 0o644); err != nil {
		t.Fatal(err)
	}
}
