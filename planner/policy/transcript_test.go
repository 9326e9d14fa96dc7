package policy

import (
	"strings"
	"testing"
)

func sealed(t *testing.T, kind, phase string) Command {
	t.Helper()
	c, err := Seal(fullSpec(), "invocation."+kind+"_"+phase)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The events of Claude Code 2.1.332, shortened.
const (
	initReview  = `{"type":"system","subtype":"init","cwd":"/work","tools":["Glob","Grep","Read"],"mcp_servers":[],"permissionMode":"dontAsk","slash_commands":[],"skills":[],"plugins":[{"name":"cc-plugin-privacy","path":"builtin"}],"claude_code_version":"2.1.332"}` + "\n"
	saysHello   = `{"type":"assistant","message":{"content":[{"type":"text","text":"hello"}]}}` + "\n"
	resultGood  = `{"type":"result","subtype":"success","is_error":false,"result":"done","terminal_reason":"completed"}` + "\n"
	resultError = `{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"Failed to authenticate","terminal_reason":"api_error"}` + "\n"
	resultStop  = `{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming"}` + "\n"
)

func TestTranscript(t *testing.T) {
	for _, c := range []struct {
		reason, kind, text string
		why, failure       string // a part of each; "" is nothing
	}{
		{"all is well", KindClaude, initReview + saysHello + resultGood, "", ""},
		{"the order of the tools says nothing", KindClaude, strings.Replace(initReview, `"Glob","Grep","Read"`, `"Read","Glob","Grep"`, 1) + resultGood, "", ""},
		{"one tool more", KindClaude, strings.Replace(initReview, `"Read"`, `"Read","Bash"`, 1) + resultGood, "Bash, Glob, Grep, Read; phase.review allows Glob, Grep, Read", ""},
		{"one tool less: the CLI does not do what its flags say", KindClaude, strings.Replace(initReview, `,"Read"`, "", 1) + resultGood, "gives its model the tools Glob, Grep;", ""},
		{"an MCP server", KindClaude, strings.Replace(initReview, `"mcp_servers":[]`, `"mcp_servers":[{"name":"evil","status":"failed"}]`, 1) + resultGood, "MCP server evil", ""},
		{"a slash command", KindClaude, strings.Replace(initReview, `"slash_commands":[]`, `"slash_commands":["deploy"]`, 1) + resultGood, "skills deploy", ""},
		{"a skill", KindClaude, strings.Replace(initReview, `"skills":[]`, `"skills":["evil"]`, 1) + resultGood, "skills evil", ""},
		{"a plugin of somebody's", KindClaude, strings.Replace(initReview, `"path":"builtin"`, `"path":"/work/plugin"`, 1) + resultGood, "plugin cc-plugin-privacy", ""},
		{"leave for everything", KindClaude, strings.Replace(initReview, "dontAsk", "bypassPermissions", 1) + resultGood, `"bypassPermissions"; phase.review has dontAsk`, ""},
		{"tools in a form that nobody knows", KindClaude, strings.Replace(initReview, `["Glob","Grep","Read"]`, `[{"name":"Bash"}]`, 1) + saysHello + resultGood, "did not say which tools", ""},
		{"a good end and nothing before", KindClaude, resultGood, "did not say which tools", ""},
		{"a bad end and nothing before", KindClaude, resultError, "", "Failed to authenticate"},
		{"another version", KindClaude, strings.Replace(initReview, "2.1.332", "2.1.999", 1) + resultGood, `"2.1.999"`, ""},
		{"no event that says which tools", KindClaude, saysHello + resultGood, "did not say which tools", ""},
		{"an API error is called success", KindClaude, initReview + resultError, "", "Failed to authenticate"},
		{"interrupted, which ends with 0", KindClaude, initReview + resultStop, "", "aborted_streaming"},
		{"no last word", KindClaude, initReview + saysHello, "", "without saying"},
		{"nothing at all", KindClaude, "", "", "without saying"},
		{"what is no JSON is nobody's event", KindClaude, "Warning: {\n" + initReview + resultGood, "", ""},
		{"a last word that is no whole line", KindClaude, initReview + strings.TrimSpace(resultGood), "", "without saying"},
		{"codex did it", KindCodex, `{"type":"thread.started"}` + "\n" + `{"type":"turn.completed","usage":{}}` + "\n", "", ""},
		{"codex could not", KindCodex, `{"type":"turn.failed","error":{"message":"stream disconnected"}}` + "\n", "", "stream disconnected"},
		{"a vendor's words stay on one line", KindCodex, `{"type":"turn.failed","error":{"message":"a\nsandplan: b\u001b[2J"}}` + "\n", "", "a sandplan: b [2J"},
		{"codex says nothing", KindCodex, `{"type":"turn.started"}` + "\n", "", "without saying"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			tr := sealed(t, c.kind, "review").Transcript()
			for i := range len(c.text) { // byte by byte: lines come in any pieces
				if n, err := tr.Write([]byte(c.text[i : i+1])); n != 1 || err != nil {
					t.Fatal(n, err)
				}
			}
			if why := tr.Why(); !strings.Contains(why, c.why) || (c.why == "") != (why == "") {
				t.Errorf("contradiction %q, want %q in it", why, c.why)
			}
			select {
			case <-tr.Wrong():
				if c.why == "" {
					t.Error("it says that something is wrong")
				}
			default:
				if c.why != "" {
					t.Error("it does not say that something is wrong")
				}
			}
			if f := tr.Failure(); !strings.Contains(f, c.failure) || (c.failure == "") != (f == "") {
				t.Errorf("failure %q, want %q in it", f, c.failure)
			}
		})
	}
}

func TestTranscriptOfTheUsersOwnCommands(t *testing.T) {
	c := sealed(t, "local", "fix")
	tr := c.Transcript()
	if n, err := tr.Write([]byte(resultError)); n != len(resultError) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if tr != nil || tr.Why() != "" || tr.Failure() != "" || tr.Wrong() != nil {
		t.Error("sandplan knows the events of a command of the user's")
	}
}

func TestTranscriptIsBounded(t *testing.T) {
	tr := sealed(t, KindClaude, "review").Transcript()
	block := []byte(strings.Repeat("x", 1<<20))
	for range 20 {
		_, _ = tr.Write(block)
	}
	if len(tr.line) > 0 || cap(tr.line) > 2*maxLine {
		t.Errorf("a line without an end takes %d bytes", cap(tr.line))
	}
	_, _ = tr.Write([]byte("\n" + initReview + resultGood))
	if tr.Why() != "" || tr.Failure() != "" {
		t.Errorf("after it: %q, %q", tr.Why(), tr.Failure())
	}
}
