package vendors_test

import (
	"strings"

	"github.com/sandplan/sandplan/testfixtures/vendormock"
)

var codex = vendor{
	name:       "codex",
	credential: "Bearer " + openaiKey,
	host:       "api.openai.com",
	tools: func(writable bool) []string {
		if writable {
			return []string{"apply_patch"}
		}
		return []string{}
	},
	calls:  codexCalls,
	failed: codexFailed,
	answered: func(stdout, answer string) string {
		if !strings.Contains(stdout, `"text":"`+answer+`"`) || !strings.Contains(stdout, `"type":"turn.completed"`) {
			return "its events hold no answer, or no end of the turn"
		}
		return ""
	},
}

var vendors = []vendor{claude, codex}

func codexFailed(r vendormock.Result) bool {
	for _, word := range []string{"unsupported", "rejected", "Failed", "failed", "error", "not found", "denied"} {
		if strings.Contains(r.Text, word) {
			return true
		}
	}
	return false
}

func codexCalls(writable bool) []call {
	var calls []call
	for tool, input := range map[string]any{
		"shell":                object{"command": []string{"/work/evil", "shell"}},
		"local_shell":          object{"command": []string{"/work/evil", "shell"}},
		"exec_command":         object{"cmd": "/work/evil exec"},
		"write_stdin":          object{"session_id": 1, "chars": "x"},
		"exec":                 "tools.exec_command({cmd: '/work/evil code'})",
		"view_image":           object{"path": "/work/out-link"},
		"web_search":           object{"query": "x"},
		"update_goal":          object{"status": "complete"},
		"spawn_agent":          object{"message": "x"},
		"request_user_input":   object{"questions": []any{}},
		"tool_search":          object{"query": "x"},
		"mcp__evil__pwn":       object{},
		"list_mcp_resources":   object{},
		"read_mcp_resource":    object{"server": "evil", "uri": "x"},
		"send_message_to_user": object{"message": "x"},
	} {
		calls = append(calls, call{tool: tool, input: input})
	}
	add := func(path string) call {
		return call{tool: "apply_patch", input: "*** Begin Patch\n*** Add File: " + path + "\n+written by the agent\n*** End Patch"}
	}
	for _, path := range []string{".git/hooks/planted", ".git/planted", "/work/.git/planted", "out-dir/etc/planted", "../planted", "/usr/planted", "/.sandplan/planted"} {
		calls = append(calls, add(path))
	}
	calls = append(calls, call{tool: "apply_patch", input: "*** Begin Patch\n*** Delete File: .git/HEAD\n*** End Patch"})
	inside := add("new.txt")
	edit := call{tool: "apply_patch", input: "*** Begin Patch\n*** Update File: notes.txt\n@@\n-" + note + "\n+" + note + " edited\n*** End Patch"}
	if writable {
		inside.want, inside.leaves, inside.says = works, "new.txt", "A new.txt"
		edit.want, edit.leaves, edit.says = works, "notes.txt", "M notes.txt"
	}
	return append(calls, inside, edit)
}
