package hclspec

import (
	"io/fs"
	"net/netip"
	"time"

	"github.com/hashicorp/hcl/v2"
)

// Val is an attribute's value and where it was written. Range is that of the enclosing block when
// the value is a default, and Set tells the two apart.
type Val[T any] struct {
	V     T
	Range hcl.Range
	Set   bool
	// Unknown says that V is not the value. In validate it depends on a variable; otherwise it could not be
	// evaluated, and a diagnostic says why.
	Unknown bool
	// Sensitive values are never printed. Only a prompt and the sources of a credential can be.
	Sensitive bool
}

// Spec is one evaluated configuration.
type Spec struct {
	// Dir is the absolute directory of the configuration; File is the single file it was read from, or
	// "" when it was read from the directory.
	Dir  string
	File string
	// Sources are the files that were read, by the names that ranges use: configuration, variables, lock
	// file, and the texts of -var and the environment. What gives a sensitive variable its value is left
	// out: sources are there to be shown.
	Sources map[string][]byte
	// Paths are the absolute paths of the files that were read, by the same names, those left out of
	// Sources included. What file functions read is in Invocation.Files.
	Paths map[string]string

	Project         Val[string]
	Workspace       string
	RequiredVersion Val[string]
	Range           hcl.Range // of the sandplan block

	Provider    Provider
	Variables   []Variable   // sorted by name
	Vendors     []Vendor     // sorted by name
	Phases      []Phase      // sorted by name; built-in ones without a block included
	Invocations []Invocation // one per instance, in the order of planner addresses
	Lock        Lock
	// Blocks are the names of all invocation blocks, those without an instance included; sorted.
	Blocks []string
	// Scope is what outputs and checks may refer to, so that they can be evaluated again, even by
	// another process that got the Spec from a file. It holds sensitive values in clear.
	Scope Scope
	// FS is what file functions in outputs read from; nil is the disk.
	FS fs.FS `json:"-"`
}

// Provider is the provider "docker" block.
type Provider struct {
	Host       Val[string]
	SubnetPool Val[netip.Prefix]
	// DNS are the proxy's name servers. When the attribute is not set they come from the lock file.
	DNS   Val[[]netip.Addr]
	Range hcl.Range
}

// Variable is a declared input and where its value came from ("default", "-var", a file's name, …).
// The value itself is only in what was computed from it.
type Variable struct {
	Name        string
	Description string
	Sensitive   bool
	From        string
	Range       hcl.Range
}

// Vendor is a vendor block.
type Vendor struct {
	Name        string
	Kind        Val[string] // claude, codex, custom
	Image       Val[string]
	Version     Val[string] // of the CLI
	Model       Val[string]
	Command     Val[[]string] // custom only
	Env         []EnvVar      // sorted by name
	Credentials []Credential  // sorted by name
	Hosts       []Host        // sorted by name and port; for built-in kinds the pinned ones, or the chosen subset
	Range       hcl.Range
}

// EnvVar is one declared environment variable.
type EnvVar struct {
	Name  string
	Value Val[string]
}

// Credential is a credential block of a vendor. Exactly one of the sources is set.
type Credential struct {
	Name       string
	SourceEnv  Val[string]
	SourceFile Val[string] // absolute
	Range      hcl.Range
}

// Host is what a vendor's agents may reach.
type Host struct {
	Name      string // canonical: lower case, no trailing dot
	Port      Val[int]
	Addresses Val[[]netip.Addr] // fixed addresses; empty means that the name is resolved
	TLS       Val[bool]
	Range     hcl.Range
}

// Phase is a phase block, or a built-in phase without one.
type Phase struct {
	Name     string
	Base     Val[string] // the built-in phase whose ceiling holds; for a built-in phase its own name
	Tools    Val[[]string]
	Writable Val[bool]
	Runners  []Runner // sorted by name
	Range    hcl.Range
}

// Runner is an approved command of a phase.
type Runner struct {
	Name    string
	Argv    Val[[]string]
	Image   Val[string]
	Timeout Val[time.Duration]
	Range   hcl.Range
}

// Invocation is one instance of an invocation block.
type Invocation struct {
	Address string // invocation.login["auth"]
	Name    string // login
	Key     any    // nil, string (for_each) or int (count)
	// ForAll is set where this one stands for all instances of a block whose keys are not known.
	ForAll   bool `json:",omitempty"`
	Vendor   Val[string]
	Phase    Val[string]
	Worktree Val[string] // absolute, clean
	Prompt   Val[string]
	// PromptSensitive hides the prompt in all output; its digest is declared all the same.
	PromptSensitive bool
	Timeout         Val[time.Duration]
	Env             []EnvVar // sorted by name
	User            Val[string]
	Git             Val[string] // read-only, none
	AfterRun        Val[string] // rearm, keep, dispose
	Limits          Limits
	// Files are the absolute paths that file, templatefile and fileset read while the configuration was
	// evaluated for this instance (or for a value that it uses).
	Files []string
	Range hcl.Range
}

// Limits is the limits block of an invocation.
type Limits struct {
	Memory Val[int64]   // bytes
	CPUs   Val[float64] // whole or part CPUs
	PIDs   Val[int64]
	Output Val[int64] // bytes
	Upload Val[int64] // bytes
	// Download is in bytes, or NoBound.
	Download Val[int64]
	// Tunnels may be open at once, and TunnelsPerSecond be new.
	Tunnels          Val[int64]
	TunnelsPerSecond Val[int64]
}

// Catalog is what the program has built in, as far as reading a configuration needs it.
type Catalog struct {
	// Vendors are the built-in kinds of vendor, with their pinned hosts (port 443) and the names of the
	// credentials that they know. The kind "custom" is not in it.
	Vendors map[string]CatalogVendor
	// Phases are the built-in phases.
	Phases map[string]CatalogPhase
}

// CatalogVendor is one built-in kind of vendor.
type CatalogVendor struct {
	Hosts       []string
	Credentials []string
	// Version is the newest version of the CLI that the project has proven: the default.
	Version string
}

// CatalogPhase is one built-in phase: a ceiling.
type CatalogPhase struct {
	Tools    []string
	Writable bool
	// Runners says whether the phase may have runners at all.
	Runners bool
}

// Lock is the lock file. Images are sorted by reference.
type Lock struct {
	Path   string // where it is, or would be
	Exists bool
	DNS    []netip.Addr
	Images []LockImage
}

// LockImage is what the lock file pins of one image, and what it knows of its content.
type LockImage struct {
	Ref    string
	Digest string   // registry images: sha256:…
	IDs    []string // local builds: one per platform or image store
	CLI    string   // the version of the vendor's CLI inside, "" where that is nobody's
	Shell  bool     // whether the image holds a shell; says nothing unless Inspected
	// Inspected says that init looked into the image, as it does into every agent image. Only then are
	// CLI and Shell in the lock file: an entry without them must not read as "no shell".
	Inspected bool
	// Config is what containers inherit from the image whether they want it or not.
	Config ImageConfig
	Range  hcl.Range
}

// ImageConfig is what a container inherits from its image unless each part is overridden.
type ImageConfig struct {
	Env          map[string]string
	Labels       map[string]string
	Volumes      []string
	ExposedPorts []string
}

// CheckEnvName says why no declaration may set a variable of this name in a sandbox; nil when one may.
func CheckEnvName(name string) error { return checkEnvName(name) }
