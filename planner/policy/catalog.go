package policy

import (
	"slices"
	"sort"

	"github.com/sandplan/sandplan/hclspec"
)

// The kinds of vendors.
const (
	KindClaude = "claude"
	KindCodex  = "codex"
	KindCustom = "custom"
)

// The tools of a phase, in the user's words.
const (
	ToolRead   = "read"
	ToolList   = "list"
	ToolSearch = "search"
	ToolEdit   = "edit"
	ToolWrite  = "write"
)

// AnthropicHost, OpenAIHost and ChatGPTHost are the hosts that built-in vendors are pinned to. Both
// CLIs ask for more when they are let (telemetry, GitHub, experiments); neither needs it.
const (
	AnthropicHost = "api.anthropic.com"
	OpenAIHost    = "api.openai.com"
	ChatGPTHost   = "chatgpt.com"
)

// Names of the credentials of built-in vendors.
const (
	CredentialClaudeOAuth = "CLAUDE_CODE_OAUTH_TOKEN"
	CredentialClaudeKey   = "ANTHROPIC_API_KEY"
	CredentialOpenAIKey   = "OPENAI_API_KEY"
	CredentialCodexAuth   = "auth.json"
)

// Paths inside every agent and runner container.
const (
	Worktree      = "/work"
	Home          = "/home/agent"
	RunDir        = "/run/sandplan"
	CredentialDir = RunDir + "/credentials"
	PromptPath    = RunDir + "/prompt"
)

// ceiling is what a built-in phase allows at most. Nothing in a configuration widens it.
type ceiling struct {
	tools    []string
	writable bool
	runners  bool
}

// ceilingOf is the ceiling of a built-in phase.
func ceilingOf(base string) (ceiling, bool) {
	look := []string{ToolRead, ToolList, ToolSearch}
	change := append(slices.Clone(look), ToolEdit, ToolWrite)
	switch base {
	case "planning", "questions":
		return ceiling{tools: look}, true
	case "review":
		return ceiling{tools: look, runners: true}, true
	case "execute", "fix":
		return ceiling{tools: change, writable: true, runners: true}, true
	}
	return ceiling{}, false
}

// builtinPhases are the names that ceilingOf knows.
func builtinPhases() []string {
	return []string{"execute", "fix", "planning", "questions", "review"}
}

// profile is what the program knows of one built-in kind of vendor.
type profile struct {
	hosts       []string
	credentials []string
	versions    []string // of the CLI, proven by tests, newest first
	models      []string // the models that may be named; nil means any
	envAllowed  []string // what `env` may set; a trailing * stands for any rest
	path        string   // of the CLI in the image
	build       func(agent) (build, error)
}

// profileOf is the profile of a built-in kind.
func profileOf(kind string) (profile, bool) {
	var p profile
	switch kind {
	case KindClaude:
		p = claudeProfile()
	case KindCodex:
		p = codexProfile()
	default:
		return p, false
	}
	for _, b := range testBinaries() {
		if b.kind == kind {
			p.versions = append(p.versions, b.version)
		}
	}
	return p, true
}

// builtinKinds are the names that profileOf knows.
func builtinKinds() []string { return []string{KindClaude, KindCodex} }

// Catalog is what a configuration may name without declaring it. Every call returns a new one.
func Catalog() hclspec.Catalog {
	c := hclspec.Catalog{
		Vendors: map[string]hclspec.CatalogVendor{},
		Phases:  map[string]hclspec.CatalogPhase{},
	}
	for _, kind := range builtinKinds() {
		p, _ := profileOf(kind)
		c.Vendors[kind] = hclspec.CatalogVendor{
			Hosts:       sorted(p.hosts),
			Credentials: sorted(p.credentials),
			Version:     p.versions[0],
		}
	}
	for _, name := range builtinPhases() {
		l, _ := ceilingOf(name)
		c.Phases[name] = hclspec.CatalogPhase{Tools: slices.Clone(l.tools), Writable: l.writable, Runners: l.runners}
	}
	return c
}

func sorted(in []string) []string {
	out := slices.Clone(in)
	sort.Strings(out)
	return out
}
