package machine

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// TestEveryLineIsDescribed: whatever the stream can say holds to the schema, one object a line.
func TestEveryLineIsDescribed(t *testing.T) {
	s := New("1.2.3", func() time.Time { return time.Unix(0, 0) })
	pl := examplePlan()
	mismatch := planner.Mismatch{Field: field("HostConfig.Memory", planner.JSON(1)), Want: planner.JSON(1), Got: planner.JSON(2)}
	findings := []planner.Finding{
		{Kind: planner.FindingDrift, Addr: inv.With("agent"), Mismatch: &mismatch},
		{Kind: planner.FindingDrift, Addr: inv.With("agent"), Extra: &planner.Extra{Path: "Networks.bridge", Detail: "attached\nto it"}},
		{Kind: planner.FindingPending, Addr: inv, Text: "is declared and not there yet"},
		{Kind: planner.FindingConflict, Addr: "sandplan.uplink", Text: "an object of somebody else"},
	}
	pl.Findings = findings
	created := applier.Event{Addr: inv.With("agent"), Kind: planner.KindAgent, Op: planner.OpCreate, ID: "0123456789abcdef", Elapsed: 1500 * time.Millisecond}
	event := func(typ applier.EventType, op planner.Op) applier.Event {
		e := created
		e.Type, e.Op = typ, op
		return e
	}
	decided := launch.Result{Code: 121, By: launch.BySandplan, RecordDir: "/r", Decision: &launch.Decision{Code: launch.CodeProof, Reason: "no\nproof", Err: errors.New("why"),
		Checks: []wire.Check{{Name: "net.direct", Detail: "answers\x1b[2J"}}}}
	var all strings.Builder
	for _, text := range []string{
		s.Hello(), s.Usage("no such command", "sandplan"), s.Waiting("the scope p/w", planner.LockInfo{Who: "a@b"}),
		s.Interrupted(1), s.Interrupted(2), s.RunInterrupted(1), s.RunInterrupted(2), s.Cancelled(pl), s.Gap(), s.Ignored(0), s.Ignored(2),
		s.Diagnostics(hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "e\x1b[31m"}, {Severity: hcl.DiagWarning, Summary: "w", Detail: "d"}}),
		s.Plan(pl, render.PlanView{}), s.Drift(pl.Scope, 4, findings, nil), s.Drift(pl.Scope, 4, nil, nil),
		s.Event(event(applier.EventStart, planner.OpCreate)), s.Event(event(applier.EventComplete, planner.OpDelete)),
		s.Event(event(applier.EventErrored, planner.OpRestore)), s.Still(event(applier.EventStart, planner.OpCreate), 10*time.Second),
		s.Applied(1, 2, 3), s.Destroyed(3), s.Outputs([]render.Output{{Name: "o", Value: cty.True}, {Name: "s", Sensitive: true, Value: cty.StringVal("hunter2")}}),
		s.RunEvent(launch.Event{Kind: launch.EventCompared, Addr: inv, N: 3}),
		s.RunEvent(launch.Event{Kind: launch.EventEgress, Addr: inv, Egress: &launch.Egress{Allowed: map[string]int64{"a:443": 1}}}),
		s.RunEvent(launch.Event{Kind: launch.EventRunning, Addr: inv, ID: "0123"}),
		s.Refusal(inv, findings), s.Stopped(inv, findings), s.Ended(inv, decided), s.Ended(inv, launch.Result{Code: 3, By: launch.ByAgent}),
		s.AgentOutput(inv, "stdout", []byte("a line\n")), s.AgentOutput(inv, "stderr", []byte{0xff, 0x00}),
	} {
		if text != "" && (!strings.HasSuffix(text, "\n") || strings.Contains(text, "\n\n")) {
			t.Errorf("not whole lines: %q", text)
		}
		all.WriteString(text)
	}
	text := all.String()
	valid(t, "events", text)
	for _, bad := range []string{"hunter2", "\x1b"} {
		if strings.Contains(text, bad) {
			t.Errorf("the stream holds %q", bad)
		}
	}
	for line := range strings.Lines(text) {
		var l struct {
			Message string `json:"@message"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || strings.ContainsAny(l.Message, "\x1b\n") || l.Message == "" {
			t.Errorf("the message of %s: %q, %v", line, l.Message, err)
		}
	}
}

// TestAgentOutputLosesNothing: what is no text comes back byte for byte.
func TestAgentOutputLosesNothing(t *testing.T) {
	s := New("1", func() time.Time { return time.Unix(0, 0) })
	for _, b := range [][]byte{[]byte("text <&>\n"), []byte("\x1b[31mred"), {0xff, 0xfe, '\n'}, []byte("é"), {}} {
		var l struct {
			Agent struct{ Output, Base64 *string }
		}
		if err := json.Unmarshal([]byte(s.AgentOutput(inv, "stdout", b)), &l); err != nil {
			t.Fatal(err)
		}
		got := ""
		switch {
		case l.Agent.Output != nil:
			got = *l.Agent.Output
		case l.Agent.Base64 != nil:
			raw, err := base64.StdEncoding.DecodeString(*l.Agent.Base64)
			if err != nil {
				t.Fatal(err)
			}
			got = string(raw)
		}
		if got != string(b) {
			t.Errorf("%q comes as %q", b, got)
		}
	}
}
