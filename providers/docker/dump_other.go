//go:build !linux

package docker

import "github.com/vishvananda/netlink"

func proxied() ([]netlink.Neigh, error) { return nil, errNotLinux }

// dump is nothing there: the kernel of another system is asked for nothing.
func dump[T any](func() ([]T, error)) ([]T, error) { return nil, errNotLinux }
