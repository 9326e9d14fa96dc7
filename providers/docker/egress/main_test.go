package egress

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// started is Main at work, with the test at the other end of its standard streams.
type started struct {
	stdin  *io.PipeWriter
	stdout *bufio.Reader
	stderr bytes.Buffer
	code   chan int
	rest   chan string // what stdout still said after the ready line
}

func startMain(t *testing.T, cfg *Config) *started {
	t.Helper()
	arg, err := cfg.Arg()
	if err != nil {
		t.Fatal(err)
	}
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	s := &started{stdin: stdin, stdout: bufio.NewReader(stdout), code: make(chan int, 1), rest: make(chan string, 1)}
	go func() {
		s.code <- Main([]string{arg}, in, out, &s.stderr)
		out.Close()
	}()
	t.Cleanup(func() { stdin.Close() })
	return s
}

func (s *started) wait(t *testing.T) int {
	t.Helper()
	select {
	case c := <-s.code:
		return c
	case <-time.After(patience):
		t.Fatal("it does not end")
		return -1
	}
}

// begin has it say that it is ready, which tells where it listens: at a port of the kernel's choice, since one that was
// free a moment ago may be somebody else's now.
func (s *started) begin(t *testing.T) (*wire.Writer, wire.Ready) {
	t.Helper()
	w := wire.NewWriter(s.stdin)
	if err := w.Challenge(wire.Challenge{Nonce: "n-1", Token: "t"}); err != nil {
		t.Fatal(err)
	}
	line, err := s.stdout.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	ready, err := wire.ParseReady(line, "n-1")
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return w, ready
}

