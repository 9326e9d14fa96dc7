//go:build vendors

package vendors_test

import (
	"path/filepath"
	"strings"

	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/testfixtures/vendormock"
)

var codex = vendor{
	name:       "codex",
	credential: "Bearer " + openaiKey,
	host:       "api.openai.com",
	paths:      []string{"/v1/responses"},
	tools: func(writable bool) []string {
		if writable {
			return []string{"apply_patch", "list_dir", "read_file", "search"}
		}
		return []string{"list_dir", "read_file", "search"}
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
	calls := []call{
		{tool: "read_file", input: object{"path": "notes.txt"}, want: works, says: note},
		{tool: "read_file", input: object{"path": "/work/sub/more.txt", "limit": 1}, want: works, says: note},
		{tool: "list_dir", input: object{"path": "sub"}, want: works, says: "more.txt"},
		{tool: "search", input: object{"pattern": note, "path": "sub", "glob": "*.txt"}, want: works, says: "sub/more.txt:1:" + note},
	}
	for _, path := range []string{"/etc/passwd", "out-link", "out-dir/etc/passwd", "../etc/passwd", "up/etc/passwd", "/proc/self/environ",
		"/run/sandplan/prompt", "/home/agent/.codex/auth.json"} {
		calls = append(calls, call{tool: "read_file", input: object{"path": path}},
			call{tool: "search", input: object{"pattern": "root", "path": path}})
	}
	calls = append(calls, call{tool: "read_file", input: object{"path": "evil"}}, call{tool: "list_dir", input: object{"path": "/"}}, call{tool: "list_dir", input: object{"path": "out-dir"}})
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
		return call{tool: "apply_patch", input: "*** Begin Patch\n*** Add File: " + path + "\n+" + planted + "\n*** End Patch", target: filepath.Join(policy.Worktree, path)}
	}
	outside := func(path string) call {
		c := add(path)
		c.target = path
		return c
	}
	// What the agent's user may write and Codex would act on, in this run or through what it leaves.
	for _, path := range []string{"/home/agent/.codex/config.toml", "/home/agent/.codex/hooks.json", "/home/agent/.codex/AGENTS.md", "/home/agent/planted",
		"/tmp/planted", "/run/sandplan/planted", "/dev/shm/planted"} {
		calls = append(calls, outside(path))
	}
	calls = append(calls, call{tool: "apply_patch", input: "*** Begin Patch\n*** Delete File: /home/agent/.codex/config.toml\n*** End Patch"},
		// One path outside spoils a patch.
		call{tool: "apply_patch", input: "*** Begin Patch\n*** Add File: both.txt\n+" + planted + "\n*** Add File: /tmp/both\n+" + planted + "\n*** End Patch", target: "/tmp/both"},
		call{tool: "apply_patch", input: "*** Begin Patch\n*** Update File: sub/more.txt\n*** Move to: /tmp/moved\n@@\n-" + note + "\n+" + planted + "\n*** End Patch", target: "/tmp/moved"})
	// Moving a file with one more line is a patch that needs to know nothing of it.
	for _, path := range []string{"/home/agent/.codex/auth.json", "/run/sandplan/credentials/OPENAI_API_KEY"} {
		calls = append(calls, call{tool: "apply_patch", input: "*** Begin Patch\n*** Update File: " + path + "\n*** Move to: /work/leak\n@@\n+more\n*** End Patch"})
	}
	for _, path := range []string{".git/hooks/planted", ".git/planted", "out-dir/tmp/planted", "home/planted", "../tmp/planted",
		".codex/config.toml", ".codex/planted", ".claude/settings.json", ".mcp.json", "sub/.mcp.json", "sub/.git/hooks/planted", "new/.Claude/planted"} {
		calls = append(calls, add(path))
	}
	for _, path := range []string{"/usr/planted", "/.sandplan/planted", "/work/.git/planted"} {
		calls = append(calls, outside(path))
	}
	calls = append(calls, call{tool: "apply_patch", input: "*** Begin Patch\n*** Delete File: .git/HEAD\n*** End Patch"})
	inside := add("new.txt")
	edit := call{tool: "apply_patch", input: "*** Begin Patch\n*** Update File: notes.txt\n@@\n-" + note + "\n+" + note + " edited\n*** End Patch"}
	if writable {
		inside.want, inside.leaves, inside.says, inside.target = works, "new.txt", "A new.txt", ""
		edit.want, edit.leaves, edit.says = works, "notes.txt", "M notes.txt"
	}
	return append(calls, inside, edit)
}
