package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"
)

// Config is the whole declaration of one container as its shim sees it. It is the shim's command
// line, so that inspect shows it and the gate compares it. Nothing in it is secret.
type Config struct {
	// Invocation is the address that messages name.
	Invocation string `json:"invocation"`
	// Argv is the command. Its first element is a path, or a name to look up in the PATH of Env.
	Argv []string `json:"argv"`
	// Env is the complete environment of the command as NAME=value, sorted. The container's own
	// environment must not go beyond it, PATH, HOME and HOSTNAME apart, and never reaches the command.
	Env []string `json:"env"`
	// Dir is the command's working directory.
	Dir string `json:"dir"`
	UID int    `json:"uid"`
	GID int    `json:"gid"`
	// PromptToStdin gives the prompt to the command as its standard input; without it that is empty.
	// The prompt also stands in PromptPath.
	PromptToStdin bool `json:"prompt_to_stdin"`
	// PromptSHA256 is the digest of the only prompt that may come, in hex; "" admits any.
	PromptSHA256 string       `json:"prompt_sha256,omitempty"`
	Files        []File       `json:"files,omitempty"`
	Credentials  []Credential `json:"credentials,omitempty"`
	// Mounts are all mounts that are declared. What the engine itself mounts in every container (proc,
	// dev, resolv.conf, …) is not among them; the shim knows it.
	Mounts []Mount `json:"mounts"`
	// Network is nil when the container has no network at all.
	Network *Network `json:"network,omitempty"`
	// Nameservers are those that /etc/resolv.conf must name, and the only ones: on a network of the
	// user's the engine's own resolver (127.0.0.11), else what the container declares.
	Nameservers []string `json:"nameservers"`
	// UnixSockets says whether the seccomp profile lets the command open unix sockets.
	UnixSockets bool   `json:"unix_sockets"`
	Limits      Limits `json:"limits"`
	Bounds      Bounds `json:"bounds"`
}

// PromptPath and CredentialDir are where the shim puts what the bundle brings; both are on the tmpfs
// that the agent's container has at RunDir.
const (
	RunDir        = "/run/sandplan"
	PromptPath    = RunDir + "/prompt"
	CredentialDir = RunDir + "/credentials"
)

// File is a file of fixed, public content that the shim writes before the command starts. Its
// directory must lie on a declared tmpfs.
type File struct {
	Path    string `json:"path"`
	Mode    uint32 `json:"mode"`
	Content []byte `json:"content"` // base64 in JSON
}

// Credential says where one secret of the bundle goes: exactly one of Env and Path is set.
type Credential struct {
	Name string `json:"name"`
	Env  string `json:"env,omitempty"`
	Path string `json:"path,omitempty"`
	// Source stands for where the secret comes from. Nothing here reads it: it is a part of what is declared.
	Source string `json:"source,omitempty"`
}

// The types of a Mount.
const (
	MountBind   = "bind"
	MountVolume = "volume"
	MountTmpfs  = "tmpfs"
)

// Mount is one declared mount.
type Mount struct {
	Path     string `json:"path"`
	Type     string `json:"type"`
	ReadOnly bool   `json:"read_only,omitempty"`
	// The rest is for a tmpfs. Flags are those of nosuid, nodev and noexec that it must have.
	Flags []string `json:"flags,omitempty"`
	Size  int64    `json:"size,omitempty"` // bytes, at most; 0 is not checked
	Mode  uint32   `json:"mode,omitempty"` // 0 is not checked
	// Own says that it belongs to UID and GID.
	Own bool `json:"own,omitempty"`
	// Tree says that a bound directory is walked for sockets, FIFOs and devices, which are refused.
	Tree bool `json:"tree,omitempty"`
}

// Network is the one network that an agent's container has.
type Network struct {
	// Address is the container's own, with the length of the network's prefix: 10.213.4.3/29.
	Address string `json:"address"`
	// Proxy is the address and port of the proxy.
	Proxy string `json:"proxy"`
	// Hosts are HOST:PORT that the proxy must let through.
	Hosts []string `json:"hosts"`
	// Refused is a HOST:PORT that it must refuse with 403.
	Refused string `json:"refused"`
	// Direct are ADDRESS:PORT that must not be reachable without the proxy, besides the host's own
	// addresses, which come with the challenge.
	Direct []string `json:"direct"`
}

// Limits are what the kernel must enforce on the container; 0 is not checked.
type Limits struct {
	Memory   int64 `json:"memory"`    // bytes, and no swap beyond it
	NanoCPUs int64 `json:"nano_cpus"` // as HostConfig.NanoCpus
	PIDs     int64 `json:"pids"`
}

