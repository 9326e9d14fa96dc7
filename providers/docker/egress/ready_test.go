package egress

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/shim/inside"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// insideFiles are those of a container that is as insideConfig declares, as they look on 20.10.
func insideFiles() map[string]string {
	return map[string]string{
		"etc/resolv.conf": "nameserver 127.0.0.11\noptions ndots:0\n",
		"etc/hosts":       "127.0.0.1\tlocalhost\n10.242.84.2\tproxy\n10.242.80.2\tproxy\n",
		"proc/self/status": "Name:\tsandplan\nUid:\t65531\t65531\t65531\t65531\nGid:\t65531\t65531\t65531\t65531\nGroups:\t65531 \n" +
			"CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\n" +
			"NoNewPrivs:\t1\nSeccomp:\t2\n",
		// Little-endian, as on every machine that sandplan is built for.
		"proc/net/route": "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
			"eth0\t00000000\t0150F20A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
			"eth0\t0050F20A\t00000000\t0001\t0\t0\t0\t00FCFFFF\t0\t0\t0\n" +
			"eth1\t0054F20A\t00000000\t0001\t0\t0\t0\tF8FFFFFF\t0\t0\t0\n",
		"proc/sys/net/ipv4/ip_forward":          "0\n",
		"proc/sys/net/ipv4/conf/all/arp_ignore": "1\n",
	}
}

func insideConfig() *Config {
	c := testConfig()
	c.Listen, c.Agent, c.UID, c.GID = "10.242.84.2:3128", "10.242.84.3", 65531, 65531
	c.Addresses, c.Gateway, c.Nameservers = []string{"10.242.80.2/22", "10.242.84.2/29"}, "10.242.80.1", []string{"127.0.0.11"}
	c.Sysctls = map[string]string{"net.ipv4.ip_forward": "0", "net.ipv4.conf.all.arp_ignore": "1"}
	return c
}

// insideAddresses are the container's; the kernel tells them, no file.
func insideAddresses() []wire.Address {
	return []wire.Address{{Interface: "eth0", Prefix: "10.242.80.2/22"}, {Interface: "eth1", Prefix: "10.242.84.2/29"}, {Interface: "lo", Prefix: "127.0.0.1/8"}}
}

// lookAt is what look finds below a root with these files.
func lookAt(t *testing.T, files map[string]string) (found, error) {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return look(root, insideConfig())
}

// TestReadyLineTellsWhatIsInside: what is found stands in the ready line, and every check holds it to the declaration.
func TestReadyLineTellsWhatIsInside(t *testing.T) {
	listen := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.242.84.2:3128"))
	in, err := lookAt(t, insideFiles())
	if err != nil {
		t.Fatal(err)
	}
	in.addresses = insideAddresses()
	r := in.ready(insideConfig(), "n", listen)
	if failed := r.Failed(); len(failed) > 0 || len(r.Checks) != 17 {
		t.Errorf("%d checks; what is declared fails %+v", len(r.Checks), failed)
	}
	files := insideFiles()
	if r.Nonce != "n" || r.Listen != "10.242.84.2:3128" || r.ResolvConf != files["etc/resolv.conf"] || r.Hosts != files["etc/hosts"] || !slices.Equal(r.Addresses, insideAddresses()) {
		t.Errorf("%+v", r)
	}
	want := []wire.Route{{Interface: "eth0", Dest: "0.0.0.0/0", Gateway: "10.242.80.1"}, {Interface: "eth0", Dest: "10.242.80.0/22"}, {Interface: "eth1", Dest: "10.242.84.0/29"}}
	if !slices.Equal(r.Routes, want) {
		t.Errorf("routes %+v, want %+v", r.Routes, want)
	}
	if nets, want := in.networks(), []netip.Prefix{netip.MustParsePrefix("10.242.80.0/22"), netip.MustParsePrefix("10.242.84.0/29"), netip.MustParsePrefix("127.0.0.0/8")}; !slices.Equal(nets, want) {
		t.Errorf("its networks are %v", nets)
	}
}

