package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
)

// kindLock is the kind of the lock image and of the containers that are locks. They are in no plan.
const kindLock planner.Kind = "lock"

// proxyUser runs whatever runs from sandplan.image, unless a container says otherwise.
var proxyUser = policy.User{UID: policy.ProxyUID, GID: policy.ProxyUID}.String()

// ownImage is an image that this program makes by itself: no Dockerfile, no registry, no tag. Its
// ID is the hash of its content, so it is known before the image exists, and is all of its
// declaration. Tags are avoided on purpose: a tag is a name, and a name can be somebody else's.
type ownImage struct {
	ID     string // sha256:…
	img    v1.Image
	binary *binary // nil for the lock image
}

// lazyOwnImage reads and hashes the binary when sandplan.image is first needed, and once only.
func lazyOwnImage(o Options) func() (*ownImage, error) {
	return sync.OnceValues(func() (*ownImage, error) {
		if !filepath.IsAbs(o.Self) {
			return nil, fmt.Errorf("the path of the sandplan binary, %q, is not absolute", o.Self)
		}
		b, err := readBinary(o.Self)
		if err != nil {
			return nil, err
		}
		return newToolImage(b)
	})
}

// newToolImage is sandplan.image: nothing but the binary.
func newToolImage(b *binary) (*ownImage, error) {
	i, err := newOwnImage(b.arch, planner.KindImage, v1.Config{
		Entrypoint: []string{toolBinary},
		User:       proxyUser,
		WorkingDir: "/",
	}, b)
	if err != nil {
		return nil, err
	}
	i.binary = b
	return i, nil
}

// newLockImage is the image that locks are containers of. It holds no file at all: a lock is never
// started, and never changes: every version of this program with the same schema has the same one.
func newLockImage(arch string) (*ownImage, error) {
	return newOwnImage(arch, kindLock, v1.Config{
		Entrypoint: []string{"/never-started"},
		User:       "65532:65532",
		WorkingDir: "/",
	})
}

// newOwnImage gives the image the two labels that say what it is. Containers inherit the labels of
// their image, so there is nothing of a scope among them.
func newOwnImage(arch string, kind planner.Kind, cfg v1.Config, layers ...v1.Layer) (*ownImage, error) {
	cfg.Labels = map[string]string{labelSchema: planner.Schema, labelKind: string(kind)}
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: arch,
		OS:           "linux",
		Created:      v1.Time{Time: time.Unix(0, 0).UTC()},
		RootFS:       v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{}},
		Config:       cfg,
	})
	if err != nil {
		return nil, fmt.Errorf("make the %s image: %w", kind, err)
	}
	if img, err = mutate.AppendLayers(img, layers...); err != nil {
		return nil, fmt.Errorf("make the %s image: %w", kind, err)
	}
	id, err := img.ConfigName()
	if err != nil {
		return nil, fmt.Errorf("make the %s image: %w", kind, err)
	}
	return &ownImage{ID: id.String(), img: img}, nil
}

// load sends the image to the engine and makes sure that the engine has it under the ID that was
// planned. Loading an image that is there already changes nothing.
func (i *ownImage) load(ctx context.Context, cli *client.Client) error {
	pr, pw := io.Pipe()
	go func() {
		// A digest as reference: docker save's format, without a tag.
		ref, err := name.NewDigest("sandplan@" + i.ID)
		if err == nil {
			err = tarball.Write(ref, i.img, pw)
		}
		pw.CloseWithError(err)
	}()
	resp, err := cli.ImageLoad(ctx, pr, client.ImageLoadWithQuiet(true))
	pr.CloseWithError(errors.New("the engine stopped reading"))
	if err != nil {
		return fmt.Errorf("load image %s: %w", shortID(i.ID), err)
	}
	defer resp.Body.Close()
	if err := loadError(resp.Body); err != nil {
		return fmt.Errorf("load image %s: %w", shortID(i.ID), err)
	}
	got, err := cli.ImageInspect(ctx, i.ID)
	if err != nil {
		return fmt.Errorf("load image %s: the engine took it and does not have it: %w", shortID(i.ID), err)
	}
	if got.ID != i.ID {
		return fmt.Errorf("load image %s: the engine gave it the ID %s; sandplan needs an image store "+
			"whose IDs are those of the image's configuration (overlay2, not the containerd store)", i.ID, got.ID)
	}
	return nil
}

