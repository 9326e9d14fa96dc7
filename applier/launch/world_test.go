package launch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

// built are the programs that the tests on the real engine use, built once: the product itself, as a
// user has it, and the agent whose arguments are what it does.
var built = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "sandplan-launch-test-"); err != nil {
		return "", err
	}
	builtIn = dir
	for _, p := range []string{"cmd/sandplan", "testfixtures/agent"} {
		build := exec.Command("go", "build", "-o", dir+"/", "github.com/sandplan/sandplan/"+p)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return dir, fmt.Errorf("build %s: %w\n%s", p, err, out)
		}
	}
	return dir, nil
})

// builtIn is set once something was built.
var builtIn string

func TestMain(m *testing.M) {
	code := m.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

// world is one project on the real engine, with a worktree and a local vendor.
type world struct {
	t       *testing.T
	dir     string // of the configuration
	tree    string // the worktree of every invocation
	project string
	bin     string
	env     []string
	own     *ownEngine // nil: the machine's
}

const agentImage = "sandplan-launch-test/agent:1"

// newWorld makes a project with one invocation for each entry of steps: its name, and what its agent
// does. number chooses the addresses, which no two tests share. more is further HCL.
func newWorld(t *testing.T, number int, steps map[string][]string, attributes map[string]string) *world {
	t.Helper()
	return newWorldOn(t, nil, number, steps, attributes)
}

// newWorldOn is newWorld on an engine of the test's own.
func newWorldOn(t *testing.T, own *ownEngine, number int, steps map[string][]string, attributes map[string]string) *world {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{own: own, t: t, dir: t.TempDir(), tree: t.TempDir(), project: fmt.Sprintf("launch-%d", number), bin: bin + "/sandplan"}
	if own == nil {
		loadAgent(t, dockertest.Socket(t), bin)
	} else {
		loadAgent(t, own.socket(), bin)
		w.env = []string{"DOCKER_HOST=unix://" + own.socket()}
	}
	if err := os.Chmod(w.tree, 0o755); err != nil {
		t.Fatal(err)
	}
	pool := fmt.Sprintf("10.%d.%d", 232+10*(number/16), 16*(number%16)) // 10.232, and then 10.242
	if own == nil {
		listen(t, pool+".1:8443")
	} else {
		own.listen(pool + ".1:8443")
	}
	w.write("sandplan.hcl", w.configuration(pool, steps, attributes))
	return w
}

func loadAgent(t *testing.T, socket, bin string) {
	t.Helper()
	img, err := scratch.Image(scratch.Spec{Arch: runtime.GOARCH, Entries: []scratch.Entry{
		{Path: "/agent", Mode: 0o755, Source: bin + "/agent"},
		{Path: "/tag", Mode: 0o644, Content: []byte(agentImage)}, // no other package's image has the same content
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scratch.Load(t.Context(), socket, agentImage, img); err != nil {
		t.Fatal(err)
	}
}

func (w *world) configuration(pool string, steps map[string][]string, attributes map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "sandplan {\n  project = %q\n}\nprovider \"docker\" {\n  subnet_pool = \"%s.0/20\"\n}\n", w.project, pool)
	fmt.Fprintf(&b, "phase \"review\" {\n  runner \"test\" {\n    argv  = [\"/agent\", \"say=tested\", \"exit=3\"]\n    image = %q\n  }\n}\n", agentImage)
	for name, does := range steps {
		argv, _ := json.Marshal(append([]string{"/agent"}, does...))
		fmt.Fprintf(&b, `
vendor %[1]q {
  kind    = "custom"
  image   = %[2]q
  command = %[3]s
  host "llm.test" {
    port      = 8443
    addresses = [%[4]q]
  }
}
invocation %[1]q {
  vendor   = vendor.%[1]s
  worktree = %[5]q
  prompt   = "do it"
%[6]s
}
`, name, agentImage, argv, pool+".1", w.tree, attributesOf(name, attributes))
	}
	return b.String()
}

func attributesOf(name string, attributes map[string]string) string {
	a := attributes[name]
	if !strings.Contains(a, "phase") {
		a += "\n  phase = phase.review"
	}
	return a
}

// listen stands in for the vendor: the proof from the inside needs somebody who answers. The address
// need not exist yet.
func listen(t *testing.T, address string) {
	t.Helper()
	listenWith(t, address, func(c net.Conn) { _ = c.Close() })
}

// listenWith is listen with somebody who does more than to answer.
func listenWith(t *testing.T, address string, answer func(net.Conn)) {
	t.Helper()
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		control := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_IP, syscall.IP_FREEBIND, 1) })
		if err == nil {
			err = control
		}
		return err
	}}
	ln, err := lc.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go answer(c)
		}
	}()
}

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// ended is how a command of sandplan ended.
type ended struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

