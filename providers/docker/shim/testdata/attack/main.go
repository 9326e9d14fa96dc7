// Command attack tries to get at process 1, which has its user.
package main

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"
)

func main() {
	for _, name := range []string{"/proc/1/mem", "/proc/1/environ", "/proc/1/fd/0"} {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		fmt.Printf("open %s: %v\n", name, err)
		if err == nil {
			f.Close()
		}
	}
	_, _, errno := syscall.Syscall6(syscall.SYS_PTRACE, syscall.PTRACE_ATTACH, 1, 0, 0, 0, 0)
	fmt.Printf("ptrace: %v\n", errno)
	b := []byte("x")
	iov := syscall.Iovec{Base: &b[0], Len: 1}
	_, _, errno = syscall.Syscall6(sysProcessVMWritev, 1, uintptr(unsafe.Pointer(&iov)), 1, uintptr(unsafe.Pointer(&iov)), 1, 0)
	fmt.Printf("process_vm_writev: %v\n", errno)
	for sig := 1; sig < 65; sig++ {
		if sig == int(syscall.SIGTERM) || sig == int(syscall.SIGINT) || sig == int(syscall.SIGHUP) || sig == int(syscall.SIGQUIT) ||
			sig == int(syscall.SIGUSR1) || sig == int(syscall.SIGUSR2) {
			continue // those come back to us
		}
		if err := syscall.Kill(1, syscall.Signal(sig)); err != nil {
			fmt.Printf("signal %d: %v\n", sig, err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	fmt.Println("process 1 lives:", syscall.Kill(1, 0) == nil)
}
