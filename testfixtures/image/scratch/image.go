// Package scratch makes container images from files, without a Dockerfile, a registry or an engine,
// and loads them. Equal input gives an equal image, and its ID is known before it is loaded.
package scratch

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Entry is one file, symbolic link or directory of an image. Missing parents are made, mode 0755.
type Entry struct {
	Path    string // absolute
	Mode    fs.FileMode
	UID     int
	GID     int
	Content []byte
	Source  string // a file or a directory on this machine, instead of Content
	Link    string // what a symbolic link points to
}

// Spec is an image: its files and all that a container can inherit from it.
type Spec struct {
	Arch    string
	Entries []Entry
	Config  v1.Config
}

// Image makes the image. It has one layer, or none when there are no entries.
func Image(s Spec) (v1.Image, error) {
	img := v1.Image(empty.Image)
	if len(s.Entries) > 0 {
		data, err := layer(s.Entries)
		if err != nil {
			return nil, err
		}
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(data)), nil
		})
		if err != nil {
			return nil, err
		}
		if img, err = mutate.AppendLayers(img, l); err != nil {
			return nil, err
		}
	}
	cf, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cf = cf.DeepCopy()
	cf.Architecture, cf.OS, cf.Config = s.Arch, "linux", s.Config
	cf.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	return mutate.ConfigFile(img, cf)
}

// layer is the tar of the entries, sorted, with parents before children and nothing of this machine
// (times, owners, umask) in it.
func layer(entries []Entry) ([]byte, error) {
	all, err := expand(entries)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, e := range all {
		h := &tar.Header{
			Name: strings.TrimPrefix(e.Path, "/"), Mode: int64(unixMode(e.Mode)), Uid: e.UID, Gid: e.GID,
			Size: int64(len(e.Content)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX, Typeflag: tar.TypeReg,
		}
		switch {
		case e.Mode.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		case e.Link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
		}
		if err := tw.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Path, err)
		}
		if _, err := tw.Write(e.Content); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Path, err)
		}
	}
	if err := tw.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// expand reads sources and adds the parents that are not given.
func expand(entries []Entry) ([]Entry, error) {
	byPath := map[string]Entry{}
	for _, e := range entries {
		if !path.IsAbs(e.Path) || path.Clean(e.Path) != e.Path || e.Path == "/" {
			return nil, fmt.Errorf("%q is not a clean absolute path", e.Path)
		}
		read, err := e.read()
		if err != nil {
			return nil, err
		}
		for _, r := range read {
			byPath[r.Path] = r
		}
	}
	for p := range byPath {
		for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
			if _, ok := byPath[dir]; !ok {
				byPath[dir] = Entry{Path: dir, Mode: fs.ModeDir | 0o755}
			}
		}
	}
	all := make([]Entry, 0, len(byPath))
	for _, e := range byPath {
		all = append(all, e)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Path < all[j].Path })
	return all, nil
}

// read is the entry with its content, and all below it when its source is a directory.
func (e Entry) read() ([]Entry, error) {
	if e.Source == "" {
		return []Entry{e}, nil
	}
	var out []Entry
	err := filepath.WalkDir(e.Source, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(e.Source, p)
		if err != nil {
			return err
		}
		one := Entry{Path: path.Join(e.Path, filepath.ToSlash(rel)), UID: e.UID, GID: e.GID}
		info, err := os.Stat(p) // a symbolic link gives what it points to: images need no links of the host
		if err != nil {
			return err
		}
		one.Mode = info.Mode().Perm()
		if rel == "." && e.Mode != 0 {
			one.Mode = e.Mode
		}
		if info.IsDir() {
			one.Mode |= fs.ModeDir
		} else if one.Content, err = os.ReadFile(p); err != nil {
			return err
		}
		out = append(out, one)
		return nil
	})
	return out, err
}

// unixMode is the mode as tar has it, set-id bits included.
func unixMode(m fs.FileMode) uint32 {
	out := uint32(m.Perm())
	for bit, unix := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&bit != 0 {
			out |= unix
		}
	}
	return out
}

// Env adds NAME=value to a configuration, sorted and without duplicates.
func Env(c *v1.Config, kv string) {
	name, _, _ := strings.Cut(kv, "=")
	c.Env = slices.DeleteFunc(c.Env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
	c.Env = append(c.Env, kv)
	sort.Strings(c.Env)
}
