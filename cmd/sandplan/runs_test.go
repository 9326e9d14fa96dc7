package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/applier/launch"
)

const hostileRecord = `{"_type":"https://in-toto.io/Statement/v1","subject":[],"predicateType":"https://sandplan.dev/run/v1","predicate":{
 "id":%q,"scope":"p/default","invocation":"invocation.x","vendor":"local","phase":"fix","writable":true,"worktree":"/srv/x",
 "argv":["/agent","\u001b[2J"],"began":"2026-01-02T15:04:05Z","running":"2026-01-02T15:04:06Z","ended":"2026-01-02T15:04:16Z",
 "worktree_contents":{"before":{"sha256":"aa","entries":3},"after":{"sha256":"bb","entries":4},"changes":[{"what":"new","mark":{"path":".mcp.json","kind":"guarded","id":"1"}}]},
 "egress":{"allowed":{"llm.test:443":2},"refused":{"evil\u001b[1m:443":1},"up":10,"down":20,"lines":3},
 "exit":{"code":120,"by":"sandplan","reason":"left\u001b]0;x\u0007 things","findings":[{"Kind":"drift","Addr":"invocation.x","Text":"left \".mcp.json\""}]}}}`

// TestRuns lists and explains records without any engine; what agents and hosts wrote into them does
// nothing to the terminal.
func TestRuns(t *testing.T) {
	a := newTestApp(t)
	data := t.TempDir()
	a.env["SANDPLAN_DATA_DIR"] = data
	const whole, dead = "20260102T150405Z-0a1b2c3d", "20260103T150405Z-0a1b2c3e"
	const killed, running = "20260102T160405Z-0a1b2c3f", "20260102T170405Z-0a1b2c40"
	for _, id := range []string{whole, dead, killed, running} {
		if err := os.MkdirAll(filepath.Join(data, "runs", id), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(data, "runs", whole, "record.json"), fmt.Appendf(nil, hostileRecord, whole), 0o600); err != nil {
		t.Fatal(err)
	}
	logBegin(t, filepath.Join(data, "runs", killed), launch.Begun{Invocation: "invocation.k"})()
	logBegin(t, filepath.Join(data, "runs", running), launch.Begun{Invocation: "invocation.r"})
	for _, c := range []struct {
		args   string
		code   int
		want   []string
		reason string
	}{
		{"runs", 0, []string{whole, "invocation.x", "exit code 120, decided by sandplan", killed + " the run has no record.json: the sandplan that ran invocation.k was killed",
			running + " the run has no record.json: invocation.r goes on", dead + " the run has no record.json: it goes on, or its sandplan was killed"}, "one line for each, records or not"},
		{"runs show " + whole, 0, []string{"10s, after 1s of preparation", "changed: aa before, bb after; 1 that act on this machine", "2 tunnels to llm.test:443", "10 bytes up, 20 down", "/srv/x (writable)"}, "all that a person asks"},
		{"runs show 2c3d", 0, []string{whole}, "the end of an ID is enough"},
		{"runs show latest", 1, []string{"sandplan was killed"}, "the newest has no record"},
		{"runs show " + running, 1, []string{"invocation.r goes on"}, "it has none yet"},
		{"runs show 2026", 1, []string{"begins the IDs of 4 runs"}, "say more of it"},
		{"runs show nope", 1, []string{"No such run"}, "there is none"},
		{"runs what", 1, []string{"it has show"}, "no such command"},
	} {
		a.out.Reset()
		a.err.Reset()
		code := a.main(strings.Fields(c.args))
		text := a.out.String() + a.err.String()
		joined := strings.Join(strings.Fields(text), " ")
		if code != c.code {
			t.Errorf("%s: exit code %d, want %d (%s)\n%s", c.args, code, c.code, c.reason, text)
		}
		for _, want := range c.want {
			if !strings.Contains(joined, want) {
				t.Errorf("%s: %q is missing (%s)\n%s", c.args, want, c.reason, text)
			}
		}
		if strings.ContainsAny(text, "\x1b\x07") {
			t.Errorf("%s: control characters reach the terminal:\n%q", c.args, text)
		}
	}
}
