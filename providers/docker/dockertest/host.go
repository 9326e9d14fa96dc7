package dockertest

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/vishvananda/netlink"
)

// Host is the network namespace in which fakes make bridges, and plug endpoints into them. The kernel
// takes a tenth of a second to remove a bridge, so that nothing is removed: what is not needed any more
// is set aside under another name, and goes with the namespace.
type Host struct {
	mu    sync.Mutex
	made  int
	aside int
	free  []*netlink.Veth
}

func (h *Host) addBridge(n *fakeNetwork) error {
	name := n.bridge()
	if name == "" {
		return nil
	}
	refuse := func(err error) error { return failure(http.StatusInternalServerError, "bridge %s: %v", name, err) }
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	attrs.MTU = 1500
	bridge := &netlink.Bridge{LinkAttrs: attrs}
	if err := netlink.LinkAdd(bridge); err != nil {
		return refuse(err)
	}
	prefix, gateway := n.subnet()
	if n.option("inhibit_ipv4") != "true" && prefix.IsValid() {
		address, err := netlink.ParseAddr(fmt.Sprintf("%s/%d", gateway, prefix.Bits()))
		if err == nil {
			err = netlink.AddrAdd(bridge, address)
		}
		if err != nil {
			return refuse(err)
		}
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return refuse(err)
	}
	return nil
}

func (h *Host) removeBridge(name string) {
	link, err := netlink.LinkByName(name)
	if err != nil || name == "" {
		return
	}
	h.mu.Lock()
	h.aside++
	aside := fmt.Sprintf("aside%d", h.aside)
	h.mu.Unlock()
	_ = netlink.LinkSetDown(link)
	addresses, _ := netlink.AddrList(link, netlink.FAMILY_ALL)
	for i := range addresses {
		_ = netlink.AddrDel(link, &addresses[i])
	}
	_ = netlink.LinkSetName(link, aside)
}

// plug puts an endpoint's interface into a bridge. Where it cannot, the count of ports tells.
func (h *Host) plug(bridge string) *netlink.Veth {
	master, err := netlink.LinkByName(bridge)
	if bridge == "" || err != nil {
		return nil
	}
	port, err := h.take()
	if err != nil || netlink.LinkSetMaster(port, master) != nil {
		return nil
	}
	return port
}

func (h *Host) unplug(port *netlink.Veth) {
	if port == nil {
		return
	}
	_ = netlink.LinkSetNoMaster(port)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free = append(h.free, port)
}

func (h *Host) take() (*netlink.Veth, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.free); n > 0 {
		port := h.free[n-1]
		h.free = h.free[:n-1]
		return port, nil
	}
	h.made++
	attrs := netlink.NewLinkAttrs()
	attrs.Name = fmt.Sprintf("port%d", h.made)
	port := &netlink.Veth{LinkAttrs: attrs, PeerName: fmt.Sprintf("peer%d", h.made)}
	return port, netlink.LinkAdd(port)
}
