package launch

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner/policy"
)

// claudeCommand is the sealed command of a Claude Code that may read.
func claudeCommand(t *testing.T) policy.Command {
	t.Helper()
	val := func(s string) hclspec.Val[string] { return hclspec.Val[string]{V: s} }
	tls, port := hclspec.Val[bool]{V: true}, hclspec.Val[int]{V: 443}
	c, err := policy.Seal(&hclspec.Spec{
		Vendors: []hclspec.Vendor{{Name: "claude", Kind: val("claude"), Image: val("i:1"),
			Hosts: []hclspec.Host{{Name: policy.AnthropicHost, Port: port, TLS: tls}}}},
		Phases:      []hclspec.Phase{{Name: "review", Base: val("review")}},
		Invocations: []hclspec.Invocation{{Address: "invocation.a", Name: "a", Vendor: val("claude"), Phase: val("review")}},
	}, "invocation.a")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestOwnEnd: the exit code is the CLI's own unless its last event tells another story.
func TestOwnEnd(t *testing.T) {
	const says = `{"type":"system","subtype":"init","tools":["Glob","Grep","Read"],"mcp_servers":[],"permissionMode":"dontAsk","claude_code_version":"2.1.332"}` + "\n"
	for _, c := range []struct {
		reason, output string
		ended          int
		code           int
		by, told       string
	}{
		{"it says that all is well", says + `{"type":"result","is_error":false,"result":"ok"}` + "\n", 0, 0, ByAgent, ""},
		{"it ends with 0 after an interrupt", says + `{"type":"result","is_error":true,"terminal_reason":"aborted_streaming"}` + "\n", 0, 1, ByAgent, "aborted_streaming"},
		{"it ends with 0 and says nothing", says, 0, 1, ByAgent, "without saying"},
		{"its own code stands when it is no success", says, 7, 7, ByAgent, ""},
		{"it gives its model more", strings.Replace(says, "Read", "Read\",\"Bash", 1), 0, int(CodeDrift), BySandplan, "phase.review allows"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			r := &run{Params: Params{Now: time.Now, Stdout: io.Discard}, record: &record{}, output: newBound(1 << 20)}
			r.transcript = claudeCommand(t).Transcript()
			_, _ = r.outputTo().Write([]byte(c.output))
			r.ownEnd(c.ended)
			told := r.record.Exit.Reason
			if d := r.decision; d != nil {
				r.result.By, r.result.Code, told = BySandplan, int(d.Code), d.Error()
			}
			if r.result.Code != c.code || r.result.By != c.by || !strings.Contains(told, c.told) || (c.told == "") != (told == "") {
				t.Errorf("%s ends with %d: %q; want %s, %d: %q", r.result.By, r.result.Code, told, c.by, c.code, c.told)
			}
		})
	}
}
