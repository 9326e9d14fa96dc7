package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/screen"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// terminal is a program on a pseudo-terminal, as a person has it in front of them. Ctrl-C is a key there: it
// is the kernel that makes a signal of it.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	over   chan error
	mu     sync.Mutex
	got    bytes.Buffer
}

func onTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		var unlocked int32
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCSPTLCK, uintptr(unsafe.Pointer(&unlocked)))
		if errno != 0 {
			err = errno
		}
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 140})
	}
	if err != nil {
		t.Fatalf("make a pseudo-terminal: %v", err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	keepOutput(t, int(slave.Fd()))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	tt := &terminal{t: t, cmd: cmd, master: master, over: make(chan error, 1)}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 32<<10)
		for {
			n, err := master.Read(b)
			tt.mu.Lock()
			tt.got.Write(b[:n])
			tt.mu.Unlock()
			if err != nil {
				return // EIO: nobody has the other end any more
			}
		}
	}()
	go func() {
		err := cmd.Wait()
		<-read
		tt.over <- err
	}()
	return tt
}

// keepOutput keeps the kernel from throwing away what is on its way to the terminal when Ctrl-C is pressed, as it does
// (2 of 2,000 times, of what was written right before). A screen that lacks a piece shows what no program is to blame for.
func keepOutput(t *testing.T, fd int) {
	t.Helper()
	settings, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err == nil {
		settings.Lflag |= unix.NOFLSH
		err = unix.IoctlSetTermios(fd, unix.TCSETS, settings)
	}
	if err != nil {
		t.Fatalf("set a pseudo-terminal up: %v", err)
	}
}

func (tt *terminal) raw() string {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	return tt.got.String()
}

var colour = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// until waits until the program has written something, kept or not.
func (tt *terminal) until(pattern string) {
	tt.t.Helper()
	re := regexp.MustCompile(pattern)
	for range 3600 {
		if re.MatchString(colour.ReplaceAllString(tt.raw(), "")) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	tt.t.Fatalf("%s never came:\n%s", pattern, tt.shown())
}

// press types.
func (tt *terminal) press(keys string) {
	tt.t.Helper()
	if _, err := tt.master.WriteString(keys); err != nil {
		tt.t.Fatal(err)
	}
}

// shown is what stands on the screen.
func (tt *terminal) shown() string {
	var s screen.Screen
	s.Write(strings.ReplaceAll(tt.raw(), "\r\n", "\n"))
	return s.Text()
}

// end waits for the end, which has to be with this code, and gives the last screen: nothing live may be on it.
func (tt *terminal) end(code int) string {
	tt.t.Helper()
	select {
	case err := <-tt.over:
		if got := codeOf(err); got != code {
			tt.t.Errorf("exit code %d, want %d:\n%s", got, code, tt.shown())
		}
	case <-time.After(2 * time.Minute):
		tt.t.Fatalf("it does not end:\n%s", tt.shown())
	}
	text := tt.shown()
	if strings.ContainsAny(text, "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏") {
		tt.t.Errorf("something live is left:\n%s", text)
	}
	return text
}

const ctrlC = "\x03"

// TestTerminal goes through the first hour at a terminal: questions, what is under way, and Ctrl-C at each of them.
func TestTerminal(t *testing.T) {
	t.Parallel()
	n := newNeighbour(t, dockertest.Socket(t), build(t), "terminal", "10.233.208.0/20", terminalBlocks)
	n.vendor()
	on := func(line string) *terminal {
		cmd := n.command(t.Context(), line)
		cmd.Env = append(cmd.Env, "TERM=xterm-256color", "NO_COLOR=")
		return onTerminal(t, cmd)
	}
	holds := func(text string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("no %s on the screen:\n%s", want, text)
			}
		}
	}
	if n.run("init -var=long=1m") != nil {
		return
	}

	// At a question for a value, Ctrl-C is the end of a command that only reads, and of one that changes.
	for _, line := range []string{"plan", "apply"} {
		tt := on(line)
		tt.until("Its value: ")
		tt.press(ctrlC)
		holds(tt.end(exitError), "Interrupted")
	}
	// At the question whether to go on, it is a no.
	tt := on("apply -var=long=1m")
	tt.until("Your answer: ")
	tt.press(ctrlC)
	holds(tt.end(exitError), "Apply cancelled")
	// Asked for and given; what was under way is shown while it was.
	tt = on("apply")
	tt.until("Its value: ")
	tt.press("5m\n")
	tt.until("Your answer: ")
	tt.press("yes\n")
	text := tt.end(exitOK)
	holds(tt.raw(), `Creating\.\.\. [0-9]+s`)
	holds(text, `invocation.long.agent: Creation complete after`, `Apply complete! Resources: [0-9]+ added`)
	if strings.Contains(text, "Creating...") {
		t.Errorf("a beginning stays on the screen beside its end:\n%s", text)
	}

	// An agent's lines and what is under way do not get in each other's way.
	tt = on("run -var=long=5m invocation.talk")
	text = tt.end(exitOK)
	holds(text, `(?m)^first line$`, `(?m)^last line$`, `Record: `)
	holds(tt.raw(), `proving the sandbox\.\.\. [0-9]+s`)

	// Several at once: what each of them prints stays, and what they are at is below. One is silent until Ctrl-C.
	tt = on("run -var=long=5m invocation.talk invocation.long")
	tt.until(`invocation.talk: exit code|invocation.talk: Armed again`)
	tt.until(`invocation.long running\.\.\. [0-9]+s`)
	tt.press(ctrlC)
	text = tt.end(130)
	holds(text, `(?m)^invocation.talk \| first line$`, `(?m)^invocation.talk: exit code 0$`, `(?m)^invocation.long: exit code 130$`,
		`Interrupted: asking the agent to stop`, `invocation.long: Ended after`, `invocation.long \| sandplan: .*exit code 130`)
	if out, err := n.command(t.Context(), "drift -var=long=5m").CombinedOutput(); err != nil {
		t.Errorf("after all of it: %v\n%s", err, out)
	}
}

