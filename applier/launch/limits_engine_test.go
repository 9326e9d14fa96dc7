package launch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress"
	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// generous answers a byte with a MiB, and reads whatever comes.
func generous(c net.Conn) {
	defer c.Close()
	if n, _ := c.Read(make([]byte, 1)); n == 1 {
		go func() { _, _ = c.Write(make([]byte, 1<<20)) }()
	}
	_, _ = io.Copy(io.Discard, c)
}

// limitsWorld has an agent for each bound of the proxy that can be declared.
func limitsWorld(t *testing.T) *world {
	t.Helper()
	const target = "llm.test:8444"
	w := newWorld(t, 20, map[string][]string{
		"crowd": {"hold=" + target, "hold=" + target, "ask=503:" + target},
		"rush":  {"ask=429:" + target},
		"down":  {"pull=" + target, "sleep=1h"},
		"up":    {"push=" + target, "sleep=1h"},
	}, map[string]string{
		"crowd": "limits {\n tunnels = 2\n tunnels_per_second = 50\n upload = \"1MiB\"\n download = \"3MiB\"\n }",
		"rush":  "limits {\n tunnels_per_second = 2\n }",
		"down":  "limits {\n download = \"64KiB\"\n }",
		"up":    "limits {\n upload = \"64KiB\"\n }",
	})
	listenWith(t, "10.242.64.1:8444", generous)
	config, err := os.ReadFile(filepath.Join(w.dir, "sandplan.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	w.write("sandplan.hcl", strings.ReplaceAll(string(config), "port      = 8443", "port = 8444\n    tls = false"))
	return w
}

// TestRealLimits declares every bound of the proxy: the container holds it, an agent beyond it reads which one it is,
// a run that has used up its bytes ends with the attribute's name, and the log counts the reason.
func TestRealLimits(t *testing.T) {
	t.Parallel()
	w := limitsWorld(t)
	w.apply()
	var cmd []string
	if err := json.Unmarshal([]byte(w.tell("inspect", "-f", "{{json .Config.Cmd}}", w.container("invocation.crowd.proxy"))), &cmd); err != nil {
		t.Fatal(err)
	}
	held, err := egress.ParseConfig(cmd[len(cmd)-1])
	if err != nil {
		t.Fatal(err)
	}
	if l := held.Limits; l.Tunnels != 2 || l.TunnelsPerSecond != 50 || l.UploadBytes != 1<<20 || l.DownloadBytes != 3<<20 {
		t.Errorf("the container's proxy has the limits %+v", l)
	}
	for _, c := range []struct {
		name   string
		code   int
		stdout []string
		last   string
		reason reason.Reason
	}{
		{"crowd", 0, []string{"503 sandplan refused", "limits.tunnels of invocation.crowd, which allows 2."}, "", reason.TooManyTunnels},
		{"rush", 0, []string{"429 sandplan refused", "limits.tunnels_per_second of invocation.rush, which allows 2."}, "", reason.TooManyPerSecond},
		{"down", 119, nil, "it tried to download more than limits.download allows: 64KiB, at ", reason.DownloadLimit},
		{"up", 119, nil, "it tried to upload more than limits.upload allows: 64KiB, at ", reason.UploadLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := w.sandplan("run", "invocation."+c.name)
			if e.code != c.code {
				t.Errorf("exit code %d, want %d\n%s%s", e.code, c.code, e.stdout, e.stderr)
			}
			for _, text := range c.stdout {
				if !strings.Contains(e.stdout, text) {
					t.Errorf("the agent read %q, want %q in it", e.stdout, text)
				}
			}
			if c.last != "" && (!strings.HasPrefix(e.last(), "sandplan:") || !strings.Contains(e.stderr, c.last)) {
				t.Errorf("it ended with %q, want %q", e.stderr, c.last)
			}
			w.counted(t, c.name, c.reason)
		})
	}
	if e := w.sandplan("plan", "-detailed-exitcode"); e.code != 0 {
		t.Errorf("after the runs the plan is not empty: exit code %d\n%s", e.code, e.stdout)
	}
}

// counted looks for a reason in the log's last line, as programs and as people read it.
func (w *world) counted(t *testing.T, name string, why reason.Reason) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace([]byte(w.must("logs", "-json", "invocation."+name).stdout)), []byte("\n"))
	var end egress.Entry
	if err := json.Unmarshal(lines[len(lines)-1], &end); err != nil || end.Event != egress.EventEnd {
		t.Fatalf("the last line is %s (%v)", lines[len(lines)-1], err)
	}
	if end.Counts[why] < 1 {
		t.Errorf("the log counts %v, without %s", end.Counts, why)
	}
	if table := w.must("logs", "invocation."+name).stdout; !strings.Contains(table, fmt.Sprintf("%d %s", end.Counts[why], why)) {
		t.Errorf("the table does not say how often it was %s:\n%s", why, table)
	}
}
