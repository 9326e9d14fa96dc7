package egress

import (
	"syscall"
	"unsafe"
)

// direct says that the calls of this file exist.
const direct = true

// receive reads what is there. MSG_DONTWAIT holds what the scheduler is not told to: that it returns at once.
func receive(fd uintptr, p []byte) (int, error) { return transfer(syscall.SYS_RECVFROM, fd, p, 0) }

// peek reads one byte and leaves it there.
func peek(fd uintptr) (int, error) {
	return transfer(syscall.SYS_RECVFROM, fd, make([]byte, 1), syscall.MSG_PEEK)
}

// send writes what there is room for.
func send(fd uintptr, p []byte) (int, error) { return transfer(syscall.SYS_SENDTO, fd, p, 0) }

func transfer(call, fd uintptr, p []byte, flags uintptr) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)),
			syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL|flags, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, syscall.EAGAIN
		default:
			return 0, errno
		}
	}
}

// shutdown ends what is written. It waits for nothing.
func shutdown(fd uintptr) error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SHUTDOWN, fd, syscall.SHUT_WR, 0); errno != 0 {
		return errno
	}
	return nil
}

// connected says that a connection stands, whatever each side has ended. Of one that does not, untold is the error of it
// that nobody was told, or 0.
func connected(fd uintptr) (stands bool, untold syscall.Errno) {
	var name syscall.RawSockaddrInet4
	size := uint32(unsafe.Sizeof(name))
	if _, _, errno := syscall.RawSyscall(syscall.SYS_GETPEERNAME, fd, uintptr(unsafe.Pointer(&name)), uintptr(unsafe.Pointer(&size))); errno != syscall.ENOTCONN {
		return true, 0
	}
	errno, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR)
	if err != nil {
		return false, 0
	}
	return false, syscall.Errno(errno)
}

// saidAll says that the other side of a connection that stands has ended what it says.
func saidAll(fd uintptr) bool {
	const closeWait, lastAck, closing = 8, 9, 11 // of include/net/tcp_states.h
	var state [1]byte                            // the first of tcp_info
	size := uint32(len(state))
	_, _, errno := syscall.RawSyscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_INFO,
		uintptr(unsafe.Pointer(&state)), uintptr(unsafe.Pointer(&size)), 0)
	return errno == 0 && (state[0] == closeWait || state[0] == lastAck || state[0] == closing)
}

// queued are the bytes that were written and that the other side has not acknowledged.
func queued(fd uintptr) int {
	var n int32
	if _, _, errno := syscall.RawSyscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&n))); errno != 0 {
		return 0
	}
	return int(n)
}
