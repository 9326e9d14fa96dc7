//go:build linux

package shim

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// link is one network interface.
type link struct {
	index     int
	name      string
	up        bool
	mac       string
	addresses []netip.Prefix
}

// readLinks lists the interfaces. Those that are down and have no address are left out: kernels put
// tunnels of that kind (tunl0, sit0) into every namespace.
func readLinks() ([]link, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var out []link
	for _, ifi := range list {
		l := link{index: ifi.Index, name: ifi.Name, up: ifi.Flags&net.FlagUp != 0, mac: ifi.HardwareAddr.String()}
		addrs, err := ifi.Addrs()
		if err != nil {
			return nil, fmt.Errorf("addresses of %s: %w", ifi.Name, err)
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				return nil, fmt.Errorf("address %s of %s: %w", a, ifi.Name, err)
			}
			l.addresses = append(l.addresses, p)
		}
		if l.up || len(l.addresses) > 0 {
			out = append(out, l)
		}
	}
	return out, nil
}

func linkName(links []link, index int) string {
	for _, l := range links {
		if l.index == index {
			return l.name
		}
	}
	return fmt.Sprintf("#%d", index)
}

// dump asks the kernel for one of its tables.
func dump(what int) ([]syscall.NetlinkMessage, error) {
	b, err := syscall.NetlinkRIB(what, unix.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	return syscall.ParseNetlinkMessage(b)
}

// attributes reads the attributes that follow a message's own header of size bytes.
func attributes(data []byte, size int) map[uint16][]byte {
	out := map[uint16][]byte{}
	for data = data[min(size, len(data)):]; len(data) >= unix.SizeofRtAttr; {
		n := int(binary.NativeEndian.Uint16(data))
		if n < unix.SizeofRtAttr || n > len(data) {
			break
		}
		out[binary.NativeEndian.Uint16(data[2:])] = data[unix.SizeofRtAttr:n]
		data = data[min((n+3)&^3, len(data)):]
	}
	return out
}

// route is one line of any routing table, without those of local and multicast addresses, which every
// interface brings along.
type route struct {
	link    string
	dest    netip.Prefix
	gateway netip.Addr
}

func (r route) report() wire.Route {
	out := wire.Route{Interface: r.link, Dest: r.dest.String()}
	if r.gateway.IsValid() {
		out.Gateway = r.gateway.String()
	}
	return out
}

// readRoutes lists the routes that lead anywhere, of all tables, IPv4 and IPv6.
func readRoutes(links []link) ([]route, error) {
	msgs, err := dump(unix.RTM_GETROUTE)
	if err != nil {
		return nil, err
	}
	var out []route
	for _, m := range msgs {
		if m.Header.Type != unix.RTM_NEWROUTE || len(m.Data) < unix.SizeofRtMsg {
			continue
		}
		family, bits, kind := m.Data[0], int(m.Data[1]), m.Data[7]
		// Unicast only: local, broadcast and multicast routes come with each address; unreachable,
		// blackhole and prohibit lead nowhere.
		if kind != unix.RTN_UNICAST || family != unix.AF_INET && family != unix.AF_INET6 {
			continue
		}
		a := attributes(m.Data, unix.SizeofRtMsg)
		r := route{}
		if oif := a[unix.RTA_OIF]; len(oif) == 4 {
			r.link = linkName(links, int(binary.NativeEndian.Uint32(oif)))
		}
		dest, ok := netip.AddrFromSlice(a[unix.RTA_DST])
		if !ok {
			dest = netip.IPv4Unspecified()
			if family == unix.AF_INET6 {
				dest = netip.IPv6Unspecified()
			}
		}
		r.dest = netip.PrefixFrom(dest, bits)
		r.gateway, _ = netip.AddrFromSlice(a[unix.RTA_GATEWAY])
		out = append(out, r)
	}
	return out, nil
}

// neighbour is one entry of the neighbour tables.
type neighbour struct {
	link  string
	addr  netip.Addr
	mac   string
	state uint16
}

var neighbourStates = []struct {
	bit  uint16
	name string
}{
	{unix.NUD_PERMANENT, "permanent"}, {unix.NUD_REACHABLE, "reachable"}, {unix.NUD_STALE, "stale"},
	{unix.NUD_DELAY, "delay"}, {unix.NUD_PROBE, "probe"}, {unix.NUD_NOARP, "noarp"},
	{unix.NUD_INCOMPLETE, "incomplete"}, {unix.NUD_FAILED, "failed"},
}

// answers reports whether somebody is there: the kernel knows a link-layer address for it.
func (n neighbour) answers() bool {
	return n.state&(unix.NUD_PERMANENT|unix.NUD_REACHABLE|unix.NUD_STALE|unix.NUD_DELAY|unix.NUD_PROBE) != 0
}

func (n neighbour) report() wire.Neighbour {
	out := wire.Neighbour{Interface: n.link, IP: n.addr.String(), MAC: n.mac, State: "none"}
	for _, s := range neighbourStates {
		if n.state&s.bit != 0 {
			out.State = s.name
			break
		}
	}
	return out
}

func readNeighbours(links []link) ([]neighbour, error) {
	const header = 12 // struct ndmsg: family, padding, ifindex (4), state (8), flags, type
	const attrDst, attrLLAddr = 1, 2
	msgs, err := dump(unix.RTM_GETNEIGH)
	if err != nil {
		return nil, err
	}
	var out []neighbour
	for _, m := range msgs {
		if m.Header.Type != unix.RTM_NEWNEIGH || len(m.Data) < header {
			continue
		}
		n := neighbour{link: linkName(links, int(binary.NativeEndian.Uint32(m.Data[4:]))), state: binary.NativeEndian.Uint16(m.Data[8:])}
		a := attributes(m.Data, header)
		addr, ok := netip.AddrFromSlice(a[attrDst])
		// Multicast and loopback addresses need no neighbour to answer.
		if !ok || addr.IsMulticast() || addr.IsLoopback() || n.state&unix.NUD_NOARP != 0 {
			continue
		}
		n.addr, n.mac = addr, net.HardwareAddr(a[attrLLAddr]).String()
		out = append(out, n)
	}
	return out, nil
}
