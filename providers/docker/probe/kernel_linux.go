package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// isAbsent: the kernel does not have what was asked for. (Our own filter answers ENOSYS to some calls: this
// means something only for an attempt without the boundary.)
func isAbsent(err error) bool {
	return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EPROTONOSUPPORT) ||
		errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV)
}

// apart runs a call on a thread that ends with it: what the call changes is the thread's.
func apart(call func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		done <- call()
	}()
	return <-done
}

// syscallError is the error of a system call that has no wrapper.
func syscallError(number uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return r, errno
	}
	return r, nil
}

// opened is the error of a call that returns a descriptor, which is closed.
func opened(fd int, err error) error {
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func (p *prober) vsock() result {
	return tried("socket(AF_VSOCK)", opened(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)))
}

func (p *prober) packet() result {
	return first(tried("socket(AF_PACKET, SOCK_RAW)", opened(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, int(swap(unix.ETH_P_ALL))))),
		tried("socket(AF_PACKET, SOCK_DGRAM)", opened(unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, int(swap(unix.ETH_P_ALL))))))
}

func (p *prober) raw() result {
	return first(tried("socket(AF_INET, SOCK_RAW)", opened(unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW))),
		tried("socket(AF_INET6, SOCK_RAW)", opened(unix.Socket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW))))
}

// netlink gives loopback one more of its own addresses: that reaches nothing, and takes the right to give
// an interface any address.
func (p *prober) netlink() result {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return held("%v", err)
	}
	return tried("RTM_NEWADDR", addAddress(lo.Index, [4]byte{127, 9, 9, 9}))
}

func addAddress(index int, ip [4]byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	body := []byte{unix.AF_INET, 8, 0, unix.RT_SCOPE_HOST}
	body = binary.NativeEndian.AppendUint32(body, uint32(index))
	for _, kind := range []uint16{unix.IFA_LOCAL, unix.IFA_ADDRESS} {
		body = binary.NativeEndian.AppendUint16(body, 8)
		body = binary.NativeEndian.AppendUint16(body, kind)
		body = append(body, ip[:]...)
	}
	var b []byte
	b = binary.NativeEndian.AppendUint32(b, uint32(unix.SizeofNlMsghdr+len(body)))
	b = binary.NativeEndian.AppendUint16(b, unix.RTM_NEWADDR)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE)
	b = binary.NativeEndian.AppendUint32(b, 1)
	b = append(binary.NativeEndian.AppendUint32(b, 0), body...)
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 {
		return errors.New("the kernel's answer is too short")
	}
	if errno := -int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); errno != 0 {
		return syscall.Errno(errno)
	}
	return nil
}

func (p *prober) userNamespace() result {
	cmd := exec.Command(p.self, Command, "nothing")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	return tried("clone(CLONE_NEWUSER)", cmd.Run())
}

func (p *prober) unshare() result {
	var all []result
	for _, n := range []struct {
		name string
		flag int
	}{{"mount", unix.CLONE_NEWNS}, {"network", unix.CLONE_NEWNET}, {"UTS", unix.CLONE_NEWUTS}} {
		all = append(all, tried("unshare("+n.name+")", apart(func() error { return unix.Unshare(n.flag) })))
	}
	return first(all...)
}

// setns joins the namespaces of the process that guards it, and its own anew.
func (p *prober) setns() result {
	target, end := p.target()
	defer end()
	var all []result
	for _, pid := range []string{strconv.Itoa(target), "self"} {
		for _, kind := range []string{"net", "mnt", "uts", "ipc"} {
			path := "/proc/" + pid + "/ns/" + kind
			all = append(all, tried("setns("+path+")", apart(func() error {
				fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err != nil {
					return err
				}
				defer unix.Close(fd)
				if kind == "mnt" { // which a thread cannot join while it shares its root with others
					if err := unix.Unshare(unix.CLONE_FS); err != nil {
						return err
					}
				}
				return unix.Setns(fd, 0)
			})))
		}
	}
	return first(all...)
}

func (p *prober) keyctl() result {
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_PROCESS_KEYRING, true)
	_, add := unix.AddKey("user", "sandplan-verify", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
	return first(tried("keyctl", err), tried("add_key", add))
}

func (p *prober) bpf() result {
	attr := struct{ kind, key, value, entries uint32 }{kind: 2 /* array */, key: 4, value: 4, entries: 1}
	fd, err := syscallError(unix.SYS_BPF, 0 /* create a map */, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	return tried("bpf", opened(int(fd), err))
}

func (p *prober) userfaultfd() result {
	const userOnly = 1
	fd, err := syscallError(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|userOnly)
	return tried("userfaultfd", opened(int(fd), err))
}

func (p *prober) ioUring() result {
	var params [120]byte
	fd, err := syscallError(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)))
	return tried("io_uring_setup", opened(int(fd), err))
}

