// Command hostile tries to get at what is not its own from inside an agent's sandbox, and prints a line for each
// attempt. It runs where an agent runs: as the worktree's owner, with a writable /work whose .git is read-only.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	for _, a := range []struct {
		name string
		try  func() string
	}{
		{"a second name for a read-only file", hardLink},
		{"a file without a name, linked into .git", nameless},
		{"a read-only file, opened again by its descriptor", reopen},
		{".git exchanged with a directory", exchange},
		{"sandplan's own program, changed in memory", ownMapping},
		{"capabilities and flags of files", fileFlags},
		{"process 1, by its descriptor and with all others", otherSignals},
		{"the machine: restart, clock, log", machine},
		{"ahead of all other processes", realTime},
		{"the proxy's address as the sender's", otherSender},
		{"sandplan's own program, started again", ownProgram},
		{"a file that nobody else can open", lease},
	} {
		fmt.Printf("%s: %s\n", a.name, a.try())
	}
	if len(os.Args) > 1 && os.Args[1] == "spin" {
		spin()
	}
}

// said is the error, or that there was none.
func said(err error) string {
	if err == nil {
		return "DONE"
	}
	var errno unix.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

func all(errs ...error) string {
	var out []string
	for _, err := range errs {
		out = append(out, said(err))
	}
	return strings.Join(out, " ")
}

// hardLink: what a link beside the worktree's own files names may be written, wherever the file was first.
func hardLink() string { return said(unix.Link("/work/.git/config", "/work/config")) }

func nameless() string {
	_, err := unix.Open("/work/.git", unix.O_TMPFILE|unix.O_RDWR, 0o600)
	fd, made := unix.Open("/work", unix.O_TMPFILE|unix.O_RDWR, 0o600)
	if made != nil {
		return all(err, made)
	}
	return all(err, unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, "/work/.git/hooks", unix.AT_SYMLINK_FOLLOW))
}

func reopen() string {
	var out []error
	for _, path := range []string{"/work/.git/config", "/.sandplan/sandplan", "/agent"} {
		fd, err := unix.Open(path, unix.O_RDONLY, 0)
		if err == nil {
			_, err = unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY, 0)
		}
		out = append(out, err)
	}
	return all(out...)
}

func exchange() string {
	if err := os.MkdirAll("/work/other/hooks", 0o755); err != nil {
		return said(err)
	}
	return all(unix.Renameat2(unix.AT_FDCWD, "/work/other", unix.AT_FDCWD, "/work/.git", unix.RENAME_EXCHANGE),
		unix.Renameat2(unix.AT_FDCWD, "/work/.git", unix.AT_FDCWD, "/work/gone", 0))
}

// ownMapping writes past the protection of a page, as debuggers may: it must be a copy that is written.
func ownMapping() string {
	fd, err := unix.Open("/.sandplan/sandplan", unix.O_RDONLY, 0)
	if err != nil {
		return said(err)
	}
	_, shared := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	page, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return said(err)
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err == nil {
		_, _ = mem.WriteAt([]byte("evil"), int64(uintptr(unsafe.Pointer(&page[0]))))
	}
	head := make([]byte, 4)
	_, err = unix.Pread(fd, head, 0)
	return fmt.Sprintf("%s, the file begins with %q (%s)", said(shared), head, said(err))
}

func fileFlags() string {
	if err := os.WriteFile("/work/mine", []byte("x"), 0o755); err != nil {
		return said(err)
	}
	// Version 2, effective, CAP_SYS_ADMIN permitted.
	capability := []byte{1, 0, 0, 2, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	f, err := os.Open("/work/mine")
	if err != nil {
		return said(err)
	}
	const immutable = 0x10
	return all(unix.Setxattr("/work/mine", "security.capability", capability, 0), unix.Setxattr("/work/mine", "trusted.x", capability, 0),
		unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, immutable))
}

func otherSignals() string {
	fd, err := unix.PidfdOpen(1, 0)
	if err != nil {
		return "no descriptor: " + said(err)
	}
	sent := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	stopped := unix.PidfdSendSignal(fd, unix.SIGSTOP, nil, 0)
	return all(sent, stopped, unix.Kill(-1, unix.SIGKILL)) + fmt.Sprintf(", process 1 lives: %v", unix.Kill(1, 0) == nil)
}

func machine() string {
	now := unix.NsecToTimespec(0)
	_, read := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, make([]byte, 1<<16))
	return all(unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART), unix.ClockSettime(unix.CLOCK_REALTIME, &now), read)
}

func realTime() string {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	type param struct{ priority int32 }
	p := param{50}
	const fifo = 1
	_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, 0, fifo, uintptr(unsafe.Pointer(&p)))
	var scheduler error
	if errno != 0 {
		scheduler = errno
	}
	return all(scheduler, unix.Setpriority(unix.PRIO_PROCESS, 0, -20))
}

// otherSender sends to the gateway with the address of the proxy, which may talk to everybody.
func otherSender() string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return said(err)
	}
	transparent := unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_FREEBIND, 1)
	bound := unix.Bind(fd, &unix.SockaddrInet4{Port: 4711, Addr: [4]byte{10, 234, 0, 2}})
	sent := unix.Sendto(fd, []byte("from the proxy"), 0, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{10, 234, 0, 1}})
	return fmt.Sprintf("transparent %s, bound %s, sent %s", said(transparent), said(bound), said(sent))
}

// ownProgram is there for everybody to execute. None of what it does here is more than any other program may.
func ownProgram() string {
	var out []string
	for _, args := range [][]string{{"shim", "{}"}, {"shim", string(argument())}} {
		b, err := exec.Command("/.sandplan/sandplan", args...).CombinedOutput()
		line, _, _ := strings.Cut(string(b), "\n")
		out = append(out, fmt.Sprintf("%s (%v)", line, err))
	}
	return strings.Join(out, "; ")
}

// argument is that of process 1, which is no secret.
func argument() []byte {
	b, err := os.ReadFile("/proc/1/cmdline")
	if err != nil {
		return nil
	}
	parts := strings.Split(string(b), "\x00")
	return []byte(parts[len(parts)-2])
}

// lease makes whoever opens a file wait, for as long as a minute.
func lease() string {
	f, err := os.OpenFile("/work/leased", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return said(err)
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	leased = f
	return said(err)
}

var leased *os.File // it holds for as long as it is open

// spin leaves no processor to anybody, for ever.
func spin() {
	for range 16 {
		_ = exec.Command(os.Args[0], "busy").Start()
	}
	for end := time.Now().Add(time.Hour); time.Now().Before(end); {
	}
}

func init() {
	if len(os.Args) > 1 && os.Args[1] == "busy" {
		for {
		}
	}
}
