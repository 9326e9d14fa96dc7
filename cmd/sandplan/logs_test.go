package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress"
)

const (
	logAllow  = `{"seq":1,"time":"2026-01-02T03:04:05.006Z","event":"decision","invocation":"invocation.a","tunnel":1,"host":"api.vendor.example","port":443,"address":"198.50.0.1:443","decision":"allow","reason":"allowed","decl":"vendor.v","sni":"api.vendor.example","up":0,"down":0,"duration_ms":3}`
	logRefuse = `{"seq":2,"time":"2026-01-02T03:04:05.1Z","event":"decision","invocation":"invocation.a","tunnel":2,"host":"evil\u001b[2J.example","port":443,"decision":"refuse","reason":"host_not_declared","up":0,"down":0,"duration_ms":0}`
	logClosed = `{"seq":3,"time":"2026-01-02T03:04:15Z","event":"closed","invocation":"invocation.a","tunnel":1,"host":"api.vendor.example","port":443,"address":"198.50.0.1:443","reason":"closed","up":517,"down":20000,"duration_ms":10000}`
	logEnd    = `{"seq":4,"time":"2026-01-02T03:04:16Z","event":"end","invocation":"invocation.a","up":517,"down":20000,"duration_ms":0,"error":"asked to stop","counts":{"allowed":1,"host_not_declared":12,"too_many_tunnels":3}}`
)

// logRun writes the record of a run; without an invocation it is one that goes on.
func logRun(t *testing.T, dir, id, invocation string, lines ...string) string {
	t.Helper()
	dir = filepath.Join(dir, ".sandplan", "runs", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, l := range lines {
		text += l + "\n"
	}
	write(t, filepath.Join(dir, runEgress), text)
	if invocation != "" {
		write(t, filepath.Join(dir, runRecord), fmt.Sprintf(`{"predicate":{"invocation":%q}}`, invocation))
	}
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLogs(t *testing.T) {
	tests := []struct {
		args   string
		code   int
		stdout []string
		stderr string
		reason string
	}{
		{"logs invocation.a", 0, []string{
			"run 20260102T030405Z-bb\n",
			"03:04:05.006     1  allow    api.vendor.example:443             allowed at 198.50.0.1:443\n",
			"03:04:05.100     2  refuse   evil\\x1b[2J.example:443            host_not_declared\n",
			"03:04:15.000     3  closed   api.vendor.example:443             closed after 10s, 517 bytes up, 20000 down\n",
			"03:04:16.000     4  end                                         517 bytes up, 20000 down, 12 host_not_declared, 3 too_many_tunnels (asked to stop)\n",
		}, "", "the newest run, and no escape of the agent's reaches the terminal"},
		{"logs -json invocation.a", 0, []string{logAllow + "\n" + logRefuse + "\n" + logClosed + "\n" + logEnd + "\n"}, "", "the lines as they are"},
		{"logs invocation.a.proxy", 0, []string{"api.vendor.example"}, "", "a part means its run"},
		{"logs -follow invocation.a", 0, []string{"asked to stop"}, "", "what has ended is not waited for"},
		{"logs -run=20260101T000000Z-aa invocation.a", 0, []string{"run 20260101T000000Z-aa"}, "", "an older run"},
		{"logs invocation.gap", 1, []string{"03:04:16.000     4"}, "line 4 stands where line 2 should", "a gap is an error, when all was shown"},
		{"logs invocation.torn", 1, []string{"allowed"}, "where line 2 should be stands something else", "the same"},
		{"logs invocation.b[\"x\"]", 0, []string{"allowed"}, "", "one instance"},
		{"logs invocation.b", 0, []string{"allowed"}, "", "any instance"},
		{"logs invocation.none", 1, nil, "has none of invocation.none", "what is not there is said"},
		{"logs -run=x invocation.a", 1, nil, "has no run x of invocation.a", "what is not there is said"},
		{"logs", 1, nil, "needs the address", "usage"},
		{"logs a/b", 1, nil, "Not an address", "usage"},
	}
	for _, tt := range tests {
		ta := newTestApp(t)
		logRun(t, ta.dir, "20260101T000000Z-aa", "invocation.a", logAllow)
		logRun(t, ta.dir, "20260102T030405Z-bb", "invocation.a", logAllow, logRefuse, logClosed, logEnd)
		logRun(t, ta.dir, "20260103T000000Z-cc", `invocation.b["x"]`, logAllow)
		logRun(t, ta.dir, "20260103T000000Z-dd", "invocation.gap", logAllow, logEnd)
		logRun(t, ta.dir, "20260103T000000Z-ee", "invocation.torn", logAllow, "{")
		logRun(t, ta.dir, "20260103T000000Z-ff", "") // has just begun
		r := ta.do(tt.args)
		if r.code != tt.code || !strings.Contains(r.stderr, tt.stderr) {
			t.Errorf("%s: exit code %d, stderr %q (%s)", tt.args, r.code, r.stderr, tt.reason)
		}
		for _, want := range tt.stdout {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("%s: %q is not in\n%s(%s)", tt.args, want, r.stdout, tt.reason)
			}
		}
	}
}

// TestLogsFollow: it waits for a run, shows lines as they come, a torn one when it is whole, and ends with
// the log; and where a run died without a last line, with its record.
func TestLogsFollow(t *testing.T) {
	for _, last := range []string{logEnd, ""} {
		ta := newTestApp(t)
		out := &shared{}
		ta.stdout = stream{out, 0}
		done := make(chan result, 1)
		go func() { done <- ta.do("logs -follow -json invocation.a") }()
		dir := logRun(t, ta.dir, "20260102T030405Z-bb", "")
		f, err := os.OpenFile(filepath.Join(dir, runEgress), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		say := func(s string) {
			if _, err := f.WriteString(s); err != nil {
				t.Fatal(err)
			}
		}
		say(logAllow + "\n" + logRefuse[:20])
		for deadline := time.Now().Add(time.Minute); out.String() != logAllow+"\n"; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the first line is not shown: %q", out.String())
			}
		}
		say(logRefuse[20:] + "\n")
		if last != "" {
			say(logClosed + "\n" + last + "\n")
		} else {
			write(t, filepath.Join(dir, runRecord), `{"predicate":{"invocation":"invocation.a"}}`)
		}
		select {
		case r := <-done:
			if r.code != 0 || !strings.HasPrefix(out.String(), logAllow+"\n"+logRefuse+"\n") {
				t.Errorf("exit code %d: %q, %q", r.code, out.String(), r.stderr)
			}
		case <-time.After(time.Minute):
			t.Fatal("it does not end")
		}
	}
}

// TestLogFixtures: the lines of these tests are lines that a proxy can write.
func TestLogFixtures(t *testing.T) {
	for _, l := range []string{logAllow, logRefuse, logClosed, logEnd} {
		dec := json.NewDecoder(strings.NewReader(l))
		dec.DisallowUnknownFields()
		var e egress.Entry
		if err := dec.Decode(&e); err != nil {
			t.Errorf("%s: %v", l, err)
		}
	}
}

type shared struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
