package dockertest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// fakeImage is an image: what inspect answers, and its files by their absolute path.
type fakeImage struct {
	id    string
	tree  tree
	files map[string]file
}

func (i *fakeImage) has(p string) bool {
	_, ok := i.files[p]
	return ok
}

// AddImage gives the fake an image as inspect shows it, with files that matter by their names only.
func (f *Fake) AddImage(inspect map[string]any, files ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := &fakeImage{id: text(inspect["Id"]), tree: inspect, files: map[string]file{}}
	for _, p := range files {
		i.files[p] = file{}
	}
	f.images[i.id] = i
}

func (f *Fake) image(ref string) (*fakeImage, error) {
	if i := f.images[ref]; i != nil {
		return i, nil
	}
	for _, id := range keys(f.images) {
		i := f.images[id]
		if slices.Contains(list(i.tree["RepoTags"]), any(ref)) || len(ref) >= 12 && strings.HasPrefix(strings.TrimPrefix(id, "sha256:"), ref) {
			return i, nil
		}
	}
	if f.profile.byName {
		return nil, failure(http.StatusNotFound, "no such image: %s: No such image: %s", ref, ref)
	}
	return nil, failure(http.StatusNotFound, "No such image: %s", ref)
}

func (f *Fake) inspectImage(r *http.Request) (any, error) {
	ref, ok := strings.CutSuffix(r.PathValue("ref"), "/json")
	if !ok {
		return nil, failure(http.StatusNotFound, "page not found")
	}
	i, err := f.image(ref)
	if err != nil {
		return nil, err
	}
	return i.tree, nil
}

func (f *Fake) deleteImage(r *http.Request) (any, error) {
	i, err := f.image(r.PathValue("ref"))
	if err != nil {
		return nil, err
	}
	for _, c := range f.byName() {
		if c.tree["Image"] == i.id {
			state := "stopped"
			if c.runs() {
				state = "running"
			}
			return nil, failure(http.StatusConflict, "conflict: unable to delete %s (must be forced) - image is being used by %s container %s",
				short(strings.TrimPrefix(i.id, "sha256:")), state, short(c.id()))
		}
	}
	delete(f.images, i.id)
	f.tell("image", "delete", i.id, nil)
	return []any{tree{"Deleted": i.id}}, nil
}

// loadImage reads what docker save writes.
func (f *Fake) loadImage(w http.ResponseWriter, r *http.Request) {
	i, err := readImage(r.Body)
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": err.Error()})
		return
	}
	f.mu.Lock()
	if f.images[i.id] == nil {
		f.images[i.id] = i
	}
	f.tell("image", "load", i.id, nil)
	f.mu.Unlock()
	answered(r)
	raw := fmt.Sprintf("{\"stream\":\"Loaded image ID: %s\\n\"}\n", i.id)
	if faultOf(r).Half {
		_, _ = io.WriteString(w, raw[:len(raw)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, raw)
}

func readImage(r io.Reader) (*fakeImage, error) {
	entries, err := readTar(r)
	if err != nil {
		return nil, err
	}
	var manifest []struct {
		Config   string
		RepoTags []any
		Layers   []string
	}
	if err := json.Unmarshal(entries["/manifest.json"].content, &manifest); err != nil || len(manifest) != 1 {
		return nil, fmt.Errorf("no manifest of one image: %w", err)
	}
	raw := entries["/"+manifest[0].Config].content
	var said struct {
		Architecture, OS string
		Config           tree
		RootFS           tree
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&said); err != nil {
		return nil, fmt.Errorf("the image's configuration is no JSON: %w", err)
	}
	sum := sha256.Sum256(raw)
	i := &fakeImage{id: "sha256:" + hex.EncodeToString(sum[:]), files: map[string]file{}}
	i.tree = tree{"Id": i.id, "Architecture": said.Architecture, "Os": said.OS, "Config": said.Config, "RootFS": said.RootFS,
		"RepoTags": append([]any{}, manifest[0].RepoTags...), "RepoDigests": []any{}, "Created": stamp(time.Unix(0, 0)), "Size": 1}
	for _, layer := range manifest[0].Layers {
		var content io.Reader = bytes.NewReader(entries["/"+layer].content)
		if unzipped, err := gzip.NewReader(content); err == nil {
			content = unzipped
		} else {
			content = bytes.NewReader(entries["/"+layer].content)
		}
		files, err := readTar(content)
		if err != nil {
			return nil, err
		}
		for p, one := range files {
			i.files[p] = one
		}
	}
	return i, nil
}

func readTar(r io.Reader) (map[string]file, error) {
	out := map[string]file{}
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			_, err = io.Copy(io.Discard, r) // so that the writer can end
			return out, err
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			return nil, err
		}
		out[path.Clean("/"+h.Name)] = file{dir: h.Typeflag == tar.TypeDir, mode: h.Mode, uid: h.Uid, gid: h.Gid, content: content}
	}
}

