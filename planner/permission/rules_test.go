package permission

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// base is a set with one of everything.
func base() Set {
	return Set{
		Invocation: "invocation.a", Image: "sha256:1", User: "1000:1000", Read: []string{"/tree"}, Reach: []string{"a.example:443"},
		Git: []string{"/tree/.git"}, DNS: []string{"9.9.9.9"}, Engine: "unix:///a.sock", Vendor: "claude", Ceiling: []string{"read", "run"}, Tools: []string{"read", "list"},
		Command: []string{"claude", "--tools", "Read,Glob"}, Files: []string{"/home/agent/x"},
		Runners: []Runner{{"test", []string{"npm", "test"}, "sha256:2", time.Minute}},
		Env:     []string{"LANG"}, Values: map[string]string{"LANG": "C"}, Credentials: []string{"token"}, Sources: map[string]string{"token": "env:1"},
		Limits: Limits{Memory: 100, Output: 100, Upload: 100, Download: 100, Tunnels: 100, TunnelsPerSecond: 100, NanoCPUs: 100, PIDs: 100, Timeout: time.Hour},
	}
}

// TestRules has every rule in both directions: what is more is told, and what is less is not.
func TestRules(t *testing.T) {
	type change func(*Set)
	for _, tt := range []struct {
		what       string
		more, less change
		back       bool // whether the way back from more is more as well: what has no order
		reason     string
	}{
		{"read", func(s *Set) { s.Read = append(s.Read, "/other") }, func(s *Set) { s.Read = nil }, false, "one directory more"},
		{"read", func(s *Set) { s.Read = []string{"/elsewhere"} }, func(s *Set) { s.Read = nil }, true, "another one in its place"},
		{"write", func(s *Set) { s.Read, s.Write = nil, []string{"/tree"} }, nil, false, "the same directory, writable: it was visible before"},
		{"reach", func(s *Set) { s.Reach = append(s.Reach, "b.example:443") }, func(s *Set) { s.Reach = nil }, false, "one host more"},
		{"reach", func(s *Set) { s.Reach = []string{"a.example:8443"} }, nil, true, "another port"},
		{"reach", func(s *Set) { s.Reach = []string{"a.example:443 at 10.0.0.1"} }, nil, true, "a fixed address that need not be public"},
		{"reach", func(s *Set) { s.Reach = []string{"a.example:443 without TLS"} }, nil, false, "the same host without TLS"},
		{"engine", func(s *Set) { s.Engine = "unix:///b.sock" }, func(s *Set) { s.Engine = "" }, true, "another engine; one that the source does not tell is judged by the rest"},
		{"git", func(s *Set) { s.Git = append(s.Git, "/other/.git") }, func(s *Set) { s.Git = nil }, false, "one more history"},
		{"dns", func(s *Set) { s.DNS = []string{"10.0.0.1"} }, func(s *Set) { s.DNS = nil }, true, "another name server"},
		{"vendor", func(s *Set) { s.Vendor = "codex" }, func(s *Set) { s.Vendor = "" }, true, "another vendor; one that the source does not tell is judged by the rest"},
		{"phase", func(s *Set) { s.Ceiling = append(s.Ceiling, "write") }, func(s *Set) { s.Ceiling = []string{"read"} }, false, "a higher ceiling"},
		{"tools", func(s *Set) { s.Tools = append(s.Tools, "write") }, func(s *Set) { s.Tools = []string{"list"} }, false, "one tool more"},
		{"tools", func(s *Set) { s.Tools = []string{"edit"} }, func(s *Set) { s.Tools = []string{} }, true, "another one in their place"},
		{"image", func(s *Set) { s.Image = "sha256:9" }, nil, true, "another image"},
		{"command", func(s *Set) { s.Command = []string{"claude", "--tools", "Read,Glob,Write"} }, func(s *Set) { s.Command = []string{"claude", "--tools", "Read"} }, false, "one tool more"},
		{"command", func(s *Set) { s.Command = []string{"claude", "--tools", ""} }, nil, true, "an empty list may mean all"},
		{"command", func(s *Set) { s.Command = []string{"sh", "--tools", "Read,Glob"} }, nil, true, "another program"},
		{"command", func(s *Set) { s.Command = []string{"claude", "--tools"} }, nil, true, "an argument less may be the one that forbids"},
		{"files", func(s *Set) { s.Files = append(s.Files, "/home/agent/y") }, func(s *Set) { s.Files = nil }, false, "one file more"},
		{"run", func(s *Set) { s.Runners = append(s.Runners, Runner{Name: "x"}) }, func(s *Set) { s.Runners = nil }, false, "one runner more"},
		{"run", func(s *Set) { s.Runners = []Runner{{"test", []string{"sh"}, "sha256:2", 0}} }, nil, true, "another command under the same name"},
		{"run", func(s *Set) { s.Runners = []Runner{{"test", []string{"npm", "test"}, "sha256:9", 0}} }, nil, true, "the same command in another image"},
		{"run", func(s *Set) { s.Runners[0].Timeout++ }, func(s *Set) { s.Runners[0].Timeout-- }, false, "the same command for longer"},
		{"user", func(s *Set) { s.User = "0:0" }, nil, true, "root"},
		{"environment", func(s *Set) { s.Env = append(s.Env, "DEBUG") }, func(s *Set) { s.Env = nil }, false, "one variable more"},
		{"environment", func(s *Set) { s.Values = map[string]string{"LANG": "evil"} }, nil, true, "the same variable with another value"},
		{"credentials", func(s *Set) { s.Credentials = append(s.Credentials, "key") }, func(s *Set) { s.Credentials = nil }, false, "one credential more"},
		{"credentials", func(s *Set) { s.Sources = map[string]string{"token": "env:2"} }, nil, true, "the same name from another source"},
		{"credentials", func(s *Set) { s.Sources = nil }, nil, true, "a source that nobody knows"},
		{"prompt", func(s *Set) { s.AnyPrompt = true }, nil, false, "the prompt is free now"},
		{"limits.memory", func(s *Set) { s.Limits.Memory++ }, func(s *Set) { s.Limits.Memory-- }, false, "memory"},
		{"limits.cpus", func(s *Set) { s.Limits.NanoCPUs++ }, func(s *Set) { s.Limits.NanoCPUs-- }, false, "cpus"},
		{"limits.pids", func(s *Set) { s.Limits.PIDs++ }, func(s *Set) { s.Limits.PIDs-- }, false, "pids"},
		{"limits.output", func(s *Set) { s.Limits.Output++ }, func(s *Set) { s.Limits.Output-- }, false, "output"},
		{"limits.upload", func(s *Set) { s.Limits.Upload++ }, func(s *Set) { s.Limits.Upload-- }, false, "upload"},
		{"limits.download", func(s *Set) { s.Limits.Download++ }, func(s *Set) { s.Limits.Download-- }, false, "download"},
		{"limits.download", func(s *Set) { s.Limits.Download = Unbounded }, nil, false, "no bound is more than any"},
		{"limits.tunnels", func(s *Set) { s.Limits.Tunnels++ }, func(s *Set) { s.Limits.Tunnels-- }, false, "connections at once"},
		{"limits.tunnels_per_second", func(s *Set) { s.Limits.TunnelsPerSecond++ }, func(s *Set) { s.Limits.TunnelsPerSecond-- }, false, "connections per second"},
		{"timeout", func(s *Set) { s.Limits.Timeout++ }, func(s *Set) { s.Limits.Timeout-- }, false, "time"},
	} {
		more := base()
		tt.more(&more)
		if got := Widened(base(), more); len(got) != 1 || got[0].What != tt.what || got[0].Because == "" {
			t.Errorf("%s: %+v, want one widening of %s with its cause", tt.reason, got, tt.what)
		}
		if got := Widened(more, base()); (len(got) > 0) != tt.back || tt.back && got[0].What != tt.what {
			t.Errorf("%s, and back: %+v, want a widening of %s: %v", tt.reason, got, tt.what, tt.back)
		}
		if tt.less == nil {
			continue
		}
		less := base()
		tt.less(&less)
		if got := Widened(base(), less); len(got) != 0 {
			t.Errorf("%s, in the other direction: %+v, want nothing", tt.reason, got)
		}
	}
	if got := Widened(base(), base()); len(got) != 0 {
		t.Errorf("the same set twice: %+v", got)
	}
}

