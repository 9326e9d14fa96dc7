// Package policy holds what sandplan knows of vendors and phases, and turns a phase, a vendor and
// an invocation into a sealed command. It is pure: no engine, no file, no clock.
package policy

// Command is the sealed value that says what may run in one container: only this package can make
// one. It carries the phase, the vendor and the invocation that it was made for, and a digest over
// all of it; whoever uses it for another container gets an error from Check.
type Command struct {
	invocation string // address
	vendor     string // name of the vendor block
	kind       string // claude, codex, custom, runner
	phase      string // name of the phase block
	runner     string // name of the runner, "" for an agent
	argv       []string
	env        []Env
	files      []File
	stdin      bool // the prompt goes to standard input
	tools      []string
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
}

// Credential says how one credential reaches the command: as the environment variable Env of the
// command's process alone, or as the file Path. The secret itself is never here.
type Credential struct {
	Name string
	Env  string
	Path string
}
