package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// vendor is the name that tunnels of sandplan's proxy are for. All others are told the address, and are
// spared the lookup.
const vendor = "api.vendor.example"

// contender is one way to the server.
type contender struct {
	name   string
	dial   string // where a client connects to
	target string // what it asks for, "" for the direct way
	pid    int
}

// world is everything that runs besides the clients.
type world struct {
	dir        string
	contenders []contender // the direct way first, then sandplan's
	procs      []*exec.Cmd
	self       string
	hello      []byte
	patience   time.Duration // that is left with disturbed figures
}

// A server's address for each contender: connections that have just ended hold their ports for a while.
func serverAddress(i, port int) string { return fmt.Sprintf("127.0.%d.1:%d", 10+i, port) }

func startWorld(o options) (w *world, err error) {
	w = &world{patience: o.patience}
	defer func() {
		if err != nil {
			w.stop()
		}
	}()
	if w.self, err = os.Executable(); err != nil {
		return w, err
	}
	if w.dir, err = os.MkdirTemp("", "benchproxy-"); err != nil {
		return w, err
	}
	// squid drops its rights, and still writes here.
	if err := os.Chmod(w.dir, 0o777); err != nil {
		return w, err
	}
	if w.hello, err = clientHello(vendor); err != nil {
		return w, err
	}
	port, err := freePort()
	if err != nil {
		return w, err
	}
	if _, err := w.start(w.self, "-role=server", "-address=0.0.0.0:"+strconv.Itoa(port)); err != nil {
		return w, err
	}
	w.contenders = append(w.contenders, contender{name: direct, dial: serverAddress(0, port)})
	for i, a := range []struct {
		name string
		add  func(*world, options, string) (contender, error)
	}{{ours, addOurs}, {"relay, copy", addRelay("copy")}, {"relay, splice", addRelay("splice")}, {"squid", addSquid}, {"tinyproxy", addTinyproxy}} {
		if i > 0 && !strings.Contains(a.name, o.ways) {
			continue
		}
		c, err := a.add(w, o, serverAddress(i+1, port))
		if err != nil {
			return w, err
		}
		c.name = a.name
		w.contenders = append(w.contenders, c)
	}
	return w, nil
}