// TestReach has what is more and what is less of one host.
func TestReach(t *testing.T) {
	for _, tt := range []struct {
		from, to   string
		more, back bool // whether to is more than from, and the other way round
		reason     string
	}{
		{"a.example:443", "a.example:443", false, false, "the same"},
		{"a.example:443 at 10.0.0.1", "a.example:443 at 10.0.0.1, 10.0.0.2", true, false, "one more fixed address"},
		{"a.example:443 at 10.0.0.1, 10.0.0.2", "a.example:443 at 10.0.0.2, 10.0.0.1", false, false, "the same in another order"},
		{"a.example:443 at 10.0.0.1", "a.example:443 at 10.0.0.2", true, true, "another fixed address"},
		{"a.example:443", "a.example:443 at 10.0.0.1", true, true, "a fixed address need not be public, and a name may stand for another address tomorrow"},
		{"a.example:443", "a.example:443 without TLS", true, false, "anything may be spoken"},
		{"a.example:80 at 10.0.0.1, 10.0.0.2", "a.example:80 at 10.0.0.1 without TLS", true, true, "fewer addresses make up for no TLS"},
		{"a.example:443", "b.example:443", true, true, "another host"},
		{"a.example:443", "a.example:444", true, true, "another port"},
		{"[fd00::1]:443 at fd00::1, fd00::2", "[fd00::1]:443 at fd00::2", false, true, "IPv6"},
		{`{"name":"a.example","new":1}`, `{"name":"a.example","new":2}`, true, true, "a form that nobody knows"},
		{`{"addresses":["10.0.0.1 at 10.0.0.2"]}`, `{"addresses":["10.0.0.1 at 10.0.0.2"]} without TLS`, true, true, "a form that looks like one that is known"},
	} {
		for _, d := range []struct {
			from, to string
			more     bool
		}{{tt.from, tt.to, tt.more}, {tt.to, tt.from, tt.back}} {
			if got := reach(Set{Reach: []string{d.from}}, Set{Reach: []string{d.to}}); (len(got) > 0) != d.more {
				t.Errorf("%s: from %q to %q: %v, want more: %v", tt.reason, d.from, d.to, got, d.more)
			}
		}
	}
}

