package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/container"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
)

// kindInspection marks the container that Pin looks into an image through. It belongs to no scope.
const kindInspection planner.Kind = "inspection"

// Missing says what there is to do about a pinned image that the engine does not have; "" where it has it.
func (e *Engine) Missing(ctx context.Context, l hclspec.LockImage) (string, error) {
	p, err := e.findLocked(ctx, l)
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return refused.detail, nil
	case err != nil || p.present:
		return "", err
	case p.missing != "":
		return p.missing, nil
	}
	return fmt.Sprintf("The engine does not have the image %s yet. `sandplan apply` pulls %s.", l.Ref, p.pull), nil
}

// Pin says what an image is now, for the lock file. For an agent's image it also looks inside, once:
// whether there is a shell, and which of the proven CLIs it holds.
func (e *Engine) Pin(ctx context.Context, ref string, agent bool) (hclspec.LockImage, error) {
	got, err := e.imageAt(ctx, ref)
	if errdefs.IsNotFound(err) {
		hint := ""
		if agent {
			hint = fmt.Sprintf(". An image for Claude Code or Codex is made by `scripts/agent-image claude|codex VERSION %s` in sandplan's repository, or from a Dockerfile in docs/vendors.md", ref)
		}
		return hclspec.LockImage{}, fmt.Errorf("the engine (%s) has no image %s: build it (`docker build -t %s DIRECTORY`), load it (`docker load -i FILE`), "+
			"or pull it (`docker pull %s`), then run `sandplan init` again%s", e.host, ref, ref, ref, hint)
	}
	if err != nil {
		return hclspec.LockImage{}, err
	}
	p, err := e.usable(ref, got)
	if err != nil {
		return hclspec.LockImage{}, err
	}
	l := hclspec.LockImage{Ref: ref, Digest: digestOf(ref, got.RepoDigests), IDs: []string{p.id}, Config: p.config}
	if !agent {
		return l, nil
	}
	if l.CLI, l.Shell, err = e.lookInside(ctx, p); err != nil {
		return hclspec.LockImage{}, fmt.Errorf("look into image %s: %w", ref, err)
	}
	l.Inspected = true
	return l, nil
}

// digestOf is the digest under which the image was pulled from its registry, "" for a local build.
func digestOf(ref string, repoDigests []string) string {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return ""
	}
	for _, d := range repoDigests {
		other, err := reference.ParseNormalizedNamed(d)
		if err != nil || other.Name() != named.Name() {
			continue
		}
		if c, ok := other.(reference.Canonical); ok {
			return c.Digest().String()
		}
	}
	return ""
}

// lookInside reads files of an image through a container that never runs. A VOLUME of the image is
// covered there as it will be in an agent's container.
func (e *Engine) lookInside(ctx context.Context, p pinnedImage) (cli string, shell bool, err error) {
	id, err := e.createInspection(ctx, p)
	if err != nil {
		return "", false, err
	}
	defer func() {
		// It must go even when the command is interrupted.
		e.cli.ContainerRemove(context.WithoutCancel(ctx), id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	}()
	shell, sums, err := e.lookThrough(ctx, id)
	if err != nil {
		return "", false, err
	}
	for _, kind := range []string{policy.KindClaude, policy.KindCodex} {
		sum := sums[policy.CLIPath(kind)]
		if sum == "" { // it lies behind a link, or the look ended before it
			if sum, err = e.hashFile(ctx, id, policy.CLIPath(kind)); err != nil {
				return "", false, err
			}
		}
		if of, version, ok := policy.IdentifyCLI(sum); ok && of == kind {
			return version, shell, e.refuseManaged(ctx, id, kind)
		}
	}
	return "", shell, nil
}

// lookThrough looks at every file of a container's image: there is no place where a shell would do no harm.
// It hashes the CLIs on the way, which are nearly all of their images.
func (e *Engine) lookThrough(ctx context.Context, id string) (shell bool, sums map[string]string, err error) {
	body, _, err := e.cli.CopyFromContainer(ctx, id, "/")
	if err != nil {
		return false, nil, err
	}
	defer body.Close()
	return readRoot(body)
}

// readRoot reads the archive of a root directory, up to the first shell.
func readRoot(archive io.Reader) (shell bool, sums map[string]string, err error) {
	sums = map[string]string{}
	for tr := tar.NewReader(archive); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return false, sums, nil
		}
		if err != nil {
			return false, nil, err
		}
		isLink, isFile := h.Typeflag == tar.TypeLink || h.Typeflag == tar.TypeSymlink, h.Typeflag == tar.TypeReg
		if (isLink || isFile && h.Mode&0o111 != 0) && policy.IsInterpreter(h.Name) {
			return true, sums, nil
		}
		if file := path.Join("/", h.Name); isFile && (file == policy.CLIPath(policy.KindClaude) || file == policy.CLIPath(policy.KindCodex)) {
			if sums[file], err = hashOf(tr); err != nil {
				return false, nil, err
			}
		}
	}
}

