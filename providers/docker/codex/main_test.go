package codex

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner/policy"
)

const playVariable = "CODEX_TEST_PLAY"

// TestMain: started with the variable, this binary is the app server.
func TestMain(m *testing.M) {
	if play := os.Getenv(playVariable); play != "" {
		appServer(play, bufio.NewScanner(os.Stdin), os.Stdout)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// appServer says what Codex 0.171.0 was seen to say, and what it should not.
func appServer(play string, in *bufio.Scanner, out io.Writer) {
	say := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	version, model, sources, approval := "0.171.0", "gpt-5.5", "[]", ""
	switch play {
	case "other version":
		version = "0.172.0"
	case "other model":
		model = "evil"
	case "instructions":
		sources = `["/work/AGENTS.md"]`
	case "other approval":
		approval = "never"
	}
	for in.Scan() {
		var m message
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			panic(err)
		}
		switch m.Method {
		case "initialize":
			say(`{"method":"configWarning","params":{}}`)
			say(`{"id":%s,"result":{"userAgent":"sandplan/%s (Debian) x"}}`, m.ID, version)
		case "thread/start":
			if play == "no thread" {
				say(`{"id":%s,"error":{"code":-32600,"message":"invalid sandbox"}}`, m.ID)
				continue
			}
			var p struct{ ApprovalPolicy, Sandbox string }
			if err := json.Unmarshal(m.Params, &p); err != nil {
				panic(err)
			}
			say(`{"id":%s,"result":{"thread":{"id":"t-1"},"model":%q,"instructionSources":%s,"approvalPolicy":%q,"sandbox":{"type":%q}}}`,
				m.ID, model, sources, cmp.Or(approval, p.ApprovalPolicy), map[string]string{"read-only": "readOnly", "danger-full-access": "dangerFullAccess"}[p.Sandbox])
		case "turn/start":
			say(`{"id":%s,"result":{"turn":{"id":"u-1"}}}`, m.ID)
			playTurn(play, string(m.Params), say)
		case "":
			if play != "tool" && play != "other tool" && play != "approval" && !strings.HasPrefix(play, "patch") {
				continue
			}
			raw, _ := json.Marshal(string(in.Bytes()))
			say(`{"method":"item/completed","params":{"item":{"type":"agentMessage","id":"i","text":%s}}}`, raw)
			for _, line := range afterAsking(play) {
				say("%s", line)
			}
			say(`{"method":"turn/completed","params":{"turn":{"status":"completed"}}}`)
		}
	}
}

// patchLines are what is said of a patch up to the question, and after its answer.
func patchLines(play string) (before, after []string) {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	before = patchPlays()[play]
	for i, line := range before {
		before[i] = strings.ReplaceAll(line, "$DIR", dir)
	}
	if i := slices.IndexFunc(before, func(l string) bool { return strings.Contains(l, "requestApproval") }); i >= 0 {
		return before[:i+1], before[i+1:]
	}
	return before, nil
}

func afterAsking(play string) []string {
	_, after := patchLines(play)
	return after
}

// patience is that of the driver with a vendor out of reach.
const patience = 2 * time.Second

func playTurn(play, params string, say func(string, ...any)) {
	if before, _ := patchLines(play); before != nil {
		for _, line := range before {
			say("%s", line)
		}
		return
	}
	switch play {
	case "tool":
		say(`{"id":7,"method":"item/tool/call","params":{"tool":"read_file","arguments":{"path":"a.txt"},"callId":"c","threadId":"t-1","turnId":"u-1"}}`)
	case "other tool":
		say(`{"id":7,"method":"item/tool/call","params":{"tool":"search","arguments":{"pattern":"x"},"callId":"c","threadId":"t-1","turnId":"u-1"}}`)
	case "approval":
		say(`{"id":7,"method":"item/commandExecution/requestApproval","params":{"command":"rm -rf /"}}`)
	case "failed":
		say(`{"method":"turn/completed","params":{"turn":{"status":"failed","error":{"message":"401 Unauthorized","additionalDetails":null}}}}`)
	case "away":
		say(`{"method":"error","params":{"error":{"message":"Reconnecting... 1/5","additionalDetails":"no route"},"willRetry":true}}`)
	case "back again":
		// In one piece: nothing comes between the two however busy the machine is.
		say("%s\n%s", `{"method":"error","params":{"error":{"message":"Reconnecting... 1/5"},"willRetry":true}}`,
			`{"method":"item/completed","params":{"item":{"type":"reasoning","id":"r"}}}`)
		time.Sleep(patience + patience/2)
		say(`{"method":"turn/completed","params":{"turn":{"status":"completed"}}}`)
	case "dies":
		os.Exit(3)
	case "noise":
		say(`this is no message`)
	default:
		say(`{"method":"item/completed","params":{"item":{"type":"userMessage","id":"p","text":"the prompt"}}}`)
		raw, _ := json.Marshal("hello " + params)
		say(`{"method":"item/completed","params":{"item":{"type":"agentMessage","id":"i","text":%s}}}`, raw)
		say(`{"method":"thread/tokenUsage/updated","params":{"tokenUsage":{"total":{"totalTokens":15}}}}`)
		say(`{"method":"turn/completed","params":{"turn":{"status":"completed","error":null}}}`)
	}
}

func TestTurn(t *testing.T) {
	for _, c := range []struct {
		play, reason string
		code         int
		says         []string // all of them on standard output
		never        string
	}{
		{"well", "an answer and its usage", 0, []string{`"type":"agent_message"`, "hello", "do it", `"type":"turn.completed","usage":{"total":{"totalTokens":15}}`}, "the prompt"},
		{"tool", "our tool answers", 0, []string{`\"success\":true`, `inside`, `"type":"turn.completed"`}, "turn.failed"},
		{"other tool", "a tool that was not offered", 0, []string{`\"success\":false`, "unsupported call: search"}, "turn.failed"},
		{"approval", "nobody approves of anything", 0, []string{"not in this sandbox", "item/commandExecution/requestApproval"}, "turn.failed"},
		{"failed", "the exit code says it", 1, []string{`"type":"turn.failed"`, "401 Unauthorized"}, "turn.completed"},
		{"away", "a vendor out of reach is not waited for", 1, []string{"out of reach: Reconnecting... 1/5: no route"}, "turn.completed"},
		{"back again", "once something comes, time does not count any more", 0, []string{`"type":"turn.completed"`}, "turn.failed"},
		{"dies", "no last word of its own", 1, []string{"ended before its turn did"}, "turn.completed"},
		{"noise", "what it says must be messages", 1, []string{"no message"}, "turn.completed"},
		{"no thread", "a sandbox that the requirements forbid", 1, []string{"invalid sandbox"}, "turn.completed"},
		{"other version", "the flags are known for one version", 1, []string{"0.172.0", "made for version 0.171.0"}, "hello"},
		{"other model", "the worktree must not choose", 1, []string{"model \\\"evil\\\""}, "hello"},
		{"other approval", "nobody would ask", 1, []string{"approval policy \\\"never\\\""}, "hello"},
		{"instructions", "no file of the worktree may instruct", 1, []string{"AGENTS.md"}, "hello"},
	} {
		t.Run(c.play, func(t *testing.T) {
			t.Setenv(playVariable, c.play)
			stdout, stderr, code := drivenBy(t, "read_file")
			if code != c.code {
				t.Errorf("%s: exit code %d, want %d\n%s\n%s", c.reason, code, c.code, stdout, stderr)
			}
			for _, word := range c.says {
				if !strings.Contains(stdout, word) {
					t.Errorf("%s: no %q in\n%s\n%s", c.reason, word, stdout, stderr)
				}
			}
			if strings.Contains(stdout, c.never) {
				t.Errorf("%s: %q in\n%s", c.reason, c.never, stdout)
			}
			for line := range strings.Lines(stdout) {
				if !json.Valid([]byte(line)) {
					t.Errorf("a line that is no JSON: %s", line)
				}
			}
		})
	}
}

func drivenBy(t *testing.T, tools ...string) (stdout, stderr string, code int) {
	t.Helper()
	return drivenWith(t, "untrusted", "danger-full-access", tools...)
}

// drivenWith runs the program with this test binary as the app server.
func drivenWith(t *testing.T, approval, sandbox string, tools ...string) (stdout, stderr string, code int) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("inside"), 0o644); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "auth.json")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	arg, err := json.Marshal(policy.CodexServer{
		Wipe: []string{secret, "/nowhere/auth.json"},
		Argv: []string{os.Args[0]}, Version: "0.171.0", Dir: dir, Model: "gpt-5.5", Sandbox: sandbox, Approval: approval,
		Protected: []string{".git"}, Tools: tools, PatienceMS: patience.Milliseconds(),
	})
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code = Main([]string{string(arg)}, strings.NewReader("do it"), &out, &errs)
	if _, err := os.Stat(secret); err == nil && strings.Contains(out.String(), "turn.started") {
		t.Error("the credential was still there when the turn began")
	}
	return out.String(), errs.String(), code
}

func TestArgument(t *testing.T) {
	for _, args := range [][]string{nil, {"a", "b"}, {"{"}, {"{}"}, {`{"argv":["/x"],"dir":"/","model":"m","patience_ms":1,"shell":true}`}} {
		var errs bytes.Buffer
		if code := Main(args, strings.NewReader(""), io.Discard, &errs); code != exitUsage || errs.Len() == 0 {
			t.Errorf("%q: exit code %d, %q", args, code, errs.String())
		}
	}
}

func TestToolSpecsAreThoseThatAreAnswered(t *testing.T) {
	all := toolSpecs([]string{"read_file", "list_dir", "search", "shell"})
	if len(all) != 3 {
		t.Fatalf("%d tools are offered", len(all))
	}
	raw, err := json.Marshal(all)
	if err != nil || strings.Contains(string(raw), "null") {
		t.Errorf("%s, %v", raw, err)
	}
}