// TestEveryPropertyHasARule: a rule without a row above would be one that nobody has seen work.
func TestEveryPropertyHasARule(t *testing.T) {
	full := base()
	full.AnyPrompt, full.Write = true, []string{"/tree"}
	told := map[string]bool{}
	nothing := Set{Engine: "other", Vendor: "other", Ceiling: []string{}, Tools: []string{}}
	for _, w := range Widened(nothing, full) {
		told[w.What] = true
	}
	for _, r := range rules {
		if !told[r.what] {
			t.Errorf("from nothing to everything, %s is not told", r.what)
		}
	}
}

func TestAgainst(t *testing.T) {
	renamed := base()
	renamed.Invocation = "invocation.b"
	wider := base()
	wider.Limits.PIDs++
	got := Against([]Set{base()}, []Set{wider, renamed})
	if got[0].New || len(got[0].Widened) != 1 || !got[1].New {
		t.Errorf("got %+v; want one widening, and a new invocation for the renamed one", got)
	}
	if !Wider(got[:1]) || !Wider(got[1:]) || Wider(Against([]Set{base()}, []Set{base()})) {
		t.Error("a widening and a new invocation are wider, and nothing else is")
	}
	if d := cmp.Diff(Widening{What: "limits.pids", From: "100", To: "101", Because: "it can use more of the host"}, got[0].Widened[0]); d != "" {
		t.Error(d)
	}
}

// TestNoBoundIsSaid: the number that stands for it would tell nobody anything.
func TestNoBoundIsSaid(t *testing.T) {
	open := base()
	open.Limits.Download = Unbounded
	if got := Widened(base(), open); len(got) != 1 || got[0].From != "100" || got[0].To != "no bound" {
		t.Errorf("got %+v", got)
	}
}
