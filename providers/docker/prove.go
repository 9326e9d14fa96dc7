package docker

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/sandplan/sandplan/planner"
)

// ProveShared makes sure that paths mean the same to this process and to the engine, before anything is
// made of them: an engine in another mount namespace (in a container, in a virtual machine behind a
// forwarded socket) would mount another directory under a worktree's path. Where the engine's process
// can be looked at, its namespaces tell; else a random word is written here and read back through the
// archive of a container that has the directory mounted and never starts.
func (e *Engine) ProveShared(ctx context.Context, scope planner.Scope) error {
	if e.apart.known {
		if len(e.apart.names) == 0 {
			return nil
		}
		return e.apartError()
	}
	dir, name, word, err := writeWord(e.options.DataDir)
	if err != nil {
		return fmt.Errorf("prove that the engine sees this machine's files: %w", err)
	}
	defer os.RemoveAll(dir)
	got, err := e.readThroughEngine(ctx, scope, dir, name)
	if err != nil {
		return fmt.Errorf("prove that the engine sees this machine's files: %w", err)
	}
	if got != word {
		return fmt.Errorf("the engine at %s does not see this machine's files: what was written to %s is not there for it; "+
			"run sandplan where the engine runs", e.host, filepath.Join(dir, name))
	}
	return nil
}

// proveOnce is all that must hold before the first object that this process makes. Only a success is kept:
// what failed for a passing reason is tried again with the next object.
func (e *Engine) proveOnce(ctx context.Context, scope planner.Scope) error {
	e.proof.Lock()
	defer e.proof.Unlock()
	if e.proved {
		return nil
	}
	err := e.ProveShared(ctx, scope)
	if err == nil {
		err = e.refuseTomorrow(ctx, scope)
	}
	e.proved = err == nil
	return err
}

func (e *Engine) apartError() error {
	return fmt.Errorf("the engine at %s runs in another %s namespace: worktrees and bridges seen from here are not its own; "+
		"run sandplan where the engine runs", e.host, strings.Join(e.apart.names, " and "))
}

// writeWord writes a random word into a directory of its own below dir.
func writeWord(dir string) (made, name, word string, err error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", "", "", err
		}
	}
	if made, err = os.MkdirTemp(dir, "proof-"); err != nil {
		return "", "", "", err
	}
	name, word = "word", rand.Text()
	if err := os.WriteFile(filepath.Join(made, name), []byte(word), 0o600); err != nil {
		return "", "", "", errors.Join(err, os.RemoveAll(made))
	}
	return made, name, word, nil
}

// readThroughEngine is the content of dir/name as the engine sees it, "" when it sees none.
func (e *Engine) readThroughEngine(ctx context.Context, scope planner.Scope, dir, name string) (string, error) {
	img, err := newLockImage(e.info.Arch)
	if err != nil {
		return "", err
	}
	const at = "/proof"
	labels, err := e.helperLabels(scope, "")
	if err != nil {
		return "", err
	}
	id, err := createFrom(ctx, e.cli, img, func() (string, error) {
		made, err := e.cli.ContainerCreate(ctx, &container.Config{Image: img.ID, NetworkDisabled: true, Labels: labels},
			&container.HostConfig{NetworkMode: "none", RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
				Mounts: []mount.Mount{{Type: mount.TypeBind, Source: dir, Target: at, ReadOnly: true}}},
			nil, nil, "")
		return made.ID, err
	})
	if err != nil {
		// Mounts, unlike Binds, never create their source: here the engine says that it is not there.
		if strings.Contains(err.Error(), "bind source path does not exist") {
			return "", nil
		}
		return "", err
	}
	defer func() {
		_ = e.cli.ContainerRemove(context.WithoutCancel(ctx), id, container.RemoveOptions{Force: true})
	}()
	archive, _, err := e.cli.CopyFromContainer(ctx, id, at+"/"+name)
	if err != nil {
		return "", err
	}
	defer archive.Close()
	files := tar.NewReader(archive)
	if _, err := files.Next(); err != nil {
		return "", err
	}
	word, err := io.ReadAll(io.LimitReader(files, 1<<10))
	return string(word), err
}
