package egress

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// Variables that make the test binary a proxy, with so many descriptors, or a server that echoes.
const (
	asProxy   = "SANDPLAN_TEST_PROXY"
	withFiles = "SANDPLAN_TEST_FILES"
	asEcho    = "SANDPLAN_TEST_ECHO"
)

func TestMain(m *testing.M) {
	if arg := os.Getenv(asProxy); arg != "" {
		if n, err := strconv.ParseUint(os.Getenv(withFiles), 10, 32); err == nil {
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
				os.Exit(99)
			}
		}
		os.Exit(Main([]string{arg}, os.Stdin, os.Stdout, os.Stderr))
	}
	if os.Getenv(asEcho) != "" {
		echo(os.Stdout)
	}
	flag.Bool("update", false, "write docs/attacks.md")
	flag.Parse()
	os.Exit(m.Run())
}

// process is a proxy in a process of its own.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	lease  *wire.Writer
	addr   string        // where it listens
	took   time.Duration // from the start to the ready line
	stderr bytes.Buffer
	beats  chan struct{}
}

func startProcess(t *testing.T, cfg *Config, files int) *process {
	t.Helper()
	arg, err := cfg.Arg()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(os.Args[0]), beats: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), asProxy+"="+arg, withFiles+"="+strconv.Itoa(files))
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.lease = wire.NewWriter(stdin)
	if err := p.lease.Challenge(wire.Challenge{Nonce: "n", Token: "t"}); err != nil {
		t.Fatal(err)
	}
	log := bufio.NewReader(stdout)
	line, err := log.ReadBytes('\n')
	if err != nil {
		t.Fatalf("no ready line: %v, %s", err, p.stderr.String())
	}
	p.took = time.Since(start)
	ready, err := wire.ParseReady(line, "n")
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	p.addr = ready.Listen
	go func() { _, _ = io.Copy(io.Discard, log) }()
	go func() {
		for {
			select {
			case <-time.After(time.Second):
				_ = p.lease.Beat()
			case <-p.beats:
				return
			}
		}
	}()
	return p
}

// stop ends it, and says how much processor time it used in all.
func (p *process) stop() time.Duration {
	p.t.Helper()
	close(p.beats)
	if err := p.lease.Stop(); err != nil {
		p.t.Error(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("%v: %s", err, p.stderr.String())
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// TestNoDescriptors: a real process at the end of its descriptors waits, and serves again afterwards.
func TestNoDescriptors(t *testing.T) {
	cfg := testConfig()
	cfg.Limits.SilenceMS = 20_000
	p := startProcess(t, cfg, 32)
	var conns []net.Conn
	for range 60 {
		c, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		_, _ = io.WriteString(c, "CONNECT ")
	}
	time.Sleep(3 * time.Second)
	for _, c := range conns {
		c.Close()
	}
	asked := &proxy{t: t, addr: p.addr}
	if resp, _ := asked.ask(connectTo("evil.example:443")); resp.StatusCode != 403 {
		t.Errorf("afterwards: %s", resp.Status)
	}
	// It took part of a second to start, and nothing since: whoever tries all the time needs all of three.
	if used := p.stop(); used > 2*time.Second {
		t.Errorf("%s of processor time in three seconds without descriptors", used)
	}
}

// TestStartToReady: what a run waits for. The bound only tells that nothing waits; make bench-proxy holds the
// built binary to 50 ms.
func TestStartToReady(t *testing.T) {
	var took []time.Duration
	for range 5 {
		p := startProcess(t, testConfig(), 256)
		took = append(took, p.took)
		p.stop()
	}
	slices.Sort(took)
	t.Logf("start to ready: %v", took)
	if took[0] > 10*time.Second {
		t.Errorf("%s from start to ready at best", took[0])
	}
}

// echo serves until it is killed, and says where.
func echo(out io.Writer) {
	l, err := listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(out, l.Addr().String()+"\n")
	for {
		c, err := l.Accept()
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		go func() {
			defer c.Close()
			_, _ = io.Copy(struct{ io.Writer }{c}, c) // without a splice, which takes two descriptors more
		}()
	}
}

// startEcho is one in a process of its own, so that its descriptors are not this one's.
func startEcho(t *testing.T) (addr string, stop func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asEcho+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
