package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/egress"
)

const (
	logAllow  = `{"seq":1,"time":"2026-01-02T03:04:05.006Z","event":"decision","invocation":"invocation.a","tunnel":1,"host":"api.vendor.example","port":443,"address":"198.50.0.1:443","decision":"allow","reason":"allowed","decl":"vendor.v","sni":"api.vendor.example","up":0,"down":0,"duration_ms":3}`
	logRefuse = `{"seq":2,"time":"2026-01-02T03:04:05.1Z","event":"decision","invocation":"invocation.a","tunnel":2,"host":"evil\u001b[2J.example","port":443,"decision":"refuse","reason":"host_not_declared","up":0,"down":0,"duration_ms":0}`
	logClosed = `{"seq":3,"time":"2026-01-02T03:04:15Z","event":"closed","invocation":"invocation.a","tunnel":1,"host":"api.vendor.example","port":443,"address":"198.50.0.1:443","reason":"closed","up":517,"down":20000,"duration_ms":10000}`
	logEnd    = `{"seq":4,"time":"2026-01-02T03:04:16Z","event":"end","invocation":"invocation.a","up":517,"down":20000,"duration_ms":0,"error":"asked to stop","counts":{"allowed":1,"host_not_declared":12,"too_many_tunnels":3}}`
)

// What a run has beside its log.
type logState int

const (
	recorded   logState = iota // its record
	running                    // what it wrote when it began, and somebody who holds that
	killed                     // the same, and nobody who holds it
	unnamed                    // nothing: the log alone says whose it is
	recordonly                 // its record, and no log
)

const (
	runA = "20260101T000000Z-000000aa"
	runB = "20260102T030405Z-000000bb"
	runC = "20260103T000000Z-000000cc"
)

// logRun writes the directory of a run, whose log is exactly the text. What it returns ends one that is running as a
// kill does.
func logRun(t *testing.T, dir, id, invocation string, state logState, log string) (kill func()) {
	t.Helper()
	dir = filepath.Join(dir, ".sandplan", "runs", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	kill = func() {}
	if state == running || state == killed {
		stamp, _, _ := strings.Cut(id, "-")
		at, err := time.Parse("20060102T150405Z", stamp)
		if err != nil {
			t.Fatal(err)
		}
		kill = logBegin(t, dir, launch.Begun{Invocation: planner.Address(invocation), At: at})
	}
	if state == killed {
		kill()
	}
	if state == recorded || state == recordonly {
		logRecord(t, dir, invocation, "")
	}
	if state != recordonly {
		write(t, filepath.Join(dir, "egress.jsonl"), log)
	}
	return kill
}

// logBegin writes what a run writes when it begins, and holds it.
func logBegin(t *testing.T, dir string, b launch.Begun) (kill func()) {
	t.Helper()
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "begun.json")
	write(t, name+".new", string(text))
	f, err := os.Open(name + ".new")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
	return func() { f.Close() }
}

// logRecord puts a record in place, as a run does: in one step.
func logRecord(t *testing.T, dir, invocation, incomplete string) {
	t.Helper()
	name := filepath.Join(dir, "record.json")
	write(t, name+".new", fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://sandplan.dev/run/v1",`+
		`"predicate":{"id":%q,"invocation":%q,"egress":{"incomplete":%q}}}`, filepath.Base(dir), invocation, incomplete))
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// doesEnd is what a command does, which must end by itself.
func doesEnd(t *testing.T, ta *testApp, line string) result {
	t.Helper()
	late := time.AfterFunc(time.Minute, func() { ta.signal <- os.Interrupt })
	r := ta.do(line)
	if !late.Stop() {
		t.Fatalf("%s does not end", line)
	}
	return r
}