func hashOf(r io.Reader) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// refuseManaged is an error when an image holds what the CLI of a kind obeys before its flags.
func (e *Engine) refuseManaged(ctx context.Context, id, kind string) error {
	dir := policy.ManagedDir(kind)
	if dir == "" {
		return nil
	}
	_, err := e.cli.ContainerStatPath(ctx, id, dir)
	switch {
	case errdefs.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("it holds %s, which its CLI obeys before anything that sandplan tells it; build it without", dir)
}

// createInspection creates the container, without a name: several may look into one image at a time.
// What a process that is dead has left behind is removed; who made it is told by the labels of a lock.
func (e *Engine) createInspection(ctx context.Context, p pinnedImage) (string, error) {
	self, err := thisProcess("/proc", e.options)
	if err != nil {
		return "", err
	}
	self.Operation = "init"
	labels := lockLabels(planner.Scope{}, "", kindInspection, self)
	old, err := e.list(ctx, listContainers, url.Values{"all": {"1"},
		"filters": {planner.JSON(map[string][]string{"label": {labelKind + "=" + string(kindInspection)}}).Text()}})
	if err != nil {
		return "", err
	}
	for _, v := range old {
		if !isDead("/proc", self, readLock(treeID(v), labelsOf(treeLabels(v)))) {
			continue
		}
		if err := removeContainer(ctx, e, planner.Object{ID: treeID(v), Name: treeName(v)}); err != nil {
			return "", err
		}
	}
	config := hardenedConfig(p.id, []string{})
	config.User = proxyUser
	config.Labels = labels
	host := hardenedHost(limits{memory: 16 * mib, nanoCPUs: 1e9, pids: 16}, ProxySeccomp())
	host.Tmpfs = map[string]string{}
	for _, v := range p.config.Volumes {
		host.Tmpfs[path.Clean(v)] = "rw,nosuid,nodev,noexec,size=4096"
	}
	made, err := e.cli.ContainerCreate(ctx, &config, &host, nil, nil, "")
	return made.ID, err
}

// hashFile is the SHA-256 of a regular file of a container in hex, "" when there is none.
func (e *Engine) hashFile(ctx context.Context, id, file string) (string, error) {
	const links = 8
	for range links {
		stat, err := e.cli.ContainerStatPath(ctx, id, file)
		if errdefs.IsNotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if stat.Mode&os.ModeSymlink == 0 {
			break
		}
		file = stat.LinkTarget // the engine has resolved it within the container
	}
	body, stat, err := e.cli.CopyFromContainer(ctx, id, file)
	if errdefs.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer body.Close()
	if !stat.Mode.IsRegular() {
		return "", nil
	}
	tr := tar.NewReader(body)
	if _, err := tr.Next(); err != nil {
		return "", err
	}
	return hashOf(tr)
}
