//go:build linux

package shim

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// handover is what the command finds in its container: files, prompt and credentials.
type handover struct {
	env    []string // of the command alone
	stdin  *os.File
	secret []string // paths to wipe at the end
}

// place writes what is declared and what the bundle brings.
func place(cfg *Config, b wire.Bundle) (*handover, error) {
	h := &handover{env: append([]string(nil), cfg.Env...)}
	if sum := sha256.Sum256(b.Prompt); cfg.PromptSHA256 != "" && cfg.PromptSHA256 != hex.EncodeToString(sum[:]) {
		return h, errors.New("the prompt that came is not the one that is declared")
	}
	for _, f := range cfg.Files {
		if err := writeFile(f.Path, f.Content, fs.FileMode(f.Mode)); err != nil {
			return h, err
		}
	}
	for _, c := range cfg.Credentials {
		secret, ok := b.Credentials[c.Name]
		if !ok {
			return h, fmt.Errorf("credential %s is declared and did not come", c.Name)
		}
		if c.Env != "" {
			h.env = append(h.env, c.Env+"="+string(secret))
			continue
		}
		h.secret = append(h.secret, c.Path)
		// Writable: a CLI may renew what it was given.
		if err := writeFile(c.Path, secret, 0o600); err != nil {
			return h, err
		}
	}
	if len(b.Credentials) > len(cfg.Credentials) {
		return h, fmt.Errorf("%d credentials came, %d are declared", len(b.Credentials), len(cfg.Credentials))
	}
	return h, h.openStdin(cfg, b.Prompt)
}

// openStdin puts the prompt where the command reads it.
func (h *handover) openStdin(cfg *Config, prompt []byte) error {
	from := os.DevNull
	if cfg.mountOf(PromptPath) != "" {
		h.secret = append(h.secret, PromptPath)
		if err := writeFile(PromptPath, prompt, 0o400); err != nil {
			return err
		}
		if cfg.PromptToStdin {
			from = PromptPath
		}
	} else if len(prompt) > 0 {
		return fmt.Errorf("a prompt came, and %s is not declared", RunDir)
	}
	f, err := os.Open(from)
	h.stdin = f
	return err
}

// writeFile makes a new file. Nothing may be there yet: the command has not run.
func writeFile(name string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, mode.Perm())
	if err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := f.Chmod(mode.Perm()); err != nil { // whatever the umask is
		f.Close()
		return err
	}
	return f.Close()
}

// forget wipes this process's own copies. The command has its own by now.
func (h *handover) forget(b wire.Bundle) {
	clear(b.Prompt)
	for _, secret := range b.Credentials {
		clear(secret)
	}
	h.env = nil
	// Copies that the runtime made lie in pages that go back to the kernel, which clears them.
	debug.FreeOSMemory()
}

// wipe removes the secrets from the container's memory file systems, which would outlive the command
// until the container is removed.
func (h *handover) wipe() {
	for _, name := range h.secret {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
			_ = os.Chmod(name, 0o600)
			if f, err := os.OpenFile(name, os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0); err == nil {
				_, _ = f.Write(make([]byte, info.Size()))
				f.Close()
			}
		}
		_ = os.RemoveAll(name)
	}
}