func (w *world) stop() {
	for _, p := range w.procs {
		_ = p.Process.Kill()
		_ = p.Wait()
	}
	if w.dir != "" {
		_ = os.RemoveAll(w.dir)
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// start runs a program until the end; one of this program's roles says when it is ready.
func (w *world) start(name string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	if name != w.self {
		return cmd, w.launch(cmd)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.launch(cmd); err != nil {
		return nil, err
	}
	_, err = bufio.NewReader(out).ReadString('\n')
	return cmd, err
}

func (w *world) launch(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	w.procs = append(w.procs, cmd)
	return nil
}

func addRelay(role string) func(*world, options, string) (contender, error) {
	return func(w *world, _ options, server string) (contender, error) {
		port, err := freePort()
		if err != nil {
			return contender{}, err
		}
		c := contender{dial: "127.0.0.1:" + strconv.Itoa(port), target: server}
		cmd, err := w.start(w.self, "-role="+role, "-address="+c.dial)
		if err == nil {
			c.pid = cmd.Process.Pid
		}
		return c, err
	}
}

// processors are how many sandplan's proxy may use: as many as everybody else here. In its container it has one.
func processors() int { return runtime.NumCPU() }

// configOf is sandplan's proxy for one server, with bounds that the bench does not meet.
func configOf(server string) (*egress.Config, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	host, p, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(p)
	if err != nil {
		return nil, err
	}
	cfg := &egress.Config{
		Invocation: "invocation.bench", Declaration: "vendor.bench", Listen: "127.0.0.1:" + strconv.Itoa(port), Agent: "127.0.0.1",
		Hosts:  []egress.Host{{Name: vendor, Port: n, Addresses: []string{host}, TLS: true, Decl: "vendor.bench"}},
		Limits: egress.DefaultLimits(0),
	}
	cfg.Limits.Tunnels, cfg.Limits.TunnelsPerSecond, cfg.Limits.LogBytes, cfg.Limits.CPUs = 20_000, 1<<20, 1<<40, processors()
	return cfg, nil
}

func addOurs(w *world, o options, server string) (contender, error) {
	cfg, err := configOf(server)
	if err != nil {
		return contender{}, err
	}
	cmd, err := w.startOurs(o.sandplan, cfg, 0)
	if err != nil {
		return contender{}, err
	}
	return contender{dial: cfg.Listen, target: vendor + ":" + strconv.Itoa(cfg.Hosts[0].Port), pid: cmd.Process.Pid}, nil
}

// startOurs runs the built binary under its real protocol. files bounds its descriptors when it is not 0.
func (w *world) startOurs(binary string, cfg *egress.Config, files int) (*exec.Cmd, error) {
	arg, err := cfg.Arg()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, "egress", arg)
	if files > 0 {
		cmd = exec.Command("/bin/sh", "-c", `ulimit -n `+strconv.Itoa(files)+`; exec "$0" egress "$1"`, binary, arg)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.launch(cmd); err != nil {
		return nil, err
	}
	lease := wire.NewWriter(stdin)
	if err := lease.Challenge(wire.Challenge{Nonce: "bench", Token: "bench"}); err != nil {
		return nil, err
	}
	log := bufio.NewReader(stdout)
	if _, err := log.ReadBytes('\n'); err != nil {
		return nil, fmt.Errorf("%s is not ready: %w", binary, err)
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
	go func() {
		for lease.Beat() == nil {
			time.Sleep(time.Second)
		}
	}()
	return cmd, nil
}

// squid and tinyproxy log nothing, cache nothing and allow everything: as fast as they go.
func addSquid(w *world, _ options, server string) (contender, error) {
	port, err := freePort()
	if err != nil {
		return contender{}, err
	}
	c := contender{dial: "127.0.0.1:" + strconv.Itoa(port), target: server}
	conf := filepath.Join(w.dir, "squid.conf")
	text := "http_port " + c.dial + "\nhttp_access allow all\ncache deny all\naccess_log none\ncache_store_log none\n" +
		"cache_log " + w.dir + "/squid.log\npid_filename none\ncoredump_dir none\nmax_filedescriptors 20000\n" +
		"shutdown_lifetime 0 seconds\nclient_lifetime 1 day\nnetdb_filename none\npinger_enable off\ncache_mem 8 MB\n"
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return c, err
	}
	return w.addProgram(c, "squid", "-N", "-f", conf)
}

func addTinyproxy(w *world, _ options, server string) (contender, error) {
	port, err := freePort()
	if err != nil {
		return contender{}, err
	}
	c := contender{dial: "127.0.0.1:" + strconv.Itoa(port), target: server}
	conf := filepath.Join(w.dir, "tinyproxy.conf")
	text := fmt.Sprintf("Port %d\nListen 127.0.0.1\nTimeout 3600\nMaxClients 20000\nLogLevel Critical\nLogFile %q\n", port, w.dir+"/tinyproxy.log")
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return c, err
	}
	return w.addProgram(c, "tinyproxy", "-d", "-c", conf)
}

// addProgram starts one and waits until it listens.
func (w *world) addProgram(c contender, name string, args ...string) (contender, error) {
	path, err := lookPath(name)
	if err != nil {
		return c, err
	}
	cmd, err := w.start(path, args...)
	if err != nil {
		return c, err
	}
	c.pid = cmd.Process.Pid
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if conn, err := net.Dial("tcp", c.dial); err == nil {
			conn.Close()
			return c, nil
		}
		if !alive(c.pid) {
			break
		}
	}
	return c, fmt.Errorf("%s does not listen on %s", name, c.dial)
}
