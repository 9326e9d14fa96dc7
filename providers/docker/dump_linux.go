package docker

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

func proxied() ([]netlink.Neigh, error) {
	all, err := dump(func() ([]netlink.Neigh, error) { return netlink.NeighProxyList(0, familyAll) })
	if err != nil {
		return nil, fmt.Errorf("list the addresses that this machine answers for: %w", err)
	}
	return all, nil
}

// dump asks again when the list changed while the kernel was writing it down: the engine makes and
// removes interfaces all the time, and what is listed then may be incomplete.
func dump[T any](list func() ([]T, error)) ([]T, error) {
	const attempts = 50
	for attempt := 1; ; attempt++ {
		all, err := list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) || attempt == attempts {
			return all, err
		}
	}
}
