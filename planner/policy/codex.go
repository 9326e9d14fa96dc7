package policy

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

const (
	codexHome         = Home + "/.codex"
	codexConfig       = codexHome + "/config.toml"
	codexAuth         = codexHome + "/auth.json"
	codexRequirements = "/etc/codex/requirements.toml"
	codexCatalogue    = RunDir + "/codex-models.json"
)

// codexModels are the models that may be named, with their context windows. The first is the default:
// it is the one that speaks the plain Responses API by itself.
var codexModels = []struct {
	name    string
	context int
}{
	{"gpt-5.5", 272000},
	{"gpt-5.6-luna", 272000},
	{"gpt-5.6-sol", 272000},
	{"gpt-5.6-terra", 272000},
	{"gpt-6-astra", 272000},
	{"gpt-6-luna", 272000},
	{"gpt-6-sol", 272000},
	{"gpt-6.1-sol", 500000},
	{"gpt-6.1-terra", 500000},
	{"gpt-6.2-astra", 272000},
	{"gpt-6.2-sol", 500000},
}

const (
	codexPath  = "/usr/local/bin/codex"
	codexPatch = "apply_patch"
)

// codexTools are the names of the tools: those that look are sandplan's own, and one of Codex changes
// files.
var codexTools = map[string]string{
	ToolRead:   "read_file",
	ToolList:   "list_dir",
	ToolSearch: "search",
	ToolEdit:   codexPatch,
	ToolWrite:  codexPatch,
}

// codexFeatures are switched off twice: on the command line, and in the requirements file, which wins
// over the command line, the user's configuration and the worktree's.
var codexFeatures = []string{
	"apps", "goals", "hooks", "image_generation", "multi_agent", "plugins", "shell_tool", "skill_search",
	"sleep_tool", "tool_suggest", "unbounded_connection_retries", "unified_exec", "view_image",
}

func codexProfile() profile {
	var models []string
	for _, m := range codexModels {
		models = append(models, m.name)
	}
	return profile{
		hosts:       []string{OpenAIHost, ChatGPTHost},
		credentials: []string{CredentialOpenAIKey, CredentialCodexAuth},
		versions:    []string{"0.171.0"},
		models:      models,
		path:        codexPath,
		build:       buildCodex,
	}
}

// buildCodex is the command line that was proven on the wire: Codex's app server, driven by a program of
// sandplan's beside it, because without a shell Codex has no tool that reads, and takes those of its
// client (seen in 0.171.0). Which tools Codex offers is decided by
// its model catalogue more than by its flags: without a catalogue of ours it fetches one from the
// vendor, and newer models then bring a JavaScript tool that reaches all the others.
func buildCodex(a agent) (build, error) {
	if err := a.isFor(KindCodex); err != nil {
		return build{}, err
	}
	model := a.model
	if model == "" {
		model = codexModels[0].name
	}
	patch := writesWith(a.tools)
	argv := []string{codexPath, "app-server"}
	for _, f := range codexFeatures {
		argv = append(argv, "--disable", f)
	}
	for _, c := range []string{
		"web_search=disabled",
		"agents.enabled=false",
		"tools.experimental_request_user_input.enabled=false",
		"analytics.enabled=false",
		"check_for_update_on_startup=false",
		// Memory files and skills of an untrusted worktree still enter the prompt unless these two say no.
		"project_doc_max_bytes=0",
		"skills.include_instructions=false",
		"model_catalog_json=" + codexCatalogue,
	} {
		argv = append(argv, "-c", c)
	}
	// Codex's own sandbox cannot start without user namespaces, and then fails every write while it
	// exits with 0. So patches are applied without it, and Codex asks for each of them (seen in 0.171.0:
	// "untrusted" asks whatever the sandbox): the program beside it agrees to those of the worktree alone.
	sandbox, approval := "read-only", "never"
	if patch {
		sandbox, approval = "danger-full-access", "untrusted"
	}
	server := CodexServer{Argv: argv, Version: a.version, Dir: Worktree, Model: model, Sandbox: sandbox, Approval: approval,
		Protected: codexProtected(), Tools: []string{}, Wipe: []string{codexAuth}, PatienceMS: 15_000}
	var own []string // tools of Codex itself
	for _, t := range a.tools {
		if name := codexTools[t]; name == codexPatch {
			own = []string{codexPatch}
		} else {
			server.Tools = append(server.Tools, name)
		}
	}
	return build{
		argv: server.argv(),
		env:  []Env{{"CODEX_HOME", codexHome}},
		files: []File{
			{Path: codexRequirements, Mode: 0o444, Content: codexRequirementsFile(sandbox, approval)},
			// On the command line this has no effect; and where it is not said, the app server itself trusts a
			// project that may be written, with its model, instructions and MCP servers (seen in 0.171.0).
			{Path: codexConfig, Mode: 0o444, Content: fmt.Appendf(nil, "[projects.%q]\ntrust_level = \"untrusted\"\n", Worktree)},
			{Path: codexCatalogue, Mode: 0o444, Content: codexCatalogueFile(model, patch)},
		},
		preamble: "The task:\n\n",
		tools:    a.tools,
		offered:  sorted(append(own, server.Tools...)),
	}, nil
}