// TestTypedSecret: the value of a sensitive variable is on no screen, and afterwards what is typed shows again.
func TestTypedSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	src := "sandplan {\n  project = \"p\"\n}\nvariable \"a_secret\" {\n  type      = list(string)\n  sensitive = true\n}\nvariable \"open\" {}\n"
	if err := os.WriteFile(dir+"/sandplan.hcl", []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(build(t)+"/sandplan", "plan")
	cmd.Dir, cmd.Env = dir, []string{"TERM=xterm", "NO_COLOR=1", "DOCKER_HOST=unix:///nonexistent.sock"}
	tt := onTerminal(t, cmd)
	tt.until("does not show while you type")
	tt.until("Its value: ")
	tt.press("hunter2\n")
	tt.until(`var\.open`)
	tt.press("for all to see\n")
	text := tt.end(exitError)
	if strings.Contains(tt.raw(), "hunter2") || !strings.Contains(text, "for all to see") {
		t.Errorf("the secret shows, or what follows does not:\n%s", text)
	}
	if !strings.Contains(text, "on <answer for var.a_secret>:") || !strings.Contains(text, "its value is read as HCL") {
		t.Errorf("what is wrong with it is not said:\n%s", text)
	}
}

const terminalBlocks = `
variable "long" {
  type = string
}

vendor "long" {
  kind    = "custom"
  image   = IMAGE
  command = ["/agent", "sleep=${var.long}"]

  host "vendor.example" {
    port      = 8443
    addresses = [GATEWAY]
  }
}

vendor "talk" {
  kind    = "custom"
  image   = IMAGE
  command = ["/agent", "say=first line", "sleep=1s", "say=last line"]

  host "vendor.example" {
    port      = 8443
    addresses = [GATEWAY]
  }
}

invocation "long" {
  vendor   = vendor.long
  phase    = phase.planning
  worktree = "work"
}

invocation "talk" {
  vendor   = vendor.talk
  phase    = phase.planning
  worktree = "work"
}
`

// TestInterruptedReads: whatever only looks ends at the first Ctrl-C, even where the engine answers nothing.
func TestInterruptedReads(t *testing.T) {
	t.Parallel()
	const objects = "^GET /(containers|networks|volumes|images)"
	n := newNeighbour(t, dockertest.Socket(t), build(t), "reads", "10.233.192.0/20", terminalBlocks)
	for silent, lines := range map[string][]string{
		objects: {
			"plan -var=long=1m", "drift -var=long=1m", "drift -recorded", "show", "show -permissions -var=long=1m", "output -var=long=1m",
			"state list", "state list -all", "state show invocation.long.agent", "init -var=long=1m", "force-unlock -force 0123456789ab",
		},
		"^GET /info": {"version", "plan -var=long=1m"},
	} {
		for _, line := range lines {
			t.Run(line, func(t *testing.T) {
				p := dockertest.NewProxy(t, n.socket, dockertest.Fault{Call: silent, Delay: time.Hour})
				reader := *n
				reader.socket = p.Socket
				tt := onTerminal(t, reader.command(t.Context(), line))
				for range 3600 {
					if p.Count(silent) > 0 {
						break
					}
					time.Sleep(50 * time.Millisecond)
				}
				tt.press(ctrlC)
				code := exitError
				if line == "version" {
					code = exitOK // it needs no engine, and says that there is none
				}
				tt.end(code)
			})
		}
	}
}