// Bounds are what the shim itself enforces. Times are in milliseconds.
type Bounds struct {
	TimeoutMS int64 `json:"timeout_ms"` // of the command
	GraceMS   int64 `json:"grace_ms"`   // between SIGTERM and SIGKILL
	SilenceMS int64 `json:"silence_ms"` // longest time without a frame on standard input
	Output    int64 `json:"output"`     // bytes of standard output and standard error together
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// parseConfig reads the one argument of the shim.
func parseConfig(arg string) (*Config, error) {
	dec := json.NewDecoder(strings.NewReader(arg))
	// The writer is another run of the same program: a field that it knows and we do not is a mistake.
	dec.DisallowUnknownFields()
	var c Config
	if err := dec.Decode(&c); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &c, nil
}

// Arg is the configuration as the shim's one argument, always the same for equal configurations.
func (c *Config) Arg() (string, error) {
	if err := c.Validate(); err != nil {
		return "", fmt.Errorf("shim of %s: %w", c.Invocation, err)
	}
	return c.Text()
}

// Text is the configuration as Arg writes it, whether it makes sense or not.
func (c *Config) Text() (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // it is read by people, in inspect
	if err := enc.Encode(c); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}

// Validate reports the first thing that makes the configuration unusable.
func (c *Config) Validate() error {
	switch {
	case len(c.Argv) == 0 || c.Argv[0] == "":
		return fmt.Errorf("argv %q: there is no command", c.Argv)
	case !path.IsAbs(c.Dir):
		return fmt.Errorf("dir %q is not absolute", c.Dir)
	case c.UID < 0 || c.GID < 0:
		return fmt.Errorf("user %d:%d", c.UID, c.GID)
	case c.Bounds.TimeoutMS <= 0 || c.Bounds.GraceMS <= 0 || c.Bounds.SilenceMS <= 0 || c.Bounds.Output <= 0:
		return fmt.Errorf("bounds %+v: every one must be above zero", c.Bounds)
	}
	for _, kv := range c.Env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" || strings.ContainsRune(kv, 0) {
			return fmt.Errorf("env %q is not NAME=value", kv)
		}
	}
	if err := c.validateMounts(); err != nil {
		return err
	}
	for _, f := range c.Files {
		if err := c.writable(f.Path); err != nil {
			return fmt.Errorf("file %s: %w", f.Path, err)
		}
	}
	for _, cr := range c.Credentials {
		if (cr.Env == "") == (cr.Path == "") {
			return fmt.Errorf("credential %s: exactly one of env and path", cr.Name)
		}
		if err := c.writable(cr.Path); cr.Path != "" && err != nil {
			return fmt.Errorf("credential %s: %w", cr.Name, err)
		}
	}
	if c.Network != nil {
		return c.Network.validate()
	}
	return nil
}

func (c *Config) validateMounts() error {
	seen := map[string]bool{}
	for _, m := range c.Mounts {
		switch {
		case !path.IsAbs(m.Path) || path.Clean(m.Path) != m.Path || m.Path == "/":
			return fmt.Errorf("mount %q is not a clean absolute path", m.Path)
		case seen[m.Path]:
			return fmt.Errorf("mount %s is declared twice", m.Path)
		case m.Type != MountBind && m.Type != MountVolume && m.Type != MountTmpfs:
			return fmt.Errorf("mount %s has the unknown type %q", m.Path, m.Type)
		}
		seen[m.Path] = true
	}
	return nil
}

// writable says whether a file of the shim's may stand at p: on a tmpfs that is declared.
func (c *Config) writable(p string) error {
	if !path.IsAbs(p) || path.Clean(p) != p {
		return fmt.Errorf("%q is not a clean absolute path", p)
	}
	i := slices.IndexFunc(c.Mounts, func(m Mount) bool { return m.Path == c.mountOf(p) })
	if i < 0 || c.Mounts[i].Type != MountTmpfs || c.Mounts[i].ReadOnly {
		return fmt.Errorf("%s lies on no writable tmpfs", p)
	}
	return nil
}

// mountOf is the path of the declared mount that p lies below; "" for the root.
func (c *Config) mountOf(p string) string {
	best := ""
	for _, m := range c.Mounts {
		if strings.HasPrefix(p, m.Path+"/") && len(m.Path) > len(best) {
			best = m.Path
		}
	}
	return best
}

func (n *Network) validate() error {
	own, err := netip.ParsePrefix(n.Address)
	if err != nil {
		return fmt.Errorf("network address: %w", err)
	}
	proxy, err := netip.ParseAddrPort(n.Proxy)
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	if !own.Contains(proxy.Addr()) || own.Addr() == proxy.Addr() {
		return fmt.Errorf("proxy %s is no neighbour of %s", proxy, own)
	}
	if len(n.Hosts) == 0 || n.Refused == "" {
		return errors.New("a network without hosts to reach and a host to be refused proves nothing")
	}
	for _, d := range n.Direct {
		if _, err := netip.ParseAddrPort(d); err != nil {
			return fmt.Errorf("direct: %w", err)
		}
	}
	return nil
}