// last is the last line of standard error.
func (e ended) last() string {
	lines := strings.Split(strings.TrimRight(e.stderr, "\n"), "\n")
	return lines[len(lines)-1]
}

func (w *world) command(ctx context.Context, args ...string) *exec.Cmd {
	argv := append([]string{w.bin, "-chdir=" + w.dir}, args...)
	if w.own != nil {
		argv = append(w.own.in(), argv...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "SANDPLAN_DATA_DIR="+filepath.Join(w.dir, "data"), "SANDPLAN_INPUT=0")
	cmd.Env = append(cmd.Env, w.env...)
	return cmd
}

func (w *world) sandplan(args ...string) ended {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := w.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err := cmd.Run()
	if cmd.ProcessState == nil {
		w.t.Fatalf("sandplan %v: %v", args, err)
	}
	return ended{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(began)}
}

// must runs a command that has to succeed.
func (w *world) must(args ...string) ended {
	w.t.Helper()
	e := w.sandplan(args...)
	if e.code != 0 {
		w.t.Fatalf("sandplan %v: exit code %d\n%s%s", args, e.code, e.stdout, e.stderr)
	}
	return e
}

// apply pins images, makes everything, and removes it at the end of the test.
func (w *world) apply() {
	w.t.Helper()
	w.t.Cleanup(func() {
		if e := w.sandplan("destroy", "-auto-approve"); e.code != 0 {
			w.t.Errorf("destroy: exit code %d\n%s%s", e.code, e.stdout, e.stderr)
		}
		if left := w.tell("ps", "-aq", "--filter", w.label("project", w.project)); left != "" {
			w.t.Errorf("destroy left containers %s", left)
		}
	})
	w.must("init")
	w.must("apply", "-auto-approve")
}

// docker runs a command of the docker command line, as somebody on the host would.
func (w *world) docker(args ...string) (string, error) {
	cmd := exec.Command("docker", args...)
	if w.own != nil {
		cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+w.own.socket())
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("docker %v: %w: %s", args, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// tell is docker for where it has to succeed.
func (w *world) tell(args ...string) string {
	w.t.Helper()
	out, err := w.docker(args...)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) label(name, value string) string { return "label=dev.sandplan." + name + "=" + value }

// container is the ID of the one at an address.
func (w *world) container(address string) string {
	w.t.Helper()
	id := w.find(address)
	if id == "" {
		w.t.Fatalf("no container at %s", address)
	}
	return id
}

func (w *world) find(address string) string {
	w.t.Helper()
	return w.tell("ps", "-aq", "--no-trunc", "--filter", w.label("project", w.project), "--filter", w.label("address", address))
}

// everRan reports whether a container was ever started.
func (w *world) everRan(id string) bool {
	w.t.Helper()
	return w.tell("inspect", "-f", "{{.State.Status}}", id) != "created"
}

// soon is long enough for whatever has to happen within seconds, on a machine that is busy with other
// things. How long it takes on one that is not is logged, and held by tests with a clock of their own.
const soon = time.Minute

// within waits for something that must come true.
func within(t *testing.T, d time.Duration, what string, is func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) > d {
			t.Fatalf("%s: not within %s", what, d)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(began)
}

// lockedBuffer is a buffer that one goroutine writes and another reads.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes())
}

// running starts a run in the background and waits until the agent says that it is up.
func (w *world) running(t *testing.T, address string, options ...string) (cmd *exec.Cmd, stdout, stderr *lockedBuffer) {
	t.Helper()
	cmd = w.command(context.Background(), append(append([]string{"run"}, options...), address)...)
	stdout, stderr = &lockedBuffer{}, &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	within(t, 2*soon, "the agent is up", func() bool {
		// In this order: it may be ended at once, and this test may have stood still meanwhile.
		early := bytes.Contains(stderr.bytes(), []byte("sandplan:"))
		up := bytes.Contains(stdout.bytes(), []byte("up\n"))
		if early && !up {
			t.Fatalf("it ended early:\n%s", stderr.bytes())
		}
		return up
	})
	return cmd, stdout, stderr
}
