package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// TestScripts runs the built binary on the real engine, as users do: it is what agents' images and proxies
// are made of, and a test binary that poses as it would be another program.
func TestScripts(t *testing.T) {
	socket := dockertest.Socket(t)
	bin, known := build(t), readSchemas(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("AGENT", filepath.Join(bin, "agent"))
			env.Setenv("DOCKER_HOST", "unix://"+socket)
			env.Values[startedKey{}] = &started{bin: bin, schemas: known, running: map[string]*job{}}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"image":   func(ts *testscript.TestScript, _ bool, args []string) { loadImage(ts, socket, args) },
			"own":     ownProgram,
			"project": project,
			"start":   start,
			"until":   until,
			"say":     say,
			"signal":  signalJob,
			"finish":  finish,
			"nothing": nothing,
			"same":    same,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// build makes the programs of the scripts, once.
func build(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	cmd := exec.Command("go", "build", "-trimpath", "-o", bin+"/", ".", "../../testfixtures/agent", "../../testfixtures/vendor")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

type startedKey struct{}

// started are the programs that a script runs beside itself.
type started struct {
	bin     string
	own     string // the directory of the script's own sandplan, if it has one
	schemas schemas
	mu      sync.Mutex
	running map[string]*job
}

type job struct {
	cmd  *exec.Cmd
	in   interface{ Write([]byte) (int, error) }
	end  func() error // closes stdin
	out  lockedBuffer
	err  lockedBuffer
	over chan error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func jobs(ts *testscript.TestScript) *started { return ts.Value(startedKey{}).(*started) }

// program is the path of one of the programs that were built.
func (s *started) program(name string) string {
	if name == "sandplan" && s.own != "" {
		return filepath.Join(s.own, name)
	}
	return filepath.Join(s.bin, name)
}

// own gives the script a program that no other test has, and so an image: whether a destroy takes that along, too,
// depends on nobody else then.
func ownProgram(ts *testscript.TestScript, _ bool, _ []string) {
	s, dir := jobs(ts), ts.MkAbs(".own")
	program, err := os.ReadFile(s.program("sandplan"))
	ts.Check(err)
	ts.Check(os.Mkdir(dir, 0o755))
	ts.Check(os.WriteFile(filepath.Join(dir, "sandplan"), append(program, dir...), 0o755)) // what follows an ELF file is no part of it
	s.own = dir
	ts.Setenv("PATH", dir+string(os.PathListSeparator)+ts.Getenv("PATH"))
}

func theJob(ts *testscript.TestScript, name string) *job {
	s := jobs(ts)
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.running[name]
	if j == nil {
		ts.Fatalf("nothing was started as %s", name)
	}
	return j
}

func codeOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// tooBusy reports whether a run was refused because it could not be started within its bound. That tells how much
// else the machine has to do, and nothing of what a test is about.
func tooBusy(said string) bool {
	return strings.Contains(strings.Join(strings.Fields(said), " "), "was not running within")
}

// exits CODE COMMAND… runs a command that has to end with exactly this code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := codeOf(ts.Exec(args[1], args[2:]...))
	for tries := 0; got == exitRefused && got != want && tooBusy(ts.ReadFile("stdout")+ts.ReadFile("stderr")) && tries < 5; tries++ {
		ts.Logf("the machine is too busy for a start within its bound: once more")
		got = codeOf(ts.Exec(args[1], args[2:]...))
	}
	if got != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
	conform(ts, args[1:], ts.ReadFile("stdout"))
}

// image TAG loads an image that holds the test agent, and removes its tag when the script ends.
func loadImage(ts *testscript.TestScript, socket string, args []string) {
	loadAgent(scriptT{ts}, socket, ts.Getenv("AGENT"), args[0])
}

// scriptT is a script as loadAgent sees a test.
type scriptT struct{ *testscript.TestScript }

func (s scriptT) Cleanup(f func())  { s.Defer(f) }
func (s scriptT) Fatal(args ...any) { s.Fatalf("%s", fmt.Sprint(args...)) }

// project NAME removes what a scope of this name may have left on the engine, now and when the script ends.
func project(ts *testscript.TestScript, _ bool, args []string) {
	clean := func() {
		cmd := exec.Command(jobs(ts).program("sandplan"), "-chdir=/", "destroy", "-project="+args[0], "-auto-approve", "-lock-timeout=20s")
		cmd.Env = append(os.Environ(), "DOCKER_HOST="+ts.Getenv("DOCKER_HOST"))
		if out, err := cmd.CombinedOutput(); err != nil {
			ts.Logf("clean up of %s: %v\n%s", args[0], err, out)
		}
	}
	clean()
	ts.Defer(clean)
}

// start NAME COMMAND… starts a command whose stdin stays open.
func start(ts *testscript.TestScript, _ bool, args []string) {
	j := &job{over: make(chan error, 1)}
	path := args[1]
	if !strings.Contains(path, "/") {
		path = jobs(ts).program(path)
	}
	j.cmd = exec.Command(path, args[2:]...)
	j.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "DOCKER_HOST", "TMPDIR"} {
		j.cmd.Env = append(j.cmd.Env, name+"="+ts.Getenv(name))
	}
	in, err := j.cmd.StdinPipe()
	ts.Check(err)
	j.in, j.end = in, in.Close
	j.cmd.Stdout, j.cmd.Stderr = &j.out, &j.err
	ts.Check(j.cmd.Start())
	go func() { j.over <- j.cmd.Wait() }()
	s := jobs(ts)
	s.mu.Lock()
	s.running[args[0]] = j
	s.mu.Unlock()
	ts.Defer(func() { _ = j.cmd.Process.Kill() })
}

// until NAME PATTERN waits until a started command has printed something.
func until(ts *testscript.TestScript, _ bool, args []string) {
	j, re := theJob(ts, args[0]), regexp.MustCompile(args[1])
	for range 2400 {
		if re.MatchString(j.out.String()) || re.MatchString(j.err.String()) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("%s never printed %s\nstdout: %s\nstderr: %s", args[0], args[1], j.out.String(), j.err.String())
}

// say NAME TEXT types a line.
func say(ts *testscript.TestScript, _ bool, args []string) {
	_, err := fmt.Fprintln(theJob(ts, args[0]).in, args[1])
	ts.Check(err)
}

// signal NAME presses Ctrl-C.
func signalJob(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(theJob(ts, args[0]).cmd.Process.Signal(syscall.SIGINT))
}

// finish NAME CODE waits for a started command to end, with exactly this code.
func finish(ts *testscript.TestScript, _ bool, args []string) {
	j := theJob(ts, args[0])
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	select {
	case err := <-j.over:
		fmt.Fprint(ts.Stdout(), j.out.String())
		fmt.Fprint(ts.Stderr(), j.err.String())
		if got := codeOf(err); got != want {
			ts.Fatalf("%s: exit code %d, want %d\nstdout: %s\nstderr: %s", args[0], got, want, j.out.String(), j.err.String())
		}
		conform(ts, j.cmd.Args, j.out.String())
	case <-time.After(3 * time.Minute):
		ts.Fatalf("%s does not end\nstdout: %s\nstderr: %s", args[0], j.out.String(), j.err.String())
	}
}

// nothing PROJECT: the engine has no container, network or volume with labels of the project.
func nothing(ts *testscript.TestScript, _ bool, args []string) {
	filter := "label=dev.sandplan.project=" + args[0]
	for _, list := range [][]string{{"ps", "-aq"}, {"network", "ls", "-q"}, {"volume", "ls", "-q"}} {
		out, err := exec.Command("docker", append(list, "--filter", filter)...).Output()
		ts.Check(err)
		if len(out) > 0 {
			ts.Fatalf("docker %s still lists: %s", strings.Join(list, " "), out)
		}
	}
}

// same COMMAND… runs a command twice and fails when the two outputs differ in one byte.
func same(ts *testscript.TestScript, _ bool, args []string) {
	var before string
	for i := range 2 {
		cmd := exec.Command(jobs(ts).program(args[0]), args[1:]...)
		cmd.Dir = ts.MkAbs(".")
		cmd.Env = []string{"DOCKER_HOST=" + ts.Getenv("DOCKER_HOST"), "HOME=" + ts.Getenv("HOME")}
		out, err := cmd.CombinedOutput()
		if err != nil {
			ts.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
		if i == 1 && string(out) != before {
			ts.Fatalf("the same command printed\n%s\nand then\n%s", before, out)
		}
		before = string(out)
	}
}
