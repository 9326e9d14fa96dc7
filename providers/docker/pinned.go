package docker

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
)

// Pinned images are the users': found, pulled when they are absent and have a digest, and used by their
// ID. They are never labelled, changed or removed.

// pinnedImage is an image as the lock file pins it and the engine has it.
type pinnedImage struct {
	ref    string
	id     string // known at plan, whether or not the image is there
	config hclspec.ImageConfig
	// pull is REF@digest for an image that is not there and can be pulled.
	pull    string
	present bool
	// missing says what to do about an image that is not there and that no registry has. It is no mistake in
	// the configuration, and all else can be compared: see Compiled.Obstacles.
	missing string
}

var (
	imageID   = regexp.MustCompile(`^(?:sha256:)?[0-9a-f]{64}$`)
	digestRef = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
)

// findPinned finds the image that a reference stands for. Errors are refusals, with what was looked
// for and how to get it. The image of an agent must have been looked into, whatever its name says.
func (e *Engine) findPinned(ctx context.Context, ref string, agent bool, lock hclspec.Lock) (pinnedImage, error) {
	i := slices.IndexFunc(lock.Images, func(l hclspec.LockImage) bool { return l.Ref == ref })
	switch {
	case i >= 0 && agent && !lock.Images[i].Inspected:
		return pinnedImage{}, &refusal{summaryImage, fmt.Sprintf("%s does not say what the agent's image %s holds (cli, shell). Run `sandplan init`, which looks into it.",
			orElse("The lock file")(nonEmpty(lock.Path)), ref)}
	case i >= 0:
		return e.findLocked(ctx, lock.Images[i])
	case !agent && (imageID.MatchString(ref) || digestRef.MatchString(ref)):
		return e.findExact(ctx, ref)
	}
	return pinnedImage{}, &refusal{summaryImage, fmt.Sprintf("The image %s is not pinned: %s has no entry for it. "+
		"Run `sandplan init`, which writes down what it is now.", ref, orElse("the lock file")(nonEmpty(lock.Path)))}
}

// findExact finds an image that the configuration itself names by content.
func (e *Engine) findExact(ctx context.Context, ref string) (pinnedImage, error) {
	got, err := e.imageAt(ctx, ref)
	switch {
	case errdefs.IsNotFound(err) && digestRef.MatchString(ref):
		return pinnedImage{}, &refusal{summaryImage, fmt.Sprintf("The engine does not have the image %s, and its ID is not known before it does. "+
			"Run `docker pull %s`, or `sandplan init`, which pins the ID as well.", ref, ref)}
	case errdefs.IsNotFound(err):
		return pinnedImage{}, &refusal{summaryImage, fmt.Sprintf("The engine does not have the image %s. Build it or load it (`docker load -i FILE`); an ID names exactly one image.", ref)}
	case err != nil:
		return pinnedImage{}, err
	}
	return e.usable(ref, got)
}

// findLocked finds an image by what its entry in the lock file says.
func (e *Engine) findLocked(ctx context.Context, l hclspec.LockImage) (pinnedImage, error) {
	for _, id := range l.IDs {
		got, err := e.imageAt(ctx, id)
		if err == nil && got.Architecture == e.info.Arch {
			return e.usable(l.Ref, got)
		}
		if err != nil && !errdefs.IsNotFound(err) {
			return pinnedImage{}, err
		}
	}
	switch {
	case l.Digest == "" && len(l.IDs) == 1:
		return pinnedImage{ref: l.Ref, id: l.IDs[0], config: l.Config, missing: e.missingLocal(ctx, l)}, nil
	case l.Digest == "":
		return pinnedImage{}, &refusal{summaryImage, e.missingLocal(ctx, l)}
	}
	pull, err := pullRef(l.Ref, l.Digest)
	if err != nil {
		return pinnedImage{}, &refusal{summaryImage, sentence(err)}
	}
	got, err := e.imageAt(ctx, pull)
	switch {
	case err == nil:
		return e.usable(l.Ref, got)
	case !errdefs.IsNotFound(err):
		return pinnedImage{}, err
	case len(l.IDs) != 1:
		return pinnedImage{}, &refusal{summaryImage, fmt.Sprintf("The engine does not have the image %s, and the lock file names %d IDs for it, so that "+
			"its ID is not known before it is there. Run `docker pull %s`.", l.Ref, len(l.IDs), pull)}
	}
	return pinnedImage{ref: l.Ref, id: l.IDs[0], config: l.Config, pull: pull}, nil
}

