//go:build linux

package shim

import "golang.org/x/sys/unix"

// oldDeniedCalls are denied calls that later architectures never had.
func oldDeniedCalls(nowhere uintptr) []deniedCall {
	const setuid = 0o4755
	return []deniedCall{
		{name: "chmod(set-uid)", nr: unix.SYS_CHMOD, args: [6]uintptr{nowhere, setuid}},
		{name: "creat(set-uid)", nr: unix.SYS_CREAT, args: [6]uintptr{nowhere, setuid}},
		{name: "mknod(set-uid)", nr: unix.SYS_MKNOD, args: [6]uintptr{nowhere, unix.S_IFREG | setuid}},
		{name: "open(O_CREAT, set-uid)", nr: unix.SYS_OPEN, args: [6]uintptr{nowhere, unix.O_CREAT | unix.O_WRONLY, setuid}},
	}
}
