//go:build !linux

package docker

import (
	"errors"
	"net"
)

func peerOf(*net.UnixConn) (int, error) { return 0, errors.ErrUnsupported }
