package probe

import "golang.org/x/sys/unix"

// forkWaiting starts a process that waits for its end in the kernel. Of the parent's threads it has only
// the calling one, and it never returns to Go: every step is a bare system call.
//
//go:norace
//go:nosplit
func forkWaiting() (pid int, errno unix.Errno) {
	r, _, e := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 {
		return 0, e
	}
	if r == 0 {
		for {
			unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	return int(r), 0
}
