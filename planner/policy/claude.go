package policy

import "strings"

// claudeTools are the names of Claude Code's tools. Its set is exact only with --tools, and only
// while tool search is off: else a placeholder for deferred tools is offered too (seen in 2.1.332).
var claudeTools = map[string]string{
	ToolRead:   "Read",
	ToolList:   "Glob",
	ToolSearch: "Grep",
	ToolEdit:   "Edit",
	ToolWrite:  "Write",
}

func claudeProfile() profile {
	return profile{
		hosts:       []string{AnthropicHost},
		credentials: []string{CredentialClaudeOAuth, CredentialClaudeKey},
		versions:    []string{"2.1.332"},
		envAllowed:  []string{"API_TIMEOUT_MS", "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "MAX_THINKING_TOKENS"},
		path:        "/usr/local/bin/claude",
		build:       buildClaude,
	}
}

// buildClaude is the command line that was proven on the wire. Three switches are needed where one
// seems enough: --tools limits the set, --restricted keeps reads within the worktree and stops `@`
// mentions, an empty --setting-sources keeps hooks, helpers and models of the worktree out.
// --allowedTools is no limit at all and --bare takes Grep and Glob away.
func buildClaude(a agent) (build, error) {
	if err := a.isFor(KindClaude); err != nil {
		return build{}, err
	}
	var names []string
	writes := false
	for _, t := range a.tools {
		names = append(names, claudeTools[t])
		writes = writes || t == ToolEdit || t == ToolWrite
	}
	argv := []string{
		"/usr/local/bin/claude", "-p",
		"--tools", strings.Join(names, ","),
		"--restricted",
		"--setting-sources=",
		"--strict-mcp-config", "--mcp-config", `{"mcpServers":{}}`,
		"--disable-slash-commands",
	}
	if writes {
		// dontAsk refuses every write; acceptEdits allows them in the worktree, except for settings, hooks of
		// git and MCP declarations, and asks nobody.
		argv = append(argv, "--permission-mode", "acceptEdits", "--permission-prompts", "none")
	} else {
		argv = append(argv, "--permission-mode", "dontAsk")
	}
	argv = append(argv, "--no-session-persistence", "--output-format", "stream-json", "--verbose")
	if a.model != "" {
		argv = append(argv, "--model", a.model)
	}
	return build{
		argv: argv,
		env: []Env{
			{"CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"},
			{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"},
			// Without a limit a refused network takes longer than 40 s to become an error.
			{"CLAUDE_CODE_MAX_RETRIES", "1"},
			{"DISABLE_AUTOUPDATER", "1"},
			{"ENABLE_TOOL_SEARCH", "false"},
		},
		// A prompt that begins with "/" or "!" would be a command of the CLI's own.
		preamble: "The task:\n\n",
		offered:  sorted(names),
		tools:    a.tools,
	}, nil
}

// claudeCredential: the shim sets the variable for the CLI's process alone, so that neither inspect
// nor another process of the container shows it.
func claudeCredential(name string) Credential { return Credential{Name: name, Env: name} }