// missingLocal says what is missing of an image that no registry has, and what stands under its name.
func (e *Engine) missingLocal(ctx context.Context, l hclspec.LockImage) string {
	now, err := e.imageAt(ctx, l.Ref)
	if err == nil {
		return fmt.Sprintf("The lock file pins %s to %s, and the engine has %s under that name now. If the new one is what you want, run "+
			"`sandplan init -upgrade`; otherwise load the pinned one (`docker load -i FILE`).", l.Ref, strings.Join(l.IDs, ", "), now.ID)
	}
	return fmt.Sprintf("The engine does not have the image %s, which the lock file pins to %s, and it is in no registry. Load it (`docker load -i FILE`), "+
		"or build it (`docker build -t %s DIRECTORY`) and run `sandplan init -upgrade`, because a new build has a new ID.", l.Ref, strings.Join(l.IDs, ", "), l.Ref)
}

func (e *Engine) usable(ref string, got image.InspectResponse) (pinnedImage, error) {
	if got.Os != "linux" || got.Architecture != e.info.Arch {
		return pinnedImage{}, &refusal{summaryImage, fmt.Sprintf("The image %s is for %s/%s, and the engine runs linux/%s. Build or pull it for that platform.",
			ref, got.Os, got.Architecture, e.info.Arch)}
	}
	return pinnedImage{ref: ref, id: got.ID, config: inherited(got), present: true}, nil
}

// imageAt looks at an image. What another scope's destroy removes at this moment is half gone, and then gone.
func (e *Engine) imageAt(ctx context.Context, ref string) (image.InspectResponse, error) {
	for try := 1; ; try++ {
		got, err := e.cli.ImageInspect(ctx, ref)
		if err == nil {
			return got, nil
		}
		if !isHalfGone(err) || try == maxTries {
			return got, fmt.Errorf("look at image %s: %w", ref, err)
		}
		if err := pause(ctx, settleTime); err != nil {
			return got, err
		}
	}
}

// inherited is what a container gets from its image unless every part of it is overridden. What is
// always overridden (user, command, health check, stop signal, …) is not among it.
func inherited(got image.InspectResponse) hclspec.ImageConfig {
	c := hclspec.ImageConfig{Env: map[string]string{}, Labels: map[string]string{}}
	if got.Config == nil {
		return c
	}
	for _, kv := range got.Config.Env {
		if name, value, _ := strings.Cut(kv, "="); name != "" {
			c.Env[name] = value
		}
	}
	for k, v := range got.Config.Labels {
		c.Labels[k] = v
	}
	c.Volumes = sortedKeys(got.Config.Volumes)
	c.ExposedPorts = sortedKeys(got.Config.ExposedPorts)
	return c
}

// pullRef is REPOSITORY@digest: a tag beside a digest would say nothing.
func pullRef(ref, digest string) (string, error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return "", fmt.Errorf("the image name %q: %w", ref, err)
	}
	return reference.TrimNamed(named).String() + "@" + digest, nil
}

// tree and create make it a desired object: what is wanted of it is its ID.
func (p pinnedImage) tree() tree { return tree{"Id": p.id} }

func (p pinnedImage) create(ctx context.Context, e *Engine, _ map[string]string, _ planner.IDs) (string, error) {
	if p.pull == "" {
		_, err := e.imageAt(ctx, p.id)
		switch {
		case err != nil && p.missing != "":
			return "", errors.New(p.missing)
		case err != nil:
			return "", fmt.Errorf("image %s went away since it was planned: %w", p.ref, err)
		}
		return p.id, nil
	}
	auth, err := e.registryAuth(p.pull)
	if err != nil {
		return "", err
	}
	body, err := e.cli.ImagePull(ctx, p.pull, image.PullOptions{RegistryAuth: auth, Platform: "linux/" + e.info.Arch})
	if err != nil {
		return "", fmt.Errorf("pull %s: %w; `docker pull %s` may tell more", p.pull, err, p.pull)
	}
	defer body.Close()
	if err := loadError(body); err != nil {
		return "", fmt.Errorf("pull %s: %w; `docker pull %s` may tell more", p.pull, err, p.pull)
	}
	got, err := e.imageAt(ctx, p.pull)
	if err != nil {
		return "", err
	}
	if got.ID != p.id {
		return "", fmt.Errorf("pull %s: it is %s, and the lock file says %s; run `sandplan init -upgrade` after finding out why", p.pull, got.ID, p.id)
	}
	return got.ID, nil
}

// object is the image as a plan sees it.
func (p pinnedImage) object(k *kind, a planner.Address) planner.Object {
	return imageObject(k, a, p.id, p.ref)
}

// pinnedKind has no list: nothing on the engine says which images a scope pins (see Compiled.Complete).
func pinnedKind() kind {
	return kind{
		name:    planner.KindPinned,
		table:   newTable(nil, imageRows("image", "")),
		find:    func(context.Context, *look) ([]planner.Object, error) { return nil, nil },
		inspect: inspectImage,
		remove: func(context.Context, *Engine, planner.Object) error {
			return errors.New("pinned images are never removed")
		},
	}
}