func TestReadyLineFails(t *testing.T) {
	const status, routes = "proc/self/status", "proc/net/route"
	for _, tt := range []struct {
		file, from, to string
		fails          string // the one check
		says           string
		reason         string
	}{
		{"etc/resolv.conf", "127.0.0.11", "6.6.6.6", "dns.resolv_conf", "[6.6.6.6], declared [127.0.0.11]", "daemon.json"},
		{"etc/resolv.conf", "options", "search evil.example\noptions", "dns.resolv_conf", "evil.example", "names turn into others"},
		{"etc/hosts", "10.242.84.2", "6.6.6.6", "dns.hosts", "6.6.6.6", "an extra host"},
		{status, "Uid:\t65531", "Uid:\t0", "proc.uid", "declared 65531", "root"},
		{status, "Uid:\t65531\t65531\t65531\t65531", "Uid:\t1000\t1000\t1000\t1000", "proc.uid", "declared 65531", "an agent's user"},
		{status, "Gid:\t65531", "Gid:\t0", "proc.gid", "declared 65531", "root's group"},
		{status, "Groups:\t65531", "Groups:\t65531 999", "proc.groups", "999", "a group of the host's"},
		{status, "CapInh:\t0", "CapInh:\t1", "proc.cap_inh", "must be empty", "a capability"},
		{status, "CapPrm:\t0", "CapPrm:\t1", "proc.cap_prm", "must be empty", "a capability"},
		{status, "CapEff:\t0", "CapEff:\t1", "proc.cap_eff", "must be empty", "a capability"},
		{status, "CapBnd:\t0", "CapBnd:\t1", "proc.cap_bnd", "must be empty", "a capability"},
		{status, "CapAmb:\t0", "CapAmb:\t1", "proc.cap_amb", "must be empty", "a capability"},
		{status, "NoNewPrivs:\t1", "NoNewPrivs:\t0", "proc.no_new_privs", "must be 1", "set-uid programs work"},
		{status, "Seccomp:\t2", "Seccomp:\t0", "proc.seccomp", "must be 2", "the whole kernel"},
		{routes, "0150F20A", "0950F20A", "net.routes", "via 10.242.80.9 on eth0 is not declared", "another default route"},
		{routes, "eth1\t", "eth1\t000200C0\t0354F20A\t0003\t0\t0\t0\t00FFFFFF\t0\t0\t0\neth1\t", "net.routes",
			"192.0.2.0/24 via 10.242.84.3 on eth1 is not declared", "through the agent's network"},
		{"proc/sys/net/ipv4/ip_forward", "0", "1", "sysctl.net.ipv4.ip_forward", "1, declared 0", "a router"},
	} {
		files := insideFiles()
		files[tt.file] = strings.Replace(files[tt.file], tt.from, tt.to, 1)
		in, err := lookAt(t, files)
		if err != nil {
			t.Fatal(err)
		}
		in.addresses = insideAddresses()
		failed := in.ready(insideConfig(), "n", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.242.84.2:3128"))).Failed()
		if len(failed) != 1 || failed[0].Name != tt.fails || !strings.Contains(failed[0].Detail, tt.says) {
			t.Errorf("%q: %+v, want %s that says %q (%s)", tt.to, failed, tt.fails, tt.says, tt.reason)
		}
	}
}

// TestInsideIsDeclared: what is looked for is what the command line says, and nothing built in but the hostname.
func TestInsideIsDeclared(t *testing.T) {
	cfg := insideConfig()
	cfg.UID, cfg.GID, cfg.Nameservers = 1, 2, []string{"192.0.2.53"}
	want := inside.Proxy{Listen: "10.242.84.2:3128", Hostname: "proxy", UID: 1, GID: 2, Addresses: []string{"10.242.80.2/22", "10.242.84.2/29"},
		Gateway: "10.242.80.1", Nameservers: []string{"192.0.2.53"}, Sysctls: map[string]string{"net.ipv4.ip_forward": "0", "net.ipv4.conf.all.arp_ignore": "1"}}
	if got := cfg.Inside(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestReadyLineFailsOffTheKernel(t *testing.T) {
	in, err := lookAt(t, insideFiles())
	if err != nil {
		t.Fatal(err)
	}
	// What is told of this machine is this machine's, and never what the configuration says.
	if !slices.Contains(in.addresses, wire.Address{Interface: "lo", Prefix: "127.0.0.1/8"}) {
		t.Errorf("the addresses of this machine are %+v", in.addresses)
	}
	in.addresses = append(insideAddresses(), wire.Address{Interface: "eth2", Prefix: "10.9.9.9/24"})
	failed := in.ready(insideConfig(), "n", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("0.0.0.0:3128"))).Failed()
	if len(failed) != 2 || failed[0].Name != "net.listen" || failed[1].Name != "net.addresses" {
		t.Errorf("another network and every address to listen on: %+v", failed)
	}
}

// TestLookFails: what cannot be read is not taken for empty.
func TestLookFails(t *testing.T) {
	for name, text := range insideFiles() {
		files := insideFiles()
		delete(files, name)
		in, err := lookAt(t, files)
		setting := strings.HasPrefix(name, "proc/sys/")
		if setting == errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without %s: %v", name, err)
		}
		if setting {
			in.addresses = insideAddresses()
			if failed := in.ready(insideConfig(), "n", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.242.84.2:3128"))).Failed(); len(failed) != 1 || !strings.Contains(failed[0].Detail, "no such file") {
				t.Errorf("without %s: %+v", name, failed)
			}
		}
		if name == "proc/self/status" || name == "proc/net/route" {
			files[name] = strings.NewReplacer("65531", "x", "0050F20A", "0050F2").Replace(text)
			if _, err := lookAt(t, files); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("a broken %s: %v", name, err)
			}
		}
	}
}
