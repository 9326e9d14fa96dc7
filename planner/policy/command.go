// Package policy holds what sandplan knows of vendors and phases, and turns a phase, a vendor and
// an invocation into a sealed command. It is pure: no engine, no file, no clock.
//
// It must never trust that somebody checked before: Seal checks again what Check reports. Start
// with catalog.go (what is built in), then seal.go; check.go says which mistakes users are told of.
package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// Command is the sealed value that says what may run in one container: only this package can make
// one. It carries the phase, the vendor and the invocation that it was made for, and a digest over
// all of it; whoever uses it for another container gets an error from Check.
type Command struct {
	invocation string // address
	vendor     string // name of the vendor block
	kind       string // claude, codex, custom, runner
	phase      string // name of the phase block
	base       string // the built-in phase whose ceiling holds
	runner     string // name of the runner, "" for an agent
	version    string // of the vendor's CLI, "" where that is nobody's
	argv       []string
	env        []Env
	files      []File
	stdin      bool // the prompt goes to standard input
	preamble   string
	tools      []string
	offered    []string
	writable   bool
	hosts      []Host
	creds      []Credential
	digest     string
}

// Env is one variable of the command's environment.
type Env struct{ Name, Value string }

// File is a file of fixed content that must stand in the container before the command starts.
// It is not secret.
type File struct {
	Path    string
	Mode    uint32
	Content []byte
}

// Host is one host and port that the command may reach.
type Host struct {
	Name      string
	Port      int
	Addresses []string
	TLS       bool
	// Decl is where it is declared: "sandplan.hcl:12", for the message of a refusal.
	Decl string
}

// Credential says how one credential reaches the command: as the environment variable Env of the
// command's process alone, or as the file Path. The secret itself is never here.
type Credential struct {
	Name string
	Env  string
	Path string
	// Wrap is the file's text around the secret: the JSON string "$SECRET" in it stands for the secret.
	// "" means that the secret is the whole file.
	Wrap string
	// SourceEnv or SourceFile is where the secret comes from. Another source is another declaration: what the
	// agent holds is somebody else's.
	SourceEnv, SourceFile string
}

const secretMark = `"$SECRET"`

// Content is what the variable or the file of the credential must hold for a secret.
func (c Credential) Content(secret []byte) ([]byte, error) {
	// Secrets come out of files and `$(cat …)`: a final newline or blank is never meant, and as part of an
	// HTTP header it makes every request fail in a way that nobody understands.
	if c.Env != "" || c.Wrap != "" {
		secret = bytes.TrimSpace(secret)
	}
	if len(bytes.TrimSpace(secret)) == 0 {
		return nil, fmt.Errorf("credential %s is empty", c.Name)
	}
	if c.Env != "" || c.Wrap != "" {
		if i := bytes.IndexFunc(secret, func(r rune) bool { return r <= 0x20 || r >= 0x7f }); i >= 0 {
			return nil, fmt.Errorf("credential %s holds a blank, a control character or a letter beyond ASCII at byte %d; a token is one word", c.Name, i)
		}
	}
	if c.Wrap == "" {
		return slices.Clone(secret), nil
	}
	quoted, err := json.Marshal(string(secret))
	if err != nil {
		return nil, fmt.Errorf("credential %s: %w", c.Name, err)
	}
	return bytes.ReplaceAll([]byte(c.Wrap), []byte(secretMark), quoted), nil
}

// Invocation is the address of the invocation that the command was made for.
func (c Command) Invocation() string { return c.invocation }

// Vendor is the name of the vendor block; Kind says claude, codex, custom or runner.
func (c Command) Vendor() string { return c.vendor }

// Kind is claude, codex, custom, or runner for an approved command.
func (c Command) Kind() string { return c.kind }

// Phase is the name of the phase block, Base the built-in phase whose ceiling holds for it.
func (c Command) Phase() string { return c.phase }

// Base is the built-in phase whose ceiling holds.
func (c Command) Base() string { return c.base }

// Runner is the name of the runner, "" for an agent.
func (c Command) Runner() string { return c.runner }

// Version is the version of the vendor's CLI that Argv was written for, "" for a command of the user's.
func (c Command) Version() string { return c.version }

// Argv is the exact command.
func (c Command) Argv() []string { return slices.Clone(c.argv) }

// Env is the whole environment, sorted by name, without the proxy variables (see ProxyEnv).
func (c Command) Env() []Env { return slices.Clone(c.env) }

// Files are the files that must stand before the command starts, sorted by path.
func (c Command) Files() []File {
	out := slices.Clone(c.files)
	for i := range out {
		out[i].Content = slices.Clone(out[i].Content)
	}
	return out
}

// Stdin says that the prompt goes to standard input; otherwise standard input is empty.
func (c Command) Stdin() bool { return c.stdin }

// Preamble stands before every prompt, so that no prompt begins with a character that the CLI takes
// for a command of its own.
func (c Command) Preamble() string { return c.preamble }

// Tools are the tools that the command has, in the user's words. Nil where sandplan does not know
// them: runners and custom vendors.
func (c Command) Tools() []string { return slices.Clone(c.tools) }

// Offered are the names of exactly the tools that the CLI may offer to its model, sorted.
func (c Command) Offered() []string { return slices.Clone(c.offered) }

// Writable says whether the worktree is mounted writable.
func (c Command) Writable() bool { return c.writable }

// Hosts are what the command may reach, sorted by name and port.
func (c Command) Hosts() []Host {
	out := slices.Clone(c.hosts)
	for i := range out {
		out[i].Addresses = slices.Clone(out[i].Addresses)
	}
	return out
}

// Credentials say how each credential reaches the command, sorted by name.
func (c Command) Credentials() []Credential { return slices.Clone(c.creds) }

// Digest is the SHA-256 over everything that the command says, in hex.
func (c Command) Digest() string { return c.digest }

// Check says whether the command was made for this agent and for nothing else.
func (c Command) Check(invocation, vendor, phase string) error {
	return c.check(invocation, vendor, phase, "")
}

// CheckRunner says whether the command was made for this runner and for nothing else.
func (c Command) CheckRunner(invocation, vendor, phase, runner string) error {
	if runner == "" {
		return fmt.Errorf("the sealed command of %s: no runner was named to hold it against", c.invocation)
	}
	return c.check(invocation, vendor, phase, runner)
}

func (c Command) check(invocation, vendor, phase, runner string) error {
	if c.digest == "" || c.digest != c.sum() {
		return fmt.Errorf("a command for %s that nothing has sealed", invocation)
	}
	for _, p := range []struct{ what, have, want string }{
		{"invocation", c.invocation, invocation},
		{"vendor", c.vendor, vendor},
		{"phase", c.phase, phase},
		{"runner", c.runner, runner},
	} {
		if p.have != p.want {
			return fmt.Errorf("the sealed command of %s was made for %s %s, not for %s", c.invocation, p.what, orNone(p.have), orNone(p.want))
		}
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// sum is the digest over every member but the digest itself.
func (c Command) sum() string {
	b, err := json.Marshal([]any{
		c.invocation, c.vendor, c.kind, c.phase, c.base, c.runner, c.version, c.argv, c.env, c.files,
		c.stdin, c.preamble, c.tools, c.offered, c.writable, c.hosts, c.creds,
	})
	if err != nil {
		panic(fmt.Sprintf("a command without a JSON form: %v", err))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
