package policy

import (
	"path"
	"regexp"
	"slices"
)

// CLIPath is where the CLI of a built-in kind lies in an agent image; "" for any other kind.
func CLIPath(kind string) string {
	p, _ := profileOf(kind)
	return p.path
}

// interpreters are the names of shells and interpreters, with what distributions add to them.
var interpreters = regexp.MustCompile(`^(ash|awk|bash|bun|busybox|csh|dash|deno|fish|gawk|guile|java|ksh|lua|mawk|mksh|nawk|node|nodejs|` +
	`perl|php|pwsh|python|rbash|ruby|sash|sh|tclsh|tcsh|toybox|yash|zsh)([0-9][0-9.]*)?([.-](distrib|minimal|real|static))?$`)

// IsInterpreter says of an executable file, or a link, whether it is named like a shell or an interpreter. An
// image of a built-in kind has none: it is what makes hooks and helpers harmless that a vendor's server
// delivers to its CLI.
func IsInterpreter(file string) bool { return interpreters.MatchString(path.Base(file)) }

// ManagedDir is a directory of an image whose files the CLI of a kind obeys before its flags, "" for none: with
// settings and memory there, Claude Code adds them to every run (seen in 2.1.332). What an image has in that of
// Codex is covered by a file system with our own requirements.
func ManagedDir(kind string) string {
	if kind == KindClaude {
		return "/etc/claude-code"
	}
	return ""
}

type binary struct{ kind, version, sha256 string }

// binaries are the CLIs that the project has proven, by the SHA-256 of their executable file.
var binaries = []binary{
	{KindClaude, "2.1.332", "a2df1f41bb00250992926420d0063f89b127cb81abdd284dbefb80c50ff1d026"}, // linux-x64, glibc
	{KindCodex, "0.171.0", "b76a027d6b210f9a8da7aaf321dd235c700f0ef7a794d4a5314b9af6c134f0f0"},  // x86_64 musl
}

// IdentifyCLI says which CLI an executable is, by its SHA-256 in lower-case hex.
func IdentifyCLI(sha256 string) (kind, version string, ok bool) {
	for _, b := range append(slices.Clone(binaries), testBinaries()...) {
		if b.sha256 == sha256 {
			return b.kind, b.version, true
		}
	}
	return "", "", false
}

func proven(kind, version string) bool {
	p, ok := profileOf(kind)
	return ok && slices.Contains(p.versions, version)
}
