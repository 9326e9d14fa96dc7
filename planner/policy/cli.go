package policy

import "slices"

// CLIPath is where the CLI of a built-in kind lies in an agent image; "" for any other kind.
func CLIPath(kind string) string {
	p, _ := profileOf(kind)
	return p.path
}

// ShellPaths are where a shell or an interpreter would lie. An image of a built-in kind has none of
// them: it is what makes hooks and helpers harmless that a vendor's server delivers to its CLI.
func ShellPaths() []string {
	var out []string
	for _, dir := range []string{"/bin/", "/usr/bin/", "/usr/local/bin/"} {
		for _, name := range []string{"ash", "bash", "busybox", "dash", "node", "perl", "python3", "sh", "zsh"} {
			out = append(out, dir+name)
		}
	}
	return out
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
