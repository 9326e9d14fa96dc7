package shim_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/sandplan/sandplan/providers/docker"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

// The tests of this file's suite run containers on the real engine, going round every gate: they are
// about what the shim itself finds out.
const (
	testImage  = "sandplan-shimtest:1"
	testName   = "sandplan-shimtest-"
	testSubnet = "10.234.0.0/29"
	agentAddr  = "10.234.0.3"
	proxyAddr  = "10.234.0.2"
	vendorHost = "vendor.test:443"
	testUID    = 4242
)

// lab is the engine with the image, one internal network and one proxy on it.
type lab struct {
	cli *client.Client
	net string
}

var openLab = sync.OnceValues(func() (*lab, error) {
	cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // compiling takes long on a busy machine
	defer cancel()
	l := &lab{cli: cli}
	l.clean(ctx)
	if err := l.load(ctx); err != nil {
		return nil, err
	}
	return l, l.connect(ctx)
})

// labUsed says that there is something to remove.
var labUsed atomic.Bool

func TestMain(m *testing.M) {
	code := m.Run()
	if labUsed.Load() {
		if l, err := openLab(); err == nil {
			l.clean(context.Background())
		}
	}
	os.Exit(code)
}

// engineLab is the lab, or the end of the test where there is no engine.
func engineLab(t *testing.T) *lab {
	t.Helper()
	dockertest.Socket(t)
	labUsed.Store(true)
	l, err := openLab()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// clean removes what an earlier run may have left.
func (l *lab) clean(ctx context.Context) {
	list, _ := l.cli.ContainerList(ctx, container.ListOptions{All: true})
	for _, c := range list {
		if len(c.Names) > 0 && strings.HasPrefix(c.Names[0], "/"+testName) {
			_ = l.cli.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true})
		}
	}
	nets, _ := l.cli.NetworkList(ctx, network.ListOptions{})
	for _, n := range nets {
		if strings.HasPrefix(n.Name, testName) {
			_ = l.cli.NetworkRemove(ctx, n.ID)
		}
	}
}

// remove removes a container. An engine that is busy gives up waiting for the
// end of what it has killed, and the next test would find the name taken.
func (l *lab) remove(t *testing.T, id string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := l.cli.ContainerRemove(context.Background(), id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || errdefs.IsNotFound(err) {
			return
		}
		if time.Since(began) > soon {
			t.Error(err)
			return
		}
	}
}

// load builds the binaries and makes the image of them.
func (l *lab) load(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "shimtest")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	spec := scratch.Spec{Entries: []scratch.Entry{
		{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{Path: "/noexec", Mode: 0o644, Content: []byte("not a program")},
		{Path: "/script", Mode: 0o755, Content: []byte("#!/absent/interpreter\n")},
	}}
	for path, pkg := range map[string]string{"/.sandplan/sandplan": "./testdata/sandplan", "/agent": "../../../testfixtures/agent", "/bin/attack": "./testdata/attack", "/bin/hostile": "./testdata/hostile"} {
		out := filepath.Join(dir, filepath.Base(path))
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if b, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, b)
		}
		spec.Entries = append(spec.Entries, scratch.Entry{Path: path, Mode: 0o755, Source: out})
	}
	info, err := l.cli.Info(ctx)
	if err != nil {
		return err
	}
	spec.Arch = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[info.Architecture]
	img, err := scratch.Image(spec)
	if err != nil {
		return err
	}
	var tar bytes.Buffer
	if err := scratch.Save(&tar, testImage, img); err != nil {
		return err
	}
	resp, err := l.cli.ImageLoad(ctx, &tar)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// connect makes the network as sandplan makes it, and starts the proxy.
func (l *lab) connect(ctx context.Context) error {
	id, err := l.network(ctx, "net", testSubnet, true)
	if err != nil {
		return err
	}
	l.net = id
	return l.startProxy(ctx, "proxy", id, proxyAddr, vendorHost)
}

// network makes a network; the host has no address on an isolated one.
func (l *lab) network(ctx context.Context, name, subnet string, isolated bool) (string, error) {
	o := network.CreateOptions{Driver: "bridge", Internal: isolated,
		IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet}}}}
	if isolated {
		o.Options = map[string]string{
			"com.docker.network.bridge.inhibit_ipv4": "true", "com.docker.network.bridge.name": bridge(name),
		}
	}
	resp, err := l.cli.NetworkCreate(ctx, testName+name, o)
	if err != nil || !isolated {
		return resp.ID, err
	}
	return resp.ID, setBridge(name, "1")
}

func bridge(name string) string { return "sp-shim" + name }

// setBridge sets whether the host answers for addresses that are not on the bridge.
func setBridge(name, value string) error {
	for _, key := range []string{"arp_ignore", "rp_filter"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+bridge(name)+"/"+key, []byte(value), 0); err != nil {
			return err
		}
	}
	return nil
}

