package egress

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// inside is what a proxy finds out about the container that it runs in.
type inside struct {
	addresses  []wire.Address
	routes     []wire.Route
	resolvConf string
	hosts      string
	status     string // /proc/self/status
	sysctls    map[string]string
}

// look reads it. Root stands before every path, and is "/" outside of tests.
func look(root string, cfg *Config) (inside, error) {
	in := inside{sysctls: map[string]string{}}
	var err error
	if in.addresses, err = interfaceAddresses(); err != nil {
		return in, err
	}
	read := func(name string) string {
		var b []byte
		if err == nil {
			b, err = os.ReadFile(path.Join(root, name))
		}
		return string(b)
	}
	in.resolvConf, in.hosts, in.status = read("etc/resolv.conf"), read("etc/hosts"), read("proc/self/status")
	table := read("proc/net/route")
	if err != nil {
		return in, err
	}
	if in.routes, err = parseRoutes(table); err != nil {
		return in, err
	}
	for name := range cfg.Sysctls {
		b, err := os.ReadFile(path.Join(root, "proc/sys", strings.ReplaceAll(name, ".", "/")))
		in.sysctls[name] = strings.TrimSpace(string(b))
		if err != nil {
			in.sysctls[name] = err.Error()
		}
	}
	return in, nil
}

func interfaceAddresses() ([]wire.Address, error) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	var out []wire.Address
	for _, i := range ifs {
		addrs, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("list addresses of %s: %w", i.Name, err)
		}
		for _, a := range addrs {
			out = append(out, wire.Address{Interface: i.Name, Prefix: a.String()})
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Interface != out[j].Interface {
			return out[i].Interface < out[j].Interface
		}
		return out[i].Prefix < out[j].Prefix
	})
	return out, nil
}

// networks are the prefixes of the addresses.
func (in inside) networks() []netip.Prefix {
	var out []netip.Prefix
	for _, a := range in.addresses {
		if p, err := netip.ParsePrefix(a.Prefix); err == nil {
			out = append(out, p.Masked())
		}
	}
	return out
}

// interfaceOf is the interface that has an address, "" when none has.
func (in inside) interfaceOf(a netip.Addr) string {
	for _, x := range in.addresses {
		if p, err := netip.ParsePrefix(x.Prefix); err == nil && p.Addr() == a {
			return x.Interface
		}
	}
	return ""
}

// parseRoutes reads /proc/net/route: hexadecimal addresses in the machine's byte order.
func parseRoutes(table string) ([]wire.Route, error) {
	var out []wire.Route
	for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
		f := strings.Fields(line)
		if i == 0 || len(f) == 0 {
			continue // the heading
		}
		if len(f) < 8 {
			return nil, fmt.Errorf("/proc/net/route: %q", line)
		}
		dest, err1 := hexAddr(f[1])
		gateway, err2 := hexAddr(f[2])
		mask, err3 := hexAddr(f[7])
		if err1 != nil || err2 != nil || err3 != nil {
			return nil, fmt.Errorf("/proc/net/route: %q", line)
		}
		m := mask.As4()
		ones, _ := net.IPMask(m[:]).Size()
		r := wire.Route{Interface: f[0], Dest: netip.PrefixFrom(dest, ones).String()}
		if !gateway.IsUnspecified() {
			r.Gateway = gateway.String()
		}
		out = append(out, r)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if a.Dest != b.Dest {
			return a.Dest < b.Dest
		}
		return a.Interface < b.Interface
	})
	return out, nil
}

func hexAddr(s string) (netip.Addr, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 4 {
		return netip.Addr{}, fmt.Errorf("%q is no address", s)
	}
	var out [4]byte
	binary.NativeEndian.PutUint32(out[:], binary.BigEndian.Uint32(b))
	return netip.AddrFrom4(out), nil
}

// checks hold what is inside against what no configuration can relax, and against the declaration.
func (in inside) checks(cfg *Config) []wire.Check {
	var out []wire.Check
	check := func(name string, ok bool, format string, args ...any) {
		out = append(out, wire.Check{Name: name, OK: ok, Detail: fmt.Sprintf(format, args...)})
	}
	uids := strings.Fields(in.statusField("Uid"))
	check("proc.user", len(uids) == 4 && !slices.Contains(uids, "0"), "uids %v", uids)
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		v := in.statusField(set)
		check("proc."+strings.ToLower(set), v != "" && strings.Trim(v, "0") == "", "%s", v)
	}
	check("proc.no_new_privs", in.statusField("NoNewPrivs") == "1", "%s", in.statusField("NoNewPrivs"))
	check("proc.seccomp", in.statusField("Seccomp") == "2", "%s", in.statusField("Seccomp"))

	listen := netip.MustParseAddrPort(cfg.Listen).Addr() // Validate has parsed it
	inner := in.interfaceOf(listen)
	check("net.listen", inner != "", "%s on interface %q", listen, inner)
	outward := 0
	for _, r := range in.routes {
		if r.Dest == "0.0.0.0/0" && r.Interface != inner {
			outward++
		}
		if r.Gateway != "" && r.Interface == inner {
			check("net.route", false, "a route to %s by %s leads through the agent's network", r.Dest, r.Gateway)
		}
	}
	check("net.default_route", outward == 1, "%d default routes through the uplink", outward)

	names := make([]string, 0, len(cfg.Sysctls))
	for n := range cfg.Sysctls {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		check("sysctl."+n, in.sysctls[n] == cfg.Sysctls[n], "%s, declared %s", in.sysctls[n], cfg.Sysctls[n])
	}
	return out
}

func (in inside) statusField(name string) string {
	for _, line := range strings.Split(in.status, "\n") {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// ready is the proxy's answer to a challenge.
func (in inside) ready(cfg *Config, nonce string, listen net.Addr) wire.Ready {
	return wire.Ready{
		Nonce: nonce, Listen: listen.String(), Addresses: in.addresses, Routes: in.routes,
		ResolvConf: in.resolvConf, Hosts: in.hosts, Checks: in.checks(cfg),
	}
}
