package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// inside tells a bench that it runs in a network of its own.
const inside = "BENCHPROXY_NETWORK"

// inOwnNetwork runs this program again in a network of its own, where only loopback is: an engine on this machine
// has the kernel track every connection, and drop packets when its table is full, which a bench fills within a
// minute. Who may not make networks measures in the machine's, and is told so.
func inOwnNetwork() (code int, done bool, err error) {
	if os.Getenv(inside) != "" {
		return 0, false, loopbackUp()
	}
	self, err := os.Executable()
	if err != nil {
		return 0, false, err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"=own")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM}
	err = cmd.Start()
	if errors.Is(err, syscall.EPERM) {
		fmt.Fprintln(os.Stderr, "benchproxy: not root: it measures in this machine's network, firewall and all")
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), true, nil // a signal's code is -1
	}
	return 0, true, err
}

// loopbackUp switches loopback on, which is off in a new network.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("switch loopback on: %w", err)
	}
	return nil
}
