package dockertest

import (
	"fmt"
	"io/fs"
	"net"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
)

// Host is the network of the machine below a Fake, in memory: bridges, what is plugged into them, and
// what the kernel is set to. It is the docker.Kernel of clients of that fake.
type Host struct {
	mu       sync.Mutex
	next     int
	links    []netlink.Link
	ports    map[string]int // the index of an endpoint's interface, by endpoint ID
	settings map[string]string
}

// newHost is a machine with the engine's own bridge.
func newHost() *Host {
	h := &Host{ports: map[string]int{}, settings: map[string]string{"/proc/sys/net/bridge/bridge-nf-call-iptables": "1\n"}}
	h.add(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "docker0", MTU: 1500, Flags: net.FlagUp}})
	return h
}

// add is called with mu held, or before anybody else knows h.
func (h *Host) add(link netlink.Link) int {
	h.next++
	link.Attrs().Index = h.next
	h.links = append(h.links, link)
	return h.next
}

// Links implements docker.Kernel, as the methods after it do.
func (h *Host) Links() ([]netlink.Link, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []netlink.Link
	for _, l := range h.links {
		switch l := l.(type) {
		case *machineBridge:
			bridge := l.Bridge // what is read must not change with what there is
			out = append(out, &bridge)
		case *netlink.Veth:
			port := *l
			out = append(out, &port)
		default:
			out = append(out, l)
		}
	}
	return out, nil
}

// machineBridge is a bridge with the host's address on it.
type machineBridge struct {
	netlink.Bridge
	address *net.IPNet
}

// Link is the interface of a name.
func (h *Host) Link(name string) (netlink.Link, error) {
	all, err := h.Links()
	for _, l := range all {
		if l.Attrs().Name == name {
			return l, err
		}
	}
	return nil, err
}

// Addresses are those of bridges.
func (h *Host) Addresses() ([]netlink.Addr, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []netlink.Addr
	for _, l := range h.links {
		if b, ok := l.(*machineBridge); ok && b.address != nil {
			out = append(out, netlink.Addr{IPNet: b.address, LinkIndex: b.Attrs().Index})
		}
	}
	return out, nil
}

// Routes are none: the machine knows nobody else.
func (h *Host) Routes() ([]netlink.Route, error) { return nil, nil }

// Proxied are none: the machine answers for nobody else.
func (h *Host) Proxied() ([]netlink.Neigh, error) { return nil, nil }

// Setting is what a file below /proc/sys holds. What was never written is 0.
func (h *Host) Setting(path string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if v, ok := h.settings[path]; ok {
		return v, nil
	}
	for _, l := range h.links {
		if strings.Contains(path, "/"+l.Attrs().Name+"/") {
			return "0\n", nil
		}
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

// SetBridge sets what a bridge is to do.
func (h *Host) SetBridge(bridge string, settings map[string]string) error {
	link, err := h.Link(bridge)
	if err != nil || link == nil {
		return &fs.PathError{Op: "find interface", Path: bridge, Err: fs.ErrNotExist}
	}
	for path, value := range settings {
		h.Set(path, value)
	}
	return nil
}

// Set writes a file below /proc/sys, as anybody may who is root.
func (h *Host) Set(path, value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settings[path] = value + "\n"
}

func (h *Host) addBridge(n *fakeNetwork) {
	if n.bridge() == "" {
		return
	}
	none := uint16(0)
	b := &machineBridge{Bridge: netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: n.bridge(), MTU: 1500, Flags: net.FlagUp}, GroupFwdMask: &none}}
	if prefix, gateway := n.subnet(); n.option("inhibit_ipv4") != "true" && prefix.IsValid() {
		if ip, _, err := net.ParseCIDR(fmt.Sprintf("%s/%d", gateway, prefix.Bits())); err == nil {
			b.address = &net.IPNet{IP: ip, Mask: net.CIDRMask(prefix.Bits(), 32)}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.add(b)
}

func (h *Host) removeBridge(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, l := range h.links {
		if name != "" && l.Attrs().Name == name {
			h.links = append(h.links[:i:i], h.links[i+1:]...)
			break
		}
	}
	for path := range h.settings {
		if strings.Contains(path, "/"+name+"/") {
			delete(h.settings, path)
		}
	}
}

// plug puts an endpoint's interface into a bridge.
func (h *Host) plug(bridge, endpoint string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.links {
		if bridge != "" && l.Attrs().Name == bridge {
			h.ports[endpoint] = h.add(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("veth%d", h.next), MasterIndex: l.Attrs().Index}})
			return
		}
	}
}

func (h *Host) unplug(endpoint string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, l := range h.links {
		if index, ok := h.ports[endpoint]; ok && l.Attrs().Index == index {
			h.links = append(h.links[:i:i], h.links[i+1:]...)
			break
		}
	}
	delete(h.ports, endpoint)
}