// inLines is a log of whole lines.
func inLines(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

func TestLogs(t *testing.T) {
	whole := inLines(logAllow, logRefuse, logClosed, logEnd)
	table := []string{
		"run " + runB + "\n",
		"03:04:05.006     1  allow    api.vendor.example:443             allowed at 198.50.0.1:443\n",
		"03:04:05.100     2  refuse   evil\\x1b[2J.example:443            host_not_declared\n",
		"03:04:15.000     3  closed   api.vendor.example:443             closed after 10s, 517 bytes up, 20000 down\n",
		"03:04:16.000     4  end                                         517 bytes up, 20000 down, 12 host_not_declared, 3 too_many_tunnels (asked to stop)\n",
	}
	for _, tt := range []struct {
		args   string
		code   int
		stdout []string
		stderr string
		reason string
	}{
		{"logs invocation.a", 0, table, "", "the newest run, and no escape of the agent's reaches the terminal"},
		{"logs -json invocation.a", 0, []string{whole}, "", "the lines as they are"},
		{"logs invocation.a.proxy", 0, []string{"api.vendor.example"}, "", "a part means its run"},
		{"logs -follow invocation.a", 0, []string{"asked to stop"}, "", "what is over is not waited for"},
		{"logs -run=" + runA + " invocation.a", 0, []string{"run " + runA}, "", "an older run"},
		{"logs invocation.b[\"x\"]", 0, []string{"allowed"}, "", "one instance"},
		{"logs invocation.b", 0, []string{"allowed"}, "", "any instance"},
		{"logs invocation.none", 1, nil, "has none of invocation.none", "what is not there is said"},
		{"logs -run=x invocation.a", 1, nil, "has no run x of invocation.a", "what is not there is said"},
		{"logs -follow -run=x invocation.a", 1, nil, "has no run x of invocation.a", "nobody knows the ID of a run that is still to come"},
		{"logs -run=" + runA + " invocation.b", 1, nil, "of invocation.b", "another invocation's"},
		{"logs", 1, nil, "needs the address", "usage"},
		{"logs a/b", 1, nil, "Not an address", "usage"},
	} {
		ta := newTestApp(t)
		logRun(t, ta.dir, runA, "invocation.a", recorded, inLines(logAllow, strings.Replace(logEnd, `"seq":4`, `"seq":2`, 1)))
		logRun(t, ta.dir, runB, "invocation.a", recorded, whole)
		logRun(t, ta.dir, runC, `invocation.b["x"]`, recorded, whole)
		logRun(t, ta.dir, "20260103T000000Z-000000dd", "", unnamed, "") // of whoever begins at this moment
		r := doesEnd(t, ta, tt.args)
		if r.code != tt.code || !strings.Contains(r.stderr, tt.stderr) || (r.stderr == "") != (tt.code == 0) {
			t.Errorf("%s: exit code %d, stderr %q (%s)", tt.args, r.code, r.stderr, tt.reason)
		}
		for _, want := range tt.stdout {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("%s: %q is not in\n%s(%s)", tt.args, want, r.stdout, tt.reason)
			}
		}
	}
}

// TestLogsWhole: what a log lacks is told when all of it was shown, however it is read; and of a run that goes on
// only what cannot come any more.
func TestLogsWhole(t *testing.T) {
	const missing, within = "its last line, with the counts, is missing", "it ends within a line: "
	begins, half := inLines(logAllow, logRefuse), logClosed[:40]
	whole := inLines(logAllow, logRefuse, logClosed, logEnd)
	gap := strings.Replace(logEnd, `"seq":4`, `"seq":3`, 1)
	long := logClosed + strings.Repeat(" ", 1<<20)
	over, all := []logState{recorded, killed, unnamed}, []logState{recorded, killed, running}
	for _, tt := range []struct {
		log    string
		states []logState
		shown  string
		wrong  []string // none is no error
		reason string
	}{
		{whole, append(all, unnamed), whole, nil, "nothing is missing"},
		{begins, over, begins, []string{missing}, "no last line"},
		{begins, []logState{running}, begins, nil, "it is still to come"},
		{begins + half, over, begins, []string{missing, within + strconv.Quote(half)}, "a line that was not written to its end"},
		{begins + half, []logState{running}, begins, nil, "the rest is still to come"},
		{begins + logClosed, over, begins, []string{missing, within}, "a line without its end is none, whatever it says"},
		{begins + logClosed + "\n" + logEnd, over, begins + logClosed + "\n", []string{missing, within}, "the last line too"},
		{whole + half, over, whole, []string{within}, "something behind the end"},
		{whole + inLines(logAllow), all, whole + inLines(logAllow), []string{"behind the last line stands " + `"{\"seq\":1,`}, "the same, a line"},
		{whole + "garbage\x1b[2J\n", all, whole, []string{`behind the last line stands "garbage\x1b[2J"`}, "the same, and none"},
		{whole + inLines(logEnd), all, whole + inLines(logEnd), []string{"behind the last line stands"}, "a second end"},
		{"", []logState{recorded, killed}, "", []string{missing}, "a proxy that never said anything"},
		{"", []logState{running}, "", nil, "one that has said nothing yet"},
		{inLines(logAllow, logRefuse, gap), all, inLines(logAllow, logRefuse, gap), nil, "numbered without a gap"},
		{inLines(logAllow, gap), all, inLines(logAllow, gap), []string{"line 3 stands where line 2 should"}, "a gap"},
		{inLines(logAllow, logAllow, logRefuse, gap), all, inLines(logAllow, logAllow, logRefuse, gap), []string{"line 1 stands where line 2 should"}, "a line twice"},
		{inLines(logAllow, "{", gap), all, inLines(logAllow, gap), []string{`where line 2 should be stands "{"`}, "no line"},
		{inLines(logAllow, "", gap), all, inLines(logAllow, gap), []string{`where line 2 should be stands ""`}, "an empty one"},
		{inLines(logAllow, "{}", gap), all, inLines(logAllow, gap), []string{`where line 2 should be stands "{}"`}, "no line of a proxy's"},
		{begins + long + "\n" + inLines(logEnd), all, begins + inLines(logEnd), []string{"where line 3 should be stands "}, "one far too long, and what comes behind it"},
		{begins + strings.Repeat("\n", 9) + inLines(strings.Replace(logEnd, `"seq":4`, `"seq":12`, 1)), all, begins, []string{`line 7 should be stands "" - and 4 more`}, "not everything is told"},
	} {
		for _, state := range tt.states {
			for _, flags := range []string{"", "-json ", "-follow ", "-follow -json "} {
				if state == running && strings.HasPrefix(flags, "-follow") {
					continue // goes on
				}
				ta := newTestApp(t)
				logRun(t, ta.dir, runB, "invocation.a", state, tt.log)
				r := doesEnd(t, ta, "logs "+flags+"invocation.a")
				at := fmt.Sprintf("%s, run %d, %q", tt.reason, state, flags)
				if (r.code == exitOK) != (len(tt.wrong) == 0) || (r.stderr == "") != (len(tt.wrong) == 0) {
					t.Errorf("%s: exit code %d, stderr %q", at, r.code, r.stderr)
				}
				for _, want := range tt.wrong {
					if told := strings.Join(strings.Fields(r.stderr), " "); !strings.Contains(told, want) || !strings.Contains(told, "log is not whole") {
						t.Errorf("%s: %q is not in\n%s", at, want, r.stderr)
					}
				}
				if strings.Contains(flags, "-json") {
					if !strings.HasPrefix(r.stdout, tt.shown) {
						t.Errorf("%s: shown\n%s", at, r.stdout)
					}
				} else if n := strings.Count(r.stdout, "\n") - 2; n < strings.Count(tt.shown, "\n") {
					t.Errorf("%s: %d lines are shown:\n%s", at, n, r.stdout)
				}
			}
		}
	}
}

