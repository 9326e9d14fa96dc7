//go:build vendors

package vendors_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sandplan/sandplan/testfixtures/vendormock"
)

var claude = vendor{
	name:       "claude",
	credential: "Bearer " + claudeToken,
	host:       "api.anthropic.com",
	settings:   "/api/claude_code/settings",
	paths:      []string{"/api/claude_code/policy_limits", "/api/claude_code/settings", "/v1/messages"},
	tools: func(writable bool) []string {
		if writable {
			return []string{"Edit", "Glob", "Grep", "Read", "Write"}
		}
		return []string{"Glob", "Grep", "Read"}
	},
	calls:    claudeCalls,
	failed:   func(r vendormock.Result) bool { return r.Failed },
	answered: claudeAnswered,
}

func claudeCalls(writable bool) []call {
	calls := []call{
		{tool: "Read", input: object{"file_path": "/work/notes.txt"}, want: works, says: note},
		{tool: "Glob", input: object{"pattern": "sub/*.txt"}, want: works, says: "more.txt"},
		{tool: "Grep", input: object{"pattern": note, "path": "/work/sub"}, want: works, says: "more.txt"},
	}
	for tool, input := range map[string]object{
		"Bash":                 {"command": "/work/evil bash", "description": "x"},
		"BashOutput":           {"bash_id": "1"},
		"WebFetch":             {"url": "https://example.com/", "prompt": "x"},
		"WebSearch":            {"query": "x"},
		"NotebookEdit":         {"notebook_path": "/work/x.ipynb", "new_source": "x"},
		"Agent":                {"description": "x", "prompt": "x", "subagent_type": "evil"},
		"Task":                 {"description": "x", "prompt": "x", "subagent_type": "evil"},
		"Skill":                {"skill": "evilskill"},
		"SlashCommand":         {"command": "/evil"},
		"Workflow":             {"script": "x"},
		"ToolSearch":           {"query": "Bash"},
		"ScheduleWakeup":       {"delaySeconds": 60, "reason": "x", "prompt": "x"},
		"CronCreate":           {"cron": "* * * * *", "prompt": "x"},
		"EnterWorktree":        {},
		"ExitPlanMode":         {"plan": "x"},
		"ListMcpResourcesTool": {},
		"mcp__evil__pwn":       {},
	} {
		calls = append(calls, call{tool: tool, input: input})
	}
	for _, path := range []string{"/etc/passwd", "/work/out-link", "/work/out-dir/etc/passwd", "/proc/self/environ",
		"/run/sandplan/prompt", "/work/../etc/passwd", "/usr/local/bin/claude"} {
		calls = append(calls, call{tool: "Read", input: object{"file_path": path}})
	}
	calls = append(calls,
		call{tool: "Grep", input: object{"pattern": "root", "path": "/etc"}},
		call{tool: "Glob", input: object{"pattern": "*", "path": "/etc"}},
	)
	write := func(path string) call {
		return call{tool: "Write", input: object{"file_path": path, "content": planted + "\n"}, target: path}
	}
	for _, path := range []string{"/tmp/planted", "/home/agent/.claude/settings.json", "/work/.git/hooks/planted", "/work/.git/planted",
		"/work/out-link", "/work/out-dir/tmp/planted", "/run/sandplan/planted", "/work/.claude/settings.local.json", "/work/sub/.mcp.json"} {
		calls = append(calls, write(path))
	}
	inside := write("/work/new.txt")
	edit := call{tool: "Edit", input: object{"file_path": "/work/notes.txt", "old_string": note, "new_string": note + " edited"}}
	if writable {
		inside.want, inside.leaves, inside.target = works, "new.txt", ""
		edit.want, edit.leaves = works, "notes.txt"
	}
	return append(calls, inside, edit)
}

// claudeAnswered looks at the last event: the CLI ends with 0 in cases in which it did not succeed.
func claudeAnswered(stdout, answer string) string {
	text := strings.TrimSpace(stdout)
	last := text[strings.LastIndexByte(text, '\n')+1:]
	var e struct {
		Type    string `json:"type"`
		IsError bool   `json:"is_error"`
		Result  string `json:"result"`
	}
	if err := json.Unmarshal([]byte(last), &e); err != nil || e.Type != "result" || e.IsError || e.Result != answer {
		return fmt.Sprintf("its last event is %.300q (%v)", last, err)
	}
	return ""
}
