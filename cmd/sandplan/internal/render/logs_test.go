package render

import (
	"strings"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress"
	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// TestLogLine: every event says in one line what happened, to whom and why, whatever was chosen by the agent.
func TestLogLine(t *testing.T) {
	for _, tt := range []struct {
		e            egress.Entry
		want, reason string
	}{
		{egress.Entry{Event: egress.EventDecision, Host: "a.example", Port: 443, Address: "198.50.0.1:443", Decision: egress.Allow, Reason: reason.Allowed, SNI: "a.example"},
			"allow    a.example:443                      allowed at 198.50.0.1:443", "the name of the hello is said where it is another one"},
		{egress.Entry{Event: egress.EventDecision, Host: "a.example", Port: 443, Decision: egress.Refuse, Reason: reason.SNIDiffers, SNI: "evil.example"},
			"refuse   a.example:443                      sni_differs TLS name evil.example", "as it is here"},
		{egress.Entry{Event: egress.EventDecision, Host: "a.example", Port: 443, Decision: egress.Refuse, Reason: reason.SNIDiffers, SNI: "evil\x1b[2J.example\u202e"},
			`refuse   a.example:443                      sni_differs TLS name evil\x1b[2J.example\u202e`, "no name acts on the terminal"},
		{egress.Entry{Event: egress.EventDecision, Host: "a.example", Port: 443, Address: "10.0.0.1", Decision: egress.Refuse, Reason: reason.Private},
			"refuse   a.example:443                      address_private at 10.0.0.1", "the address that was refused"},
		{egress.Entry{Event: egress.EventDecision, Decision: egress.Refuse, Reason: reason.NotHTTP},
			"refuse                                      not_http", "no target at all"},
		{egress.Entry{Event: egress.EventDecision, Host: "a.example", Port: 443, Decision: egress.Refuse, Reason: reason.LookupFailed, Error: "no\nanswer"},
			`refuse   a.example:443                      lookup_failed (no\nanswer)`, "what the system said"},
		{egress.Entry{Event: egress.EventUnlisted, Decision: egress.Refuse, Reason: reason.HostNotDeclared, Count: 9},
			"+9                                          host_not_declared, 9 refusals not listed, too many kinds at once", "what found no line of its own"},
		{egress.Entry{Event: egress.EventRepeated, Host: "evil.example", Port: 443, Decision: egress.Refuse, Reason: reason.HostNotDeclared, Count: 12},
			"+12      evil.example:443                   host_not_declared, 12 refusals like an earlier one", "what was counted"},
		{egress.Entry{Event: egress.EventRepeated, Host: "evil.example", Port: 443, Decision: egress.Refuse, Reason: reason.HostNotDeclared, Count: 1},
			"+1       evil.example:443                   host_not_declared, 1 refusal like an earlier one", "a single one"},
		{egress.Entry{Event: egress.EventRepeated, Host: "a.example", Port: 443, Address: "10.0.0.2", Decision: egress.Refuse, Reason: reason.Private, SNI: "b.example", Count: 2},
			"+2       a.example:443                      address_private, 2 refusals like an earlier one at 10.0.0.2 TLS name b.example", "what they had in common"},
		{egress.Entry{Event: egress.EventClosed, Host: "a.example", Port: 443, Reason: reason.Closed, Up: 5, Down: 7, DurationMS: 61000},
			"closed   a.example:443                      closed after 1m1s, 5 bytes up, 7 down", "the end of a tunnel"},
		{egress.Entry{Event: egress.EventLimit, Reason: reason.UploadLimit},
			"limit                                       the bytes that this run may upload are used up", "why the run ends"},
		{egress.Entry{Event: egress.EventLimit, Reason: reason.LogLimit},
			"limit                                       the log is full, and nothing happens unlogged", "the same"},
		{egress.Entry{Event: egress.EventTrouble, Error: "too many open files"},
			"trouble                                     (too many open files)", "the proxy itself lacks something"},
		{egress.Entry{Event: egress.EventEnd, Up: 5, Down: 7, Error: "asked to stop",
			Counts: map[reason.Reason]int64{reason.Allowed: 3, reason.Unused: 1, reason.TooManyTunnels: 2, reason.HostNotDeclared: 13}},
			"end                                         5 bytes up, 7 down, 13 host_not_declared, 2 too_many_tunnels (asked to stop)", "the counts, sorted, without what was let through"},
	} {
		tt.e.Seq, tt.e.Time = 7, "2026-01-02T04:04:05.006+01:00"
		if got, want := (&Renderer{}).LogLine(tt.e), "03:04:05.006     7  "+tt.want+"\n"; got != want {
			t.Errorf("%s:\n%qwant\n%q", tt.reason, got, want)
		}
	}
}

// TestLogHeading: the columns of the heading are those of the lines.
func TestLogHeading(t *testing.T) {
	heading := strings.Split((&Renderer{}).LogHeading("20260102T030405Z-5f0c2a91"), "\n")
	line := (&Renderer{}).LogLine(egress.Entry{Seq: 12345, Time: "2026-01-02T03:04:05Z", Event: egress.EventLimit, Host: "a.example", Port: 443, Reason: reason.LogLimit})
	if len(heading) != 3 || heading[0] != "run 20260102T030405Z-5f0c2a91" {
		t.Fatalf("%q", heading)
	}
	for column, cell := range map[string]string{"TIME (UTC)": "03:04:05.000", "WHAT": "limit", "HOST:PORT": "a.example:443", "WHY": "the log is full"} {
		if at := strings.Index(heading[1], column); at < 0 || at != strings.Index(line, cell) {
			t.Errorf("%s stands at %d, %q at %d", column, at, cell, strings.Index(line, cell))
		}
	}
}