// writesWith: the one tool for changing files both edits and writes; checkVendorTools refuses a phase
// that has only one of the two.
func writesWith(tools []string) bool {
	for _, t := range tools {
		if t == ToolEdit || t == ToolWrite {
			return true
		}
	}
	return false
}

// codexProtected are names on which git and the CLIs of agents act on the user's own machine. Claude Code
// refuses to write them by itself.
func codexProtected() []string { return []string{".claude", ".codex", ".git", ".mcp.json"} }

// codexRequirementsFile: an empty [mcp_servers] means that none is allowed.
func codexRequirementsFile(sandbox, approval string) []byte {
	modes := `"read-only"` // Codex wants this one among them
	if sandbox != "read-only" {
		modes += ", " + strconv.Quote(sandbox)
	}
	var b strings.Builder
	b.WriteString("allowed_approval_policies = [" + strconv.Quote(approval) + "]\n" +
		"allowed_sandbox_modes = [" + modes + "]\n" +
		"allowed_web_search_modes = []\n" +
		"allow_managed_hooks_only = true\n\n[features]\n")
	features := sorted(codexFeatures)
	sort.Strings(features)
	for _, f := range features {
		fmt.Fprintf(&b, "%s = false\n", f)
	}
	b.WriteString("\n[mcp_servers]\n")
	return []byte(b.String())
}

// codexCatalogueFile is a catalogue of one model that may do nothing but answer, and patch files
// where patch says so. With it Codex asks the vendor for no other.
func codexCatalogueFile(model string, patch bool) []byte {
	window := codexModels[0].context
	for _, m := range codexModels {
		if m.name == model {
			window = m.context
		}
	}
	var tool any
	if patch {
		tool = "freeform"
	}
	levels := []map[string]string{}
	for _, l := range []string{"low", "medium", "high"} {
		levels = append(levels, map[string]string{"effort": l, "description": l})
	}
	entry := map[string]any{
		"slug":                              model,
		"display_name":                      model,
		"description":                       "",
		"priority":                          1,
		"visibility":                        "list",
		"supported_in_api":                  true,
		"base_instructions":                 codexInstructions(patch),
		"default_reasoning_level":           "medium",
		"supported_reasoning_levels":        levels,
		"supports_reasoning_summaries":      true,
		"default_reasoning_summary":         "none",
		"support_verbosity":                 true,
		"default_verbosity":                 "low",
		"shell_type":                        "disabled",
		"tool_mode":                         "direct",
		"apply_patch_tool_type":             tool,
		"web_search_tool_type":              "text",
		"experimental_supported_tools":      []string{},
		"supports_search_tool":              false,
		"supports_parallel_tool_calls":      true,
		"supports_experimental_context":     false,
		"use_responses_lite":                false,
		"include_skills_usage_instructions": false,
		"include_plugin_usage_instructions": false,
		"include_apps_usage_instructions":   false,
		"input_modalities":                  []string{"text"},
		"truncation_policy":                 map[string]any{"mode": "tokens", "limit": 10000},
		"context_window":                    window,
		"max_context_window":                window,
		"effective_context_window_percent":  95,
	}
	b, err := json.Marshal(map[string]any{"models": []any{entry}})
	if err != nil {
		panic(fmt.Sprintf("a model catalogue without a JSON form: %v", err))
	}
	return append(b, '\n')
}

func codexInstructions(patch bool) string {
	s := "You are a coding agent working on the repository in " + Worktree + ". You have no shell, no network and no web: " +
		"nothing can be executed. Look at files with the tools that read, list and search, where you have them. "
	if patch {
		return s + "Change files with apply_patch only. A patch of anything outside " + Worktree + ", through a symbolic link, or of " +
			strings.Join(codexProtected(), ", ") + " is rejected, and nobody can allow it. Say at the end what you changed and why."
	}
	return s + "You cannot change anything: answer, and name files and lines."
}

// codexCredential: Codex reads both from one file in its home, the API key wrapped in JSON.
func codexCredential(name string) Credential {
	c := Credential{Name: name, Path: codexAuth}
	if name == CredentialOpenAIKey {
		c.Wrap = `{"OPENAI_API_KEY":` + secretMark + `}`
	}
	return c
}