// loadError reads the engine's answer to a load to its end. A load that fails half-way has been
// answered with 200 by then, and says so only in the stream.
func loadError(r io.Reader) error {
	dec := json.NewDecoder(r)
	for {
		var msg struct {
			Error string `json:"error"`
		}
		switch err := dec.Decode(&msg); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the engine's answer: %w", err)
		case msg.Error != "":
			return errors.New(msg.Error)
		}
	}
}

// maxTries bounds how often a call is made again that failed because other scopes removed the image.
const maxTries = 10

// provide loads the image, again when another scope's destroy removes it in the middle.
func (i *ownImage) provide(ctx context.Context, cli *client.Client) error {
	for try := 1; ; try++ {
		err := i.load(ctx, cli)
		if !isTakenAway(err) || try == maxTries {
			return err
		}
		if err := pause(ctx, settleTime); err != nil {
			return err
		}
	}
}

// createFrom creates a container from an image of ours. When the engine does not have the image (any
// more: it belongs to no scope, so another scope's destroy may just have removed it), the image is
// loaded, and the create tried again.
func createFrom(ctx context.Context, cli *client.Client, i *ownImage, create func() (string, error)) (string, error) {
	for try := 1; ; try++ {
		id, err := create()
		if !isNoSuchImage(err) && !isHalfGone(err) || try == maxTries {
			return id, err
		}
		if err := i.provide(ctx, cli); err != nil {
			return "", err
		}
	}
}

// isTakenAway reports whether loading an image failed because it was removed at the same time. The
// engine has no code for it, only these words (20.10 to 28.5).
func isTakenAway(err error) bool {
	return isNoSuchImage(err) || isHalfGone(err) || err != nil && strings.Contains(err.Error(), "failed to get layer")
}

// isHalfGone: the image was still there when the engine began, its configuration or its layer was not when it got
// to it. It answers 500 then; a call that begins later is told that there is no such image.
func isHalfGone(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "failed to get digest") || strings.Contains(err.Error(), "layer does not exist"))
}

// isNoSuchImage tells a missing image from a missing network or volume, which are 404 as well.
func isNoSuchImage(err error) bool {
	return err != nil && errdefs.IsNotFound(err) && strings.Contains(strings.ToLower(err.Error()), "no such image")
}

// removeOwnImage removes an image of ours unless a container uses it: whoever removes the last
// container removes the image too, and nobody else can. The engine decides, because it alone sees
// other scopes: it is asked without force and answers 409 for "in use". Of two removals at once one
// fails, and the image is gone all the same.
func removeOwnImage(ctx context.Context, cli *client.Client, id string) error {
	for try := 1; ; try++ {
		_, err := cli.ImageRemove(ctx, id, image.RemoveOptions{PruneChildren: true})
		if err == nil || errdefs.IsNotFound(err) || errdefs.IsConflict(err) {
			return nil
		}
		if try == maxTries || !strings.Contains(err.Error(), "unrecognized image") {
			return fmt.Errorf("remove image %s: %w", shortID(id), err)
		}
		if err := pause(ctx, settleTime); err != nil {
			return err
		}
	}
}

// desiredTool is sandplan.image as one of a scope's objects.
type desiredTool struct{ image *ownImage }

func (d desiredTool) tree() tree { return tree{"Id": d.image.ID} }

// create ignores the labels of a scope: the image belongs to the engine.
func (d desiredTool) create(ctx context.Context, e *Engine, _ map[string]string, _ planner.IDs) (string, error) {
	return d.image.ID, d.image.provide(ctx, e.cli)
}

func toolKind() kind {
	return kind{
		name:    planner.KindImage,
		table:   newTable(nil, imageRows("", "id")),
		find:    findTool,
		inspect: loadedTool,
		remove:  removeTool,
	}
}

