// Command sandplan converges sandboxes for AI agents on a Docker engine to what HCL declares, and starts
// an agent only when nothing differs.
//
// One file per command: it declares flags, reads them into a struct, calls what does the work, and
// returns an exit code. Only this package prints and exits. Start with app.go.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/term"
)

// version is set when a release is built (-ldflags "-X main.version=…").
var version = "0.1.0-dev"

func main() {
	// What runs in containers comes before everything else.
	if len(os.Args) > 1 {
		if code, mine := inside(os.Args[1], os.Args[2:]); mine {
			os.Exit(code)
		}
	}
	// A command lives for a second or less: what it saves by not tidying up is more than the memory is worth.
	debug.SetGCPercent(400)
	a, err := fromProcess()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(exitError)
	}
	os.Exit(a.main(os.Args[1:]))
}

// fromProcess is the one place where the surroundings of the process are read.
func fromProcess() (*app, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the running binary: %w", err)
	}
	// What sandplan.image is made of is the file itself, not a link that may point elsewhere by then.
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return nil, fmt.Errorf("find the running binary: %w", err)
	}
	// A reader that goes away (sandplan apply | head) must not end an apply half-way.
	signal.Ignore(syscall.SIGPIPE)
	home, _ := os.UserHomeDir() // without one there is no docker context either
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the name of this host: %w", err)
	}
	return &app{
		version: version, self: self, home: home, host: host, who: userName() + "@" + host,
		environ: os.Environ(), getenv: os.Getenv, interactive: term.IsTerminal(int(os.Stdin.Fd())),
		stdin: os.Stdin, stdout: stream{os.Stdout, columns(os.Stdout)}, stderr: stream{os.Stderr, columns(os.Stderr)},
		chdir: os.Chdir, hide: func() func() { return hideTyping(int(os.Stdin.Fd())) }, getwd: os.Getwd, now: time.Now, listen: listen, interfaces: net.InterfaceAddrs,
	}, nil
}

// listen begins to take signals. Until then, and afterwards, they end the process: a command that waits for
// nothing but its own input needs no more.
func listen() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return signals, func() { signal.Stop(signals) }
}

// userName is for people who find a lock. A user without an entry is known by number.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return fmt.Sprintf("uid%d", os.Getuid())
}

// columns is the width of a terminal, and 0 for everything else.
func columns(f *os.File) int {
	if !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}
