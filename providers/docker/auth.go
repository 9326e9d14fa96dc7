package docker

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/registry"
)

// registryAuth is what the engine needs to pull from a reference's registry: the plain credentials of
// the Docker configuration, "" when there are none. Programs that hand out credentials are not run:
// what they may do is nobody's declaration.
func (e *Engine) registryAuth(ref string) (string, error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return "", fmt.Errorf("the image name %q: %w", ref, err)
	}
	dir := e.options.Getenv("DOCKER_CONFIG")
	if dir == "" {
		dir = filepath.Join(e.options.Home, ".docker")
	}
	file := filepath.Join(dir, "config.json")
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the Docker configuration: %w", err)
	}
	auth, err := findAuth(raw, reference.Domain(named))
	if err != nil {
		return "", fmt.Errorf("%s: %w; run `docker pull %s`, then apply again", file, err, ref)
	}
	if auth == nil {
		return "", nil
	}
	return registry.EncodeAuthConfig(*auth)
}

// findAuth finds the credentials for a registry in a Docker configuration.
func findAuth(raw []byte, domain string) (*registry.AuthConfig, error) {
	var config struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			IdentityToken string `json:"identitytoken"`
		} `json:"auths"`
		CredsStore  string            `json:"credsStore"`
		CredHelpers map[string]string `json:"credHelpers"`
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	keys := []string{domain}
	if domain == "docker.io" {
		keys = append(keys, "index.docker.io", "registry-1.docker.io")
	}
	for _, k := range keys {
		if helper := config.CredHelpers[k]; helper != "" {
			return nil, fmt.Errorf("the credentials for %s are with the helper %q, which sandplan does not run", domain, helper)
		}
	}
	for _, name := range sortedKeys(config.Auths) {
		a := config.Auths[name]
		if !isKeyFor(name, keys) || a.Auth == "" && a.IdentityToken == "" {
			continue
		}
		user, password, err := splitAuth(a.Auth)
		if err != nil {
			return nil, fmt.Errorf("the credentials for %s: %w", name, err)
		}
		return &registry.AuthConfig{Username: user, Password: password, IdentityToken: a.IdentityToken, ServerAddress: name}, nil
	}
	if config.CredsStore != "" {
		return nil, fmt.Errorf("the credentials are with the store %q, which sandplan does not run", config.CredsStore)
	}
	return nil, nil
}

// isKeyFor: keys are host names, or URLs as https://index.docker.io/v1/.
func isKeyFor(key string, hosts []string) bool {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	key, _, _ = strings.Cut(key, "/")
	for _, h := range hosts {
		if key == h {
			return true
		}
	}
	return false
}

func splitAuth(encoded string) (user, password string, err error) {
	if encoded == "" {
		return "", "", nil
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", "", errors.New("auth is not base64")
	}
	user, password, ok := strings.Cut(string(raw), ":")
	if !ok {
		return "", "", errors.New("auth is not USER:PASSWORD")
	}
	return user, strings.TrimRight(password, "\x00"), nil
}
