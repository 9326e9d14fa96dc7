package egress

import (
	"net"
	"os"
	"syscall"
)

// splicer moves bytes from one connection to another inside the kernel, by a pipe.
type splicer struct {
	src, dst *socket
	r, w     int // the pipe

	fill, pour func(fd uintptr) (done bool) // made functions once, as in attempt
	want       int                          // of fill
	held       int                          // bytes in the pipe
	err        error
}

// Flags of splice(2).
const (
	spliceMove     = 1
	spliceNonblock = 2
)

// newSplicer fails where no descriptor is left for a pipe.
func newSplicer(dst, src *socket) (*splicer, error) {
	var p [2]int
	if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	// It stays smaller where the kernel says no: slower, not wrong.
	_, _, _ = syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(p[1]), syscall.F_SETPIPE_SZ, pipeSize)
	s := &splicer{src: src, dst: dst, r: p[0], w: p[1]}
	s.fill, s.pour = s.doFill, s.doPour
	return s, nil
}

// close gives the pipe back. What is still in it is lost: the tunnel has failed.
func (s *splicer) close() {
	_ = syscall.Close(s.r)
	_ = syscall.Close(s.w)
}

// move moves up to most bytes, as many as are there, and returns when all of them are written. Without an error
// 0 bytes are the end.
func (s *splicer) move(most int64) (int64, error) {
	s.want, s.err = int(min(most, pipeSize)), nil
	if err := s.src.raw.Read(s.fill); err != nil {
		return 0, closedOr(err)
	}
	if s.err != nil {
		return 0, s.src.failed("splice", s.err)
	}
	n := s.held
	if n == 0 {
		return 0, nil
	}
	err := s.dst.raw.Write(s.pour)
	s.dst.out.stall.over()
	switch {
	case err != nil:
		// Whatever ended this wait, bytes in the pipe are lost: never to be taken for a direction that slows down.
		err = net.ErrClosed
	case s.err != nil:
		err = s.dst.failed("splice", s.err)
	}
	return int64(n - s.held), err
}

func (s *splicer) doFill(fd uintptr) bool {
	n, err := splice(fd, uintptr(s.w), s.want)
	s.held, s.err = n, err
	return err != syscall.EAGAIN
}

func (s *splicer) doPour(fd uintptr) bool {
	for s.held > 0 {
		n, err := splice(uintptr(s.r), fd, s.held)
		if err == syscall.EAGAIN {
			s.dst.out.stall.waits()
			return false
		}
		if err != nil {
			s.err = err
			return true
		}
		s.held -= n
	}
	return true
}

// splice moves up to n bytes and never waits: connections and pipe are not blocking.
func splice(from, to uintptr, n int) (int, error) {
	for {
		moved, _, errno := syscall.RawSyscall6(syscall.SYS_SPLICE, from, 0, to, 0, uintptr(n), spliceMove|spliceNonblock)
		switch errno {
		case 0:
			return int(moved), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, syscall.EAGAIN
		default:
			return 0, errno
		}
	}
}
