//go:build linux

package shim

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// deniedCall is a system call that the seccomp profile must refuse. Its arguments are such that the
// kernel, if it saw the call, would do no harm and answer otherwise.
type deniedCall struct {
	name string
	nr   uintptr
	args [6]uintptr
	want unix.Errno // EPERM when not set
}

// minusOne is a descriptor that is never open.
const minusOne = ^uintptr(0)

// nowhere is a path that does not exist.
var nowhere = []byte("/proc/sandplan-nowhere\x00")

// address is where a constant path stands, for the kernel of a constant path.
func address(p []byte) uintptr { return uintptr(unsafe.Pointer(&p[0])) }

// deniedCalls are the promises of the profile, as far as trying tells them from what an unconfined
// process without capabilities would be told anyway.
func deniedCalls(unixSockets bool) []deniedCall {
	const setuid, setgid = 0o4755, 0o2755
	at := address(nowhere)
	calls := []deniedCall{
		{name: "socket(AF_VSOCK)", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}},
		{name: "socket(AF_ALG)", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET}},
		{name: "socket(AF_BLUETOOTH)", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_BLUETOOTH, unix.SOCK_STREAM}},
		{name: "socket(SCTP)", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}},
		{name: "socket(NETLINK_AUDIT)", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}},
		{name: "ptrace", nr: unix.SYS_PTRACE, args: [6]uintptr{unix.PTRACE_DETACH}},
		{name: "process_vm_readv", nr: unix.SYS_PROCESS_VM_READV},
		{name: "process_vm_writev", nr: unix.SYS_PROCESS_VM_WRITEV},
		{name: "pidfd_getfd", nr: unix.SYS_PIDFD_GETFD, args: [6]uintptr{minusOne}},
		{name: "prlimit64 of process 1", nr: unix.SYS_PRLIMIT64, args: [6]uintptr{1, unix.RLIMIT_NOFILE}},
		{name: "sched_setaffinity of process 1", nr: unix.SYS_SCHED_SETAFFINITY, args: [6]uintptr{1}},
		{name: "setpriority of a user", nr: unix.SYS_SETPRIORITY, args: [6]uintptr{unix.PRIO_USER, 0x7ffffffe, 19}},
		{name: "keyctl", nr: unix.SYS_KEYCTL, args: [6]uintptr{minusOne}},
		{name: "add_key", nr: unix.SYS_ADD_KEY},
		{name: "request_key", nr: unix.SYS_REQUEST_KEY},
		{name: "io_uring_setup", nr: unix.SYS_IO_URING_SETUP, want: unix.ENOSYS},
		{name: "clone(CLONE_NEWUSER)", nr: unix.SYS_CLONE, args: [6]uintptr{unix.CLONE_NEWUSER | unix.CLONE_THREAD}},
		{name: "unshare(CLONE_NEWUSER)", nr: unix.SYS_UNSHARE, args: [6]uintptr{unix.CLONE_NEWUSER | unix.CLONE_PARENT}},
		{name: "setns", nr: unix.SYS_SETNS, args: [6]uintptr{minusOne}},
		{name: "clone3", nr: unix.SYS_CLONE3, want: unix.ENOSYS},
		{name: "openat2", nr: unix.SYS_OPENAT2, args: [6]uintptr{minusOne, at}, want: unix.ENOSYS},
		{name: "perf_event_open", nr: unix.SYS_PERF_EVENT_OPEN},
		{name: "userfaultfd", nr: unix.SYS_USERFAULTFD, args: [6]uintptr{minusOne}},
		{name: "mq_open", nr: unix.SYS_MQ_OPEN},
		{name: "fchmod(set-uid)", nr: unix.SYS_FCHMOD, args: [6]uintptr{minusOne, setuid}},
		{name: "fchmod(set-gid)", nr: unix.SYS_FCHMOD, args: [6]uintptr{minusOne, setgid}},
		{name: "fchmodat(set-uid)", nr: unix.SYS_FCHMODAT, args: [6]uintptr{minusOne, at, setuid}},
		{name: "fchmodat(set-gid)", nr: unix.SYS_FCHMODAT, args: [6]uintptr{minusOne, at, setgid}},
		{name: "fchmodat2(set-uid)", nr: unix.SYS_FCHMODAT2, args: [6]uintptr{minusOne, at, setuid}},
		{name: "mknodat(set-uid)", nr: unix.SYS_MKNODAT, args: [6]uintptr{minusOne, at, unix.S_IFREG | setuid}},
		{name: "fcntl(F_SETLEASE)", nr: unix.SYS_FCNTL, args: [6]uintptr{minusOne, unix.F_SETLEASE, unix.F_WRLCK}},
		{name: "openat(O_CREAT, set-uid)", nr: unix.SYS_OPENAT, args: [6]uintptr{minusOne, at, unix.O_CREAT | unix.O_WRONLY, setuid}},
		{name: "openat(O_TMPFILE, set-gid)", nr: unix.SYS_OPENAT, args: [6]uintptr{minusOne, at, unix.O_TMPFILE | unix.O_WRONLY, setgid}},
	}
	if !unixSockets {
		calls = append(calls, deniedCall{name: "socket(AF_UNIX)", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_UNIX, unix.SOCK_STREAM}})
	}
	return append(calls, oldDeniedCalls(at)...)
}

// proveSeccomp tries what the profile denies: engines ignore the parts of a profile that they do not
// know, and nothing but trying shows it.
func proveSeccomp(cfg *Config) checks {
	var c checks
	// What one of these calls would change, if it came through, it changes in this thread alone. The
	// thread is never given back.
	done := make(chan []string)
	go func() {
		runtime.LockOSThread()
		done <- tryDenied(deniedCalls(cfg.UnixSockets))
	}()
	wrong := <-done
	c.add("seccomp.denied", len(wrong) == 0, "%s", strings.Join(wrong, "; "))
	return c
}

// tryDenied says which calls are not refused, or not as the profile refuses them.
func tryDenied(calls []deniedCall) []string {
	var wrong []string
	for _, call := range calls {
		want := call.want
		if want == 0 {
			want = unix.EPERM
		}
		r, _, err := unix.Syscall6(call.nr, call.args[0], call.args[1], call.args[2], call.args[3], call.args[4], call.args[5])
		switch {
		case err == want:
		case err == 0:
			if strings.HasPrefix(call.name, "socket") || call.nr == unix.SYS_USERFAULTFD {
				unix.Close(int(r))
			}
			wrong = append(wrong, call.name+" is allowed")
		default:
			wrong = append(wrong, fmt.Sprintf("%s reaches the kernel (%s)", call.name, err))
		}
	}
	runtime.KeepAlive(nowhere)
	return wrong
}
