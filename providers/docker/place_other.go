//go:build !linux

package docker

import "errors"

// errNotLinux: worktrees are looked up with openat2, and are the engine's only where both run here.
var errNotLinux = errors.New("worktrees can be used on Linux only, on the machine of the engine")

func findPlace(string) (place, error) { return place{}, errNotLinux }

func readSmall(string, int64) ([]byte, error) { return nil, errNotLinux }

func hasACL(string) bool { return false }
