package egress

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path"
	"sort"
	"strings"

	"github.com/sandplan/sandplan/providers/docker/shim/inside"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// found is what a proxy finds out about the container that it runs in.
type found struct {
	addresses  []wire.Address
	routes     []wire.Route
	resolvConf string
	hosts      string
	status     inside.Status
	sysctls    map[string]string
}

// look reads it. Root stands before every path, and is "/" outside of tests.
func look(root string, cfg *Config) (found, error) {
	in := found{sysctls: map[string]string{}}
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
	in.resolvConf, in.hosts = read("etc/resolv.conf"), read("etc/hosts")
	status, table := read("proc/self/status"), read("proc/net/route")
	if err != nil {
		return in, err
	}
	if in.status, err = inside.ParseStatus(status); err != nil {
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

// interfaceAddresses lists every address, and with none the interfaces that are up without one: a frame needs
// no address to get through. Kernels put tunnels that are down (tunl0, sit0) into every namespace.
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
		if len(addrs) == 0 && i.Flags&net.FlagUp != 0 {
			out = append(out, wire.Address{Interface: i.Name})
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
func (in found) networks() []netip.Prefix {
	var out []netip.Prefix
	for _, a := range in.addresses {
		if p, err := netip.ParsePrefix(a.Prefix); err == nil {
			out = append(out, p.Masked())
		}
	}
	return out
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

// ready is the proxy's answer to a challenge: what it found, and what it thinks of it.
func (in found) ready(cfg *Config, nonce string, listen net.Addr) wire.Ready {
	r := wire.Ready{
		Nonce: nonce, Listen: listen.String(), Addresses: in.addresses, Routes: in.routes,
		ResolvConf: in.resolvConf, Hosts: in.hosts,
	}
	r.Checks = cfg.Inside().Checks(in.status, in.sysctls, r)
	return r
}