// TestLogsRecordSays: what the run itself could not keep is told, however whole its log looks.
func TestLogsRecordSays(t *testing.T) {
	ta := newTestApp(t)
	logRun(t, ta.dir, runB, "invocation.a", killed, inLines(logAllow, logRefuse, logClosed, logEnd))
	logRecord(t, filepath.Join(ta.dir, ".sandplan", "runs", runB), "invocation.a", "it could not be written: no space")
	if r := ta.do("logs invocation.a"); r.code != exitError || !strings.Contains(r.stderr, "its record says: it could not be written: no space") {
		t.Errorf("exit code %d, %q", r.code, r.stderr)
	}
}

// TestLogsNewest: the run that began last is shown, whatever it has said so far.
func TestLogsNewest(t *testing.T) {
	whole := inLines(logAllow, logRefuse, logClosed, logEnd)
	for _, tt := range []struct {
		name   string
		add    func(t *testing.T, dir string)
		shown  string // the run
		code   int
		stderr string
	}{
		{"one that has no line yet", func(t *testing.T, dir string) { logRun(t, dir, runC, "invocation.a", running, "") }, runC, 0, ""},
		{"one whose first line is not whole", func(t *testing.T, dir string) { logRun(t, dir, runC, "invocation.a", running, logAllow[:30]) }, runC, 0, ""},
		{"one that has no log yet", func(t *testing.T, dir string) {
			logRun(t, dir, runC, "invocation.a", running, "")
			if err := os.Remove(filepath.Join(dir, ".sandplan", "runs", runC, "egress.jsonl")); err != nil {
				t.Fatal(err)
			}
		}, runC, 0, ""},
		{"one that was killed before its first line", func(t *testing.T, dir string) { logRun(t, dir, runC, "invocation.a", killed, "") }, runC, 1, "is missing"},
		{"one that was refused before its proxy was started", func(t *testing.T, dir string) { logRun(t, dir, runC, "invocation.a", recordonly, "") }, runC, 1, "run " + runC + " was over before its proxy was started"},
		{"another invocation's", func(t *testing.T, dir string) { logRun(t, dir, runC, "invocation.b", running, "") }, runB, 0, ""},
		{"a runner's", func(t *testing.T, dir string) {
			logRun(t, dir, runC, "", unnamed, "")
			logBegin(t, filepath.Join(dir, ".sandplan", "runs", runC), launch.Begun{Invocation: "invocation.a", Runner: "r", At: time.Now()})
		}, runB, 0, ""},
		{"one that was asked for earlier, and began later", func(t *testing.T, dir string) {
			logRun(t, dir, runA, "", unnamed, "")
			logBegin(t, filepath.Join(dir, ".sandplan", "runs", runA), launch.Begun{Invocation: "invocation.a", At: time.Now()})
		}, runA, 0, ""},
		{"one of which nothing is known but its lines", func(t *testing.T, dir string) { logRun(t, dir, runC, "", unnamed, whole) }, runC, 0, ""},
	} {
		for _, flags := range []string{"", "-run=" + tt.shown + " "} {
			ta := newTestApp(t)
			logRun(t, ta.dir, runB, "invocation.a", recorded, whole)
			tt.add(t, ta.dir)
			r := doesEnd(t, ta, "logs "+flags+"invocation.a")
			told := strings.Join(strings.Fields(r.stderr), " ")
			if !strings.HasPrefix(r.stdout, "run "+tt.shown+"\n") || r.code != tt.code || !strings.Contains(told, tt.stderr) || (told == "") != (tt.code == 0) {
				t.Errorf("%s, %q: exit code %d, %q, shown\n%s", tt.name, flags, r.code, r.stderr, r.stdout)
			}
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
