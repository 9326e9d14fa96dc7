package main

import "golang.org/x/sys/unix"

// hideTyping keeps a terminal from showing what is typed, but for the end of the line, until show is called.
func hideTyping(fd int) (show func()) {
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil { // no terminal
		return func() {}
	}
	hidden := *before
	hidden.Lflag = hidden.Lflag&^unix.ECHO | unix.ECHONL
	_ = unix.IoctlSetTermios(fd, unix.TCSETS, &hidden)
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, before) }
}