func TestMainFromChallengeToStop(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.Listen, cfg.Limits.SilenceMS = "127.0.0.79:0", 3000
	cfg.Sysctls = map[string]string{"net.ipv4.ip_forward": "7"}
	s := startMain(t, cfg)
	w, ready := s.begin(t)
	if !strings.HasPrefix(ready.Listen, "127.0.0.79:") || !slices.Contains(ready.Addresses, wire.Address{Interface: "lo", Prefix: "127.0.0.1/8"}) || !strings.Contains(ready.Hosts, "localhost") {
		t.Errorf("ready: %+v", ready)
	}
	var failed []string
	for _, c := range ready.Failed() {
		failed = append(failed, c.Name)
	}
	if !slices.Contains(failed, "sysctl.net.ipv4.ip_forward") {
		t.Errorf("a wrong sysctl is not among the failed checks %v", failed)
	}
	go func() { b, _ := io.ReadAll(s.stdout); s.rest <- string(b) }()

	p := &proxy{t: t, addr: ready.Listen}
	if resp, _ := p.ask(connectTo("github.com:443")); resp.StatusCode != 403 {
		t.Errorf("%s", resp.Status)
	}
	// Beats keep it alive for longer than the silence that it bears.
	for start := time.Now(); time.Since(start) < ms(cfg.Limits.SilenceMS)+500*time.Millisecond; time.Sleep(100 * time.Millisecond) {
		if err := w.Beat(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	if code := s.wait(t); code != ExitStopped {
		t.Errorf("exit code %d: %s", code, s.stderr.String())
	}
	var events []Event
	for i, l := range strings.Split(strings.TrimSpace(<-s.rest), "\n") {
		var e Entry
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		if err := checkLine(l); err != nil {
			t.Errorf("%q: %v", l, err)
		}
		if e.Seq != uint64(i+1) || e.Invocation != "invocation.a" {
			t.Errorf("line %d: %+v", i+1, e)
		}
		events = append(events, e.Event)
	}
	if !slices.Equal(events, []Event{EventDecision, EventEnd}) {
		t.Errorf("events %v", events)
	}
}

func TestMainEnds(t *testing.T) {
	const short, long = 500, 60_000
	tests := []struct {
		name    string
		silence int64 // that it bears, in milliseconds
		do      func(*started, *wire.Writer)
		code    int
		says    string
	}{
		{"without a challenge", short, func(*started, *wire.Writer) {}, ExitFailed, "nothing was heard"},
		{"when stdin ends", long, func(s *started, w *wire.Writer) {
			if w.Challenge(wire.Challenge{Nonce: "n", Token: "t"}) == nil {
				go func() { _, _ = io.Copy(io.Discard, s.stdout) }()
			}
			s.stdin.Close()
		}, ExitFailed, "standard input ended"},
		{"when nobody beats", short, func(s *started, w *wire.Writer) {
			if w.Challenge(wire.Challenge{Nonce: "n", Token: "t"}) == nil {
				go func() { _, _ = io.Copy(io.Discard, s.stdout) }()
			}
		}, ExitFailed, "nothing was heard"},
		{"when nobody reads its log", long, func(s *started, w *wire.Writer) {
			if w.Challenge(wire.Challenge{Nonce: "n", Token: "t"}) == nil {
				_, _ = s.stdout.ReadBytes('\n')
				_ = w.Stop()
			}
		}, ExitStopped, ""},
		{"on another frame", long, func(s *started, _ *wire.Writer) { go func() { _, _ = s.stdin.Write(make([]byte, 64)) }() }, ExitFailed, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig()
			cfg.Limits.SilenceMS = tt.silence
			s := startMain(t, cfg)
			tt.do(s, wire.NewWriter(s.stdin))
			if code := s.wait(t); code != tt.code {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(s.stderr.String(), tt.says) {
				t.Errorf("stderr %q does not say %q", s.stderr.String(), tt.says)
			}
		})
	}
}

func TestMainRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, args := range [][]string{nil, {"{}"}, {"x"}, {`{"invocation":"a","unknown":1}`}, {"{}", "{}"}} {
		var stderr bytes.Buffer
		if code := Main(args, strings.NewReader(""), io.Discard, &stderr); code != ExitUsage || stderr.Len() == 0 {
			t.Errorf("%q: exit code %d, %q", args, code, stderr.String())
		}
	}
}

func TestConfigRoundTrip(t *testing.T) {
	cfg := testConfig()
	a, err := cfg.Arg()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseConfig(a)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := back.Arg(); err != nil || a != b {
		t.Errorf("%s\n%s\n%v", a, b, err)
	}
}

func TestConfigMistakes(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config)
		says   string
	}{
		{"listens everywhere", func(c *Config) { c.Listen = "0.0.0.0:3128" }, "one interface"},
		{"no agent", func(c *Config) { c.Agent = "" }, "agent"},
		{"its own address", func(c *Config) { c.Addresses = []string{"10.0.0.2"} }, "addresses"},
		{"gateway", func(c *Config) { c.Gateway = "gw.example" }, "gw.example"},
		{"engine's resolver", func(c *Config) { c.Nameservers = []string{"dns.example"} }, "dns.example"},
		{"no hosts", func(c *Config) { c.Hosts = nil }, "no hosts"},
		{"port", func(c *Config) { c.Hosts[0].Port = 70000 }, "port 70000"},
		{"address", func(c *Config) { c.Hosts[0].Addresses = []string{"x"} }, vendorName},
		{"nobody to ask", func(c *Config) { c.DNS = nil }, "no name servers"},
		{"name server", func(c *Config) { c.DNS = []string{"ns.example"} }, "ns.example"},
		{"limit", func(c *Config) { c.Limits.HelloMS = 0 }, "hello_ms"},
		{"negative processors", func(c *Config) { c.Limits.CPUs = -1 }, "negative"},
		{"negative", func(c *Config) { c.Limits.UploadBytes = -1 }, "negative"},
	}
	for _, tt := range tests {
		cfg := testConfig()
		tt.change(cfg)
		if _, err := cfg.Arg(); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want an error with %q", tt.name, err, tt.says)
		}
	}
	cfg := testConfig()
	cfg.DNS, cfg.Hosts[0].Addresses = nil, []string{"10.0.0.1"}
	if _, err := cfg.Arg(); err != nil {
		t.Errorf("fixed addresses need no name server: %v", err)
	}
}

// TestMainKeepsItsLimits: the runtime is told what the container has, and uses it when there is work for it.
func TestMainKeepsItsLimits(t *testing.T) {
	cfg := testConfig()
	cfg.Limits.CPUs, cfg.Limits.MemoryBytes = 3, 100<<20
	before, limit := runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before); debug.SetMemoryLimit(limit); debug.SetGCPercent(100) })
	s := startMain(t, cfg)
	w, ready := s.begin(t)
	go func() { _, _ = io.Copy(io.Discard, s.stdout) }()
	if n, m := runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1); n != 1 || m > 100<<20 || m < 80<<20 {
		t.Errorf("%d threads, a memory limit of %d", n, m)
	}
	for range 2 { // requests without an end
		c, err := net.Dial("tcp4", ready.Listen)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "CONNECT "); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(patience); runtime.GOMAXPROCS(0) != 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d threads for two requests at once", runtime.GOMAXPROCS(0))
		}
	}
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	s.wait(t)
}
