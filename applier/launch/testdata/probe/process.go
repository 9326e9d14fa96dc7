package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// readProcess prints what the kernel says that this process may do.
func readProcess() {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		say("status", err)
		return
	}
	for _, line := range strings.Split(string(b), "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Uid", "Gid", "Groups":
			fmt.Printf("status %s: %s\n", name, strings.Join(strings.Fields(value), " "))
		}
	}
}

// calls makes system calls that need a capability, or that our profile denies whoever makes them.
func calls() {
	call := func(check string, number uintptr, args ...uintptr) {
		var a [6]uintptr
		copy(a[:], args)
		_, _, errno := syscall.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno == 0 {
			fmt.Println("call " + check + ": done")
			return
		}
		fmt.Println("call " + check + ": " + errno.Error())
	}
	path := func(s string) uintptr {
		p, err := syscall.BytePtrFromString(s)
		if err != nil {
			panic(err)
		}
		return uintptr(unsafe.Pointer(p))
	}
	// With a capability each would be done.
	say("cap setuid", syscall.Setuid(0))
	say("cap chown", os.Chown("/tmp", 0, 0))
	say("cap mknod", unix.Mknod("/tmp/null", unix.S_IFCHR|0o666, 1<<8|3))
	say("cap sethostname", unix.Sethostname([]byte("x")))

	var buf [256]byte
	at := uintptr(unsafe.Pointer(&buf[0]))
	call("mount", unix.SYS_MOUNT, path("none"), path("/tmp"), path("tmpfs"), 0, 0)
	call("remount", unix.SYS_MOUNT, path("none"), path("/work"), 0, unix.MS_REMOUNT|unix.MS_BIND, 0)
	call("umount", unix.SYS_UMOUNT2, path("/work"), unix.MNT_DETACH)
	call("unshare user", unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
	call("setns", unix.SYS_SETNS, 0, 0)
	call("clone3", unix.SYS_CLONE3, at, 8)
	call("openat2", unix.SYS_OPENAT2, 0, 0, 0, 0)
	call("keyctl", unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2), 1)
	call("bpf", unix.SYS_BPF, 0, at, 128)
	call("perf_event_open", unix.SYS_PERF_EVENT_OPEN, at, 0, ^uintptr(0), ^uintptr(0), 0)
	call("userfaultfd", unix.SYS_USERFAULTFD, 0)
	call("io_uring_setup", unix.SYS_IO_URING_SETUP, 1, at)
	call("ptrace", unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0, 0)
	call("process_vm_readv", unix.SYS_PROCESS_VM_READV, 1, at, 1, at, 1, 0)
	call("init_module", unix.SYS_INIT_MODULE, at, 8, path(""))
	call("reboot", unix.SYS_REBOOT, 0, 0, 0, 0)
	call("chroot", unix.SYS_CHROOT, path("/tmp"))
	call("pivot_root", unix.SYS_PIVOT_ROOT, path("/tmp"), path("/tmp"))
}

// files writes where nothing may be written, and makes what may not be made.
func files() {
	for _, name := range []string{"/written", "/work/written", "/work/.git/written", "/.sandplan/written", "/proc/sys/kernel/hostname", "/sys/written"} {
		say("write "+name, os.WriteFile(name, []byte("x"), 0o644))
	}
	say("write /tmp/written", os.WriteFile("/tmp/written", []byte("#!/agent child\n"), 0o755))
	say("execute /tmp/written", syscall.Exec("/tmp/written", []string{"written"}, nil))
	say("set-id", syscall.Chmod("/tmp/written", 0o4755))
	list("below the worktree", "/work/sub")
}
