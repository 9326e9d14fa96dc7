package docker

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// links, addresses and routes are what the kernel says of this machine's network now.
func links() ([]netlink.Link, error) {
	all, err := dump(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list this machine's network interfaces: %w", err)
	}
	return all, nil
}

func addresses() ([]netlink.Addr, error) {
	all, err := dump(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, familyAll) })
	if err != nil {
		return nil, fmt.Errorf("list this machine's addresses: %w", err)
	}
	return all, nil
}

// Families as Linux numbers them; the library has names for them on Linux only.
const (
	familyAll  = 0
	familyIPv4 = 2
)

func routes() ([]netlink.Route, error) {
	all, err := dump(func() ([]netlink.Route, error) {
		// Without a table in the filter only the main one is listed; "unspecified" there means all.
		return netlink.RouteListFiltered(familyIPv4, &netlink.Route{Table: 0}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, fmt.Errorf("list this machine's routes: %w", err)
	}
	return all, nil
}
