package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// endpoint is where the engine listens, and what said so.
type endpoint struct {
	socket string // path
	from   string // "DOCKER_HOST", "docker context \"x\"", …
}

func (p endpoint) String() string { return fmt.Sprintf("unix://%s (from %s)", p.socket, p.from) }

const defaultHost = "unix:///var/run/docker.sock"

// findEndpoint chooses the engine as the docker command does, so that both always speak of the same
// one: DOCKER_HOST, DOCKER_CONTEXT, the current context. The configuration goes before all, because a
// reviewed declaration must not mean another engine in another shell.
func findEndpoint(o Options) (endpoint, error) {
	if o.Host != "" {
		return parseHost(o.Host, `provider "docker" { host }`)
	}
	if h := o.Getenv("DOCKER_HOST"); h != "" {
		return parseHost(h, "DOCKER_HOST")
	}
	dir := o.Getenv("DOCKER_CONFIG")
	if dir == "" {
		dir = filepath.Join(o.Home, ".docker")
	}
	name, from := o.Getenv("DOCKER_CONTEXT"), "DOCKER_CONTEXT"
	if name == "" {
		var err error
		if name, err = currentContext(dir); err != nil {
			return endpoint{}, err
		}
		from = filepath.Join(dir, "config.json")
	}
	// "default" is no context of its own, it is the way to say "none".
	if name == "" || name == "default" {
		return parseHost(defaultHost, "the default")
	}
	h, err := contextHost(dir, name)
	if err != nil {
		return endpoint{}, fmt.Errorf("docker context %q (chosen by %s): %w; docker context ls lists those there are", name, from, err)
	}
	return parseHost(h, fmt.Sprintf("docker context %q", name))
}

func currentContext(dir string) (string, error) {
	path := filepath.Join(dir, "config.json")
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the docker configuration: %w", err)
	}
	var config struct {
		CurrentContext string `json:"currentContext"`
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		return "", fmt.Errorf("%s is not JSON: %w", path, err)
	}
	return config.CurrentContext, nil
}

// contextHost reads a context as the docker command stores it: in a directory named by the SHA-256 of
// the context's name.
func contextHost(dir, name string) (string, error) {
	sum := sha256.Sum256([]byte(name))
	path := filepath.Join(dir, "contexts", "meta", hex.EncodeToString(sum[:]), "meta.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return "", fmt.Errorf("%s is not JSON: %w", path, err)
	}
	h := meta.Endpoints["docker"].Host
	if h == "" {
		return "", fmt.Errorf("%s names no docker endpoint", path)
	}
	return h, nil
}

// parseHost accepts unix sockets only: worktrees, routes and bridge settings are the engine's, so an
// engine elsewhere cannot be checked from here.
func parseHost(h, from string) (endpoint, error) {
	path, ok := strings.CutPrefix(h, "unix://")
	if !ok {
		return endpoint{}, fmt.Errorf("the engine %q (from %s) is not on this machine's unix socket; sandplan works with a local engine only: "+
			"set DOCKER_HOST=%s, or run sandplan where that engine runs", h, from, defaultHost)
	}
	if !filepath.IsAbs(path) {
		return endpoint{}, fmt.Errorf("the engine %q (from %s): a unix socket needs an absolute path, as in %s", h, from, defaultHost)
	}
	return endpoint{socket: filepath.Clean(path), from: from}, nil
}

// unreachable turns a failed first call into what the user can do.
func (p endpoint) unreachable(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission to use the Docker engine at %s: run as root, or as a member of the group that owns the socket", p)
	case errors.Is(err, fs.ErrNotExist), isRefused(err):
		return fmt.Errorf("no Docker engine answers at %s: %w; start one with \"systemctl start docker\", or on Debian as root with scripts/engine from sandplan's repository",
			p, rootCause(err))
	}
	return fmt.Errorf("no Docker engine answers at %s: %w", p, rootCause(err))
}

// rootCause drops the layers of a failed HTTP call, which name a host that is not there.
func rootCause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