// loadedTool is an image that load has just looked at. By now another scope's destroy may have removed it again: no
// container keeps it yet, and whoever makes one loads it once more.
func loadedTool(_ context.Context, _ *Engine, id string) (tree, error) { return tree{"Id": id}, nil }

// findTool finds the image that the scope's containers were made from: as long as one of them has
// another version's, that one is to be replaced. Without containers it is the one that this program
// would make.
func findTool(ctx context.Context, l *look) ([]planner.Object, error) {
	own := ""
	if img, err := l.engine.own(); err == nil { // where it cannot be made, destroy must work all the same
		own = img.ID
	}
	ids := []string{own}
	for _, kind := range []planner.Kind{planner.KindProxy, kindSeed} {
		containers, err := l.containersOf(ctx, kind)
		if err != nil {
			return nil, err
		}
		for _, c := range containers {
			if id, _ := c["ImageID"].(string); id != "" && id != own {
				ids = append([]string{id}, ids...)
			}
		}
	}
	for _, id := range slices.Compact(ids) {
		if id == "" {
			continue
		}
		got, err := l.engine.imageAt(ctx, id)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if got.Config == nil || got.Config.Labels[labelKind] != string(planner.KindImage) {
			continue // somebody else's, which a tampered container has: its own rows say so
		}
		k, err := l.engine.kind(planner.KindImage)
		if err != nil {
			return nil, err
		}
		o := imageObject(k, planner.AddrImage, id, "sandplan")
		o.Shared = l.usedElsewhere(id)
		return []planner.Object{o}, nil
	}
	return nil, nil
}

// usedElsewhere reports whether a container of another scope was made from an image.
func (l *look) usedElsewhere(image string) bool {
	return slices.ContainsFunc(l.listed[listContainers], func(v tree) bool {
		id, ok := readIdentity(labelsOf(treeLabels(v)))
		return ok && id.scope != l.scope && v["ImageID"] == image
	})
}

// imageObject is an image as a plan sees it. Its ID is the hash of its content, so it is its own
// declaration, and nobody can change it.
func imageObject(k *kind, a planner.Address, id, name string) planner.Object {
	fields := k.table.observed(tree{"Id": id}, nil)
	o := planner.Object{Addr: a, Kind: k.name, ID: id, Name: name, Schema: planner.Schema,
		Observed: fields, Declared: fields, Digest: planner.Digest(fields)}
	o.Fingerprint = fingerprint(o)
	return o
}

// imageRows: the ID says it all. It is looked at by nothing but its ID, so of the rest nothing is even read.
func imageRows(attr, label string) []row {
	rows := []row{{path: "Id", norm: text, attr: attr, label: label, show: planner.Headline}}
	const (
		content  = "part of what Id is the hash of"
		name     = "a name, which may move: containers are made by Id"
		byEngine = "written by the engine for itself; no container gets it"
	)
	for reason, paths := range map[string][]string{
		content:  {"Config", "RootFS", "Architecture", "Variant", "Os", "OsVersion", "Author", "Comment", "Created", "DockerVersion", "Container", "ContainerConfig"},
		name:     {"RepoTags", "RepoDigests", "Descriptor", "Manifests"},
		byEngine: {"Parent", "Size", "VirtualSize", "GraphDriver", "Metadata"},
	} {
		for _, path := range paths {
			rows = append(rows, row{path: path, class: planner.ClassIgnored, reason: reason})
		}
	}
	return rows
}

// inspectImage shows of an image what it is, and leaves away where and how the engine keeps it.
func inspectImage(ctx context.Context, e *Engine, id string) (tree, error) {
	got, err := e.imageAt(ctx, id)
	if err != nil {
		return nil, err
	}
	return tree{"Id": got.ID}, nil
}

// shortID is an ID as people read it.
func shortID(id string) string {
	_, hex, found := strings.Cut(id, ":")
	if !found {
		hex = id
	}
	return hex[:min(12, len(hex))]
}
