package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// User is who a container's process runs as.
type User struct{ UID, GID uint32 }

func (u User) String() string { return fmt.Sprintf("%d:%d", u.UID, u.GID) }

// ParseUser reads the attribute `user`: UID or UID:GID, plain decimal numbers. Names are not
// accepted, because they mean what the image's passwd file says; neither are signs, leading zeros or
// other bases, so that there is one spelling of user 0. Without GID the group is the UID.
func ParseUser(s string) (User, error) {
	uid, gid, two := strings.Cut(s, ":")
	if !two {
		gid = uid
	}
	u, err := parseID(uid)
	if err != nil {
		return User{}, fmt.Errorf("%q is not a user: %w; write UID or UID:GID, for example 1000 or 1000:1000", s, err)
	}
	g, err := parseID(gid)
	if err != nil {
		return User{}, fmt.Errorf("%q is not a user: %w; write UID or UID:GID, for example 1000 or 1000:1000", s, err)
	}
	return User{UID: u, GID: g}, nil
}

// maxID: the number above it means "no change" to the kernel.
const maxID = 1<<32 - 2

func parseID(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n > maxID {
		return 0, fmt.Errorf("%q is not a number from 0 to %d", s, uint32(maxID))
	}
	if strconv.FormatUint(n, 10) != s {
		return 0, fmt.Errorf("%q is not the plain spelling of %d", s, n)
	}
	return uint32(n), nil
}

// ProxyUID is whom the proxies run as, and no agent. Some of what the kernel hands out is counted for each user of
// the machine, in whatever container (watches of epoll, pages of pipes): an agent of the same number could use it up
// and so keep the proxies of all invocations from new connections.
const ProxyUID = 65531

// CheckUser refuses whom the proxies run as, and user 0 where the worktree is writable: even without capabilities it
// leaves set-user-ID-root files behind on the host's file system.
func CheckUser(u User, writable bool) error {
	switch {
	case u.UID == ProxyUID:
		return fmt.Errorf("user %d is whom the proxies run as, and no agent may use up what the kernel grants them; set user = \"UID:GID\" with another UID", u.UID)
	case u.UID == 0 && writable:
		return errors.New("user 0 may not run where the worktree is writable: what it leaves there belongs to root on the host; set user = \"UID:GID\" with a UID above 0")
	}
	return nil
}
