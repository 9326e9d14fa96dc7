package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/applier/launch"
)

// following is a logs -follow that is going on.
type following struct {
	t    *testing.T
	ta   *testApp
	out  *shared
	done chan result
}

func follow(t *testing.T, ta *testApp, args string) *following {
	f := &following{t, ta, &shared{}, make(chan result, 1)}
	ta.stdout = stream{f.out, 0}
	go func() { f.done <- ta.do("logs -follow -json " + args + "invocation.a") }()
	return f
}

// shows waits until exactly the text is shown, and it goes on.
func (f *following) shows(want string) {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); f.out.String() != want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("not shown: %q, but %q", want, f.out.String())
		}
	}
	select {
	case r := <-f.done:
		f.t.Fatalf("it has ended with %d: %q", r.code, r.stderr)
	default:
	}
}

func (f *following) ends(code int, want, stderr string) {
	f.t.Helper()
	select {
	case r := <-f.done:
		told := strings.Join(strings.Fields(r.stderr), " ")
		if r.code != code || f.out.String() != want || !strings.Contains(told, stderr) || (told == "") != (code == 0) {
			f.t.Errorf("exit code %d: %q, %q", r.code, f.out.String(), r.stderr)
		}
	case <-time.After(time.Minute):
		f.t.Fatal("it does not end")
	}
}

// TestLogsFollow: it waits for a run and for its log, shows lines as they come, a torn one when it is whole, and
// ends with the run, not with the last line: what stands behind that is told.
func TestLogsFollow(t *testing.T) {
	const missing = "its last line, with the counts, is missing"
	for _, tt := range []struct {
		name, rest string // what is written after the first two lines
		record     bool   // or it is killed
		code       int
		stderr     string
	}{
		{"whole", inLines(logClosed, logEnd), true, 0, ""},
		{"no last line, recorded", "", true, 1, missing},
		{"torn, recorded", logClosed[:40], true, 1, "it ends within a line"},
		{"no last line, killed", "", false, 1, missing},
		{"torn, killed", logClosed[:40], false, 1, "it ends within a line"},
		{"killed after the last line", inLines(logClosed, logEnd), false, 0, ""},
		{"a line behind the last one", inLines(logClosed, logEnd, logAllow), true, 1, "behind the last line stands"},
		{"half a line behind the last one", inLines(logClosed, logEnd) + "x", false, 1, "it ends within a line"},
		{"a gap", inLines(logEnd), true, 1, "line 4 stands where line 3 should"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ta := newTestApp(t)
			f := follow(t, ta, "")
			dir := filepath.Join(ta.dir, ".sandplan", "runs", runB)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			kill := logBegin(t, dir, launch.Begun{Invocation: "invocation.a", At: time.Now()})
			f.shows("")
			log, err := os.OpenFile(filepath.Join(dir, "egress.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			say := func(s string) {
				if _, err := log.WriteString(s); err != nil {
					t.Fatal(err)
				}
			}
			say(logAllow + "\n" + logRefuse[:20])
			f.shows(inLines(logAllow))
			say(logRefuse[20:] + "\n")
			f.shows(inLines(logAllow, logRefuse))
			say(tt.rest)
			lines := tt.rest[:strings.LastIndexByte(tt.rest, '\n')+1]
			f.shows(inLines(logAllow, logRefuse) + lines)
			if tt.record {
				logRecord(t, dir, "invocation.a", "") // which is enough
			} else {
				kill()
			}
			f.ends(tt.code, inLines(logAllow, logRefuse)+lines, tt.stderr)
		})
	}
}

// TestLogsFollowNewest: it does not take an older run for the one that has just begun.
func TestLogsFollowNewest(t *testing.T) {
	ta := newTestApp(t)
	logRun(t, ta.dir, runA, "invocation.a", recorded, inLines(logAllow, logRefuse, logClosed, logEnd))
	kill := logRun(t, ta.dir, runB, "invocation.a", running, "")
	f := follow(t, ta, "")
	f.shows("")
	last := strings.Replace(logEnd, `"seq":4`, `"seq":1`, 1)
	write(t, filepath.Join(ta.dir, ".sandplan", "runs", runB, "egress.jsonl"), inLines(last))
	f.shows(inLines(last))
	kill()
	f.ends(0, inLines(last), "")
}

// TestLogsFollowInterrupted: whoever ends it is told what is missing until then, and no more.
func TestLogsFollowInterrupted(t *testing.T) {
	for log, stderr := range map[string]string{
		inLines(logAllow):           "",
		inLines(logAllow, logEnd):   "line 4 stands where line 2 should",
		inLines(logAllow) + "{\"se": "",
	} {
		ta := newTestApp(t)
		logRun(t, ta.dir, runB, "invocation.a", running, log)
		f := follow(t, ta, "-run="+runB+" ")
		lines := log[:strings.LastIndexByte(log, '\n')+1]
		f.shows(lines)
		ta.signal <- os.Interrupt
		code := exitOK
		if stderr != "" {
			code = exitError
		}
		f.ends(code, lines, stderr)
	}
}

// TestLogsFollowKilled: a run whose process is killed is over, and the kernel says so.
func TestLogsFollowKilled(t *testing.T) {
	const hold = "SANDPLAN_TEST_HOLD_RUN"
	if dir := os.Getenv(hold); dir != "" { // the process that is killed
		logBegin(t, dir, launch.Begun{Invocation: "invocation.a", At: time.Now()})
		time.Sleep(time.Hour)
	}
	ta := newTestApp(t)
	logRun(t, ta.dir, runB, "", unnamed, "") // nobody knows yet whose it is
	f := follow(t, ta, "")
	dir := filepath.Join(ta.dir, ".sandplan", "runs", runB)
	holder := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLogsFollowKilled$")
	holder.Env = append(os.Environ(), hold+"="+dir)
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "begun.json")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the other process has not begun")
		}
	}
	write(t, filepath.Join(dir, "egress.jsonl"), inLines(logAllow))
	f.shows(inLines(logAllow))
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	f.ends(1, inLines(logAllow), "is missing")
}