// archive reads files of a container, those in its volumes included.
func (f *Fake) archive(w http.ResponseWriter, r *http.Request) {
	at := path.Clean(r.URL.Query().Get("path"))
	f.mu.Lock()
	c, err := f.container(r.PathValue("id"))
	var files map[string]file
	if err == nil {
		if files = f.filesBelow(c, at); len(files) == 0 {
			err = failure(http.StatusNotFound, "Could not find the file %s in container %s", at, r.PathValue("id"))
		} else {
			f.tell("container", "archive-path", c.id(), nil)
		}
	}
	raw, status := f.encode(nil, http.StatusOK, err)
	f.mu.Unlock()
	if err != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(raw)
		return
	}
	top := files[""]
	mode := fs.FileMode(top.mode & 0o777)
	if top.dir {
		mode |= fs.ModeDir
	}
	stat, _ := json.Marshal(tree{"name": path.Base(at), "size": len(top.content), "mode": uint32(mode), "mtime": stamp(time.Unix(0, 0)), "linkTarget": ""})
	w.Header().Set("X-Docker-Container-Path-Stat", base64.StdEncoding.EncodeToString(stat))
	w.Header().Set("Content-Type", "application/x-tar")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	tw := tar.NewWriter(w)
	for _, rest := range keys(files) {
		one := files[rest]
		h := &tar.Header{Name: path.Join(path.Base(at), rest), Mode: one.mode, Uid: one.uid, Gid: one.gid, Size: int64(len(one.content)), Typeflag: tar.TypeReg}
		if one.dir {
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		}
		_ = tw.WriteHeader(h)
		_, _ = tw.Write(one.content)
	}
	_ = tw.Close()
}

// filesBelow are a file, or a directory and what is below it, by the path from there.
func (f *Fake) filesBelow(c *fakeContainer, at string) map[string]file {
	out := map[string]file{}
	for _, m := range list(c.tree["Mounts"]) {
		m := object(m)
		rest, within := strings.CutPrefix(at+"/", text(m["Destination"])+"/")
		if v := f.volumes[text(m["Name"])]; within && v != nil {
			rest = strings.TrimSuffix(rest, "/")
			if rest == "" {
				out[""] = file{dir: true, mode: 0o755}
			}
			for p, one := range v.files {
				if below, ok := strings.CutPrefix(p+"/", rest+"/"); ok && rest != "" || rest == "" {
					if rest == "" {
						below = p + "/"
					}
					out[strings.TrimSuffix(below, "/")] = one
				}
			}
			return out
		}
	}
	if i, err := f.image(text(c.tree["Image"])); err == nil {
		for p, one := range i.files {
			if below, ok := strings.CutPrefix(p+"/", at+"/"); ok {
				out[strings.TrimSuffix(below, "/")] = one
			}
		}
	}
	return out
}