func (p *prober) perf() result {
	attr := &unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
	return tried("perf_event_open", opened(unix.PerfEventOpen(attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)))
}

// handle opens a file that it may see by the handle that file systems know it by: who may do that can open
// any file of the same file system, mounted here or not.
func (p *prober) handle() result {
	dir, err := os.Open("/work")
	if err != nil {
		return held("%v", err)
	}
	defer dir.Close()
	h, _, err := unix.NameToHandleAt(int(dir.Fd()), "", unix.AT_EMPTY_PATH)
	if err != nil {
		// Handles can be guessed: the first directory of most file systems is inode 2.
		h = unix.NewFileHandle(1, []byte{2, 0, 0, 0, 0, 0, 0, 0})
	}
	return tried("open_by_handle_at", opened(unix.OpenByHandleAt(int(dir.Fd()), h, unix.O_RDONLY)))
}

func (p *prober) mknod() result {
	name := filepath.Join(p.scratch(), p.Name+"-device")
	defer os.Remove(name)
	return first(tried("mknod of a character device", unix.Mknod(name, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))),
		tried("mknod of a block device", unix.Mknod(name, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 200)))))
}

// devices opens every device that not every container has.
func (p *prober) devices() result {
	usual := []string{"null", "zero", "full", "random", "urandom", "tty", "console", "ptmx"}
	entries, err := os.ReadDir("/dev")
	if err != nil {
		return held("%v", err)
	}
	n := 0
	for _, e := range entries {
		if e.Type()&os.ModeDevice == 0 || slices.Contains(usual, e.Name()) {
			continue
		}
		n++
		if f, err := os.OpenFile("/dev/"+e.Name(), os.O_RDWR|unix.O_NONBLOCK, 0); err == nil {
			f.Close()
			return through("/dev/%s can be opened", e.Name())
		}
	}
	return held("%d further devices, and none can be opened", n)
}

func (p *prober) capabilities() result {
	raise := func(c uint) error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		data[0].Permitted, data[0].Effective = 1<<c, 1<<c
		return unix.Capset(&header, &data[0])
	}
	var all []result
	for _, c := range []struct {
		name string
		bit  uint
	}{{"CAP_NET_RAW", unix.CAP_NET_RAW}, {"CAP_NET_ADMIN", unix.CAP_NET_ADMIN}, {"CAP_SYS_ADMIN", unix.CAP_SYS_ADMIN}, {"CAP_DAC_OVERRIDE", unix.CAP_DAC_OVERRIDE}} {
		all = append(all, tried("raising "+c.name, apart(func() error { return raise(c.bit) })))
	}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if name, value, ok := strings.Cut(line, ":"); ok && (name == "CapEff" || name == "CapBnd") && strings.Trim(strings.TrimSpace(value), "0") != "" {
			all = append(all, through("%s is %s", name, strings.TrimSpace(value)))
		}
	}
	return first(all...)
}

// setuid becomes root, or, where it is that already, somebody else: both take the right to be anybody.
func (p *prober) setuid() result {
	other := uintptr(0)
	if os.Getuid() == 0 {
		other = 65000
	}
	return tried(fmt.Sprintf("setresuid(%d)", other), apart(func() error {
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, other, other, other)
		if errno != 0 {
			return errno
		}
		return nil
	}))
}

func (p *prober) hostname() result {
	return tried("sethostname", apart(func() error {
		before, err := os.Hostname()
		if err != nil {
			return err
		}
		return unix.Sethostname([]byte(before))
	}))
}

// writable opens settings of the kernel for writing, and writes nothing.
func writable(paths ...string) result {
	var all []result
	for _, path := range paths {
		err := opened(unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0))
		r := tried("opening "+path+" for writing", err)
		r.absent = errors.Is(err, unix.ENOENT)
		all = append(all, r)
	}
	return first(all...)
}

func (p *prober) sysctl() result {
	return writable("/proc/sys/net/ipv4/ip_forward", "/proc/sys/kernel/hostname", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
		"/proc/sys/fs/suid_dumpable", "/proc/irq/default_smp_affinity", "/sys/kernel/uevent_helper")
}

func (p *prober) corePattern() result { return writable("/proc/sys/kernel/core_pattern") }

func (p *prober) sysrq() result { return writable("/proc/sysrq-trigger", "/proc/sys/kernel/sysrq") }