// startProxy runs the test's proxy for some hosts.
func (l *lab) startProxy(ctx context.Context, name, netID, addr string, hosts ...string) error {
	resp, err := l.cli.ContainerCreate(ctx,
		&container.Config{Image: testImage, Entrypoint: []string{"/.sandplan/sandplan"}, Cmd: append([]string{"proxy", addr + ":3128"}, hosts...)},
		&container.HostConfig{NetworkMode: container.NetworkMode(netID), CapDrop: []string{"ALL"}, ReadonlyRootfs: true,
			SecurityOpt: []string{"no-new-privileges", "seccomp=" + docker.ProxySeccomp()}},
		endpoint(netID, addr), nil, testName+name)
	if err != nil {
		return err
	}
	if err := l.cli.ContainerStart(ctx, resp.ID, container.StartOptions{}); err != nil {
		return err
	}
	info, err := l.cli.ContainerInspect(ctx, resp.ID)
	if err != nil {
		return err
	}
	const listens = ":0C38 00000000:0000 0A" // port 3128, no peer, state LISTEN: proc_net_tcp(5)
	for began := time.Now(); time.Since(began) < soon; time.Sleep(10 * time.Millisecond) {
		if table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", info.State.Pid)); err != nil {
			return err
		} else if bytes.Contains(table, []byte(listens)) {
			return nil
		}
	}
	return fmt.Errorf("the proxy %s does not listen", name)
}

func endpoint(netID, addr string) *network.NetworkingConfig {
	return &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
		netID: {IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: addr}},
	}}
}

// outcome is all that came out of a container.
type outcome struct {
	report   *wire.Report
	exit     *wire.Exit
	out, err string
	code     int64
	took     time.Duration // from start to report
	ended    time.Duration // from the bundle to the end
}

// run starts the box and plays sandplan's part, honest but careless: it sends the bundle whatever the
// report says.
func (b *box) run(t *testing.T, l *lab) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	id := b.create(ctx, t, l)
	att, err := l.cli.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		t.Fatal(err)
	}
	defer att.Close()
	waited, waitErr := l.cli.ContainerWait(ctx, id, container.WaitConditionNextExit)
	began := time.Now()
	if err := l.cli.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	b.do(t, l, id, b.started)
	s := newStreams(att.Reader, b.challenge.Token)
	beats, silence := context.WithCancel(ctx)
	defer silence()
	w := wire.NewWriter(att.Conn)
	b.open(beats, w)
	var o outcome
	if line := <-s.first; line != nil {
		rep, err := wire.ParseReport(line, b.challenge.Nonce)
		if err != nil {
			t.Fatalf("%v (stderr: %s)", err, s.err.String())
		}
		o.report, o.took = &rep, time.Since(began)
	}
	sent := time.Now()
	if !b.alone {
		_ = w.Bundle(b.bundle) // the writer refuses a second one
	}
	if b.after != nil {
		go b.after(peer{w, silence, att.CloseWrite, att.Conn})
	}
	if b.during != nil {
		<-s.says // then the command runs
		b.do(t, l, id, b.during)
	}
	select {
	case r := <-waited:
		o.code = r.StatusCode
	case err := <-waitErr:
		t.Fatalf("wait: %v", err)
	}
	o.ended = time.Since(sent)
	<-s.done
	if e, ok, _ := s.filter.Close(); ok {
		o.exit = &e
	}
	o.out, o.err = s.out.String(), s.err.String()
	return o
}

// create makes the container, for as long as the test runs.
func (b *box) create(ctx context.Context, t *testing.T, l *lab) string {
	t.Helper()
	arg, err := b.shim.Arg()
	if err != nil {
		t.Fatal(err)
	}
	b.config.Cmd = []string{"shim", arg}
	if b.seccomp != "" {
		b.host.SecurityOpt = append(b.host.SecurityOpt, "seccomp="+b.seccomp)
	}
	created, err := l.cli.ContainerCreate(ctx, &b.config, &b.host, b.net, nil, testName+"agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.remove(t, created.ID) })
	b.do(t, l, created.ID, b.before)
	return created.ID
}

func (b *box) do(t *testing.T, l *lab, id string, f func(*lab, string) error) {
	t.Helper()
	if f == nil {
		return
	}
	if err := f(l, id); err != nil {
		t.Fatal(err)
	}
}

// open sends what comes before the report.
func (b *box) open(ctx context.Context, w *wire.Writer) {
	if b.alone {
		return
	}
	_ = w.Challenge(b.challenge)
	go func() { _ = w.Beats(ctx, wire.BeatEvery) }()
	if b.early {
		_ = w.Bundle(b.bundle)
	}
}

// streams takes a container's output apart: the report line, the rest of stdout, stderr, the record.
type streams struct {
	first    chan []byte
	says     chan struct{} // closed when something comes after the report, or nothing can any more
	out, err bytes.Buffer
	filter   *wire.ExitFilter
	done     chan struct{}
}

func newStreams(from io.Reader, token string) *streams {
	s := &streams{first: make(chan []byte, 1), says: make(chan struct{}), done: make(chan struct{})}
	s.filter = wire.NewExitFilter(&s.err, token)
	r, w := io.Pipe()
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewReaderSize(r, wire.MaxLine)
		line, err := lines.ReadBytes('\n')
		if err == nil {
			s.first <- line
		}
		close(s.first)
		_, _ = lines.Peek(1)
		close(s.says)
		_, _ = io.Copy(&s.out, lines)
	}()
	go func() {
		_, _ = stdcopy.StdCopy(w, s.filter, from)
		w.Close()
		<-read
		close(s.done)
	}()
	return s
}
