package dockertest

import (
	"net/http"
	"path"
	"strings"
	"time"
)

// fakeVolume is a volume: what inspect answers, and its files by their path from its root.
type fakeVolume struct {
	tree  tree
	files map[string]file
}

// file is a file or a directory of an image or a volume.
type file struct {
	dir      bool
	mode     int64
	uid, gid int
	content  []byte
}

func (v *fakeVolume) name() string { return text(v.tree["Name"]) }

// seed copies what an image has at a directory into a volume without content.
func (v *fakeVolume) seed(image *fakeImage, dir string) {
	if len(v.files) > 0 {
		return
	}
	for p, content := range image.files {
		if rest, below := strings.CutPrefix(p, path.Clean(dir)+"/"); below {
			v.files[rest] = content
		}
	}
}

// volumeNamed is the volume of a name, made when there is none.
func (f *Fake) volumeNamed(name string, asked tree) *fakeVolume {
	if v := f.volumes[name]; v != nil {
		return v
	}
	v := &fakeVolume{files: map[string]file{}, tree: tree{"Name": name, "Driver": "local", "Scope": "local", "Options": nil, "Labels": nil,
		"CreatedAt": stamp(time.Now().Truncate(time.Second)), "Mountpoint": dataDir + "/volumes/" + name + "/_data"}}
	if asked["Labels"] != nil {
		v.tree["Labels"] = asked["Labels"]
	}
	if options := object(asked["DriverOpts"]); len(options) > 0 {
		v.tree["Options"] = options
	}
	f.volumes[name] = v
	f.tell("volume", "create", name, nil)
	return v
}

// createVolume returns what is there already under the name, as engines do, and says nothing.
func (f *Fake) createVolume(r *http.Request) (any, error) {
	asked := body(r)
	name := text(asked["Name"])
	if name == "" {
		name = f.newID()
	}
	return f.volumeNamed(name, asked).tree, nil
}

func (f *Fake) listVolumes(r *http.Request) (any, error) {
	out := []any{}
	for _, name := range keys(f.volumes) {
		v := f.volumes[name]
		if matches(r, labelsIn(v.tree), func(filter, value string) bool { return filter == "name" && strings.Contains(name, value) }) {
			out = append(out, v.tree)
		}
	}
	return tree{"Volumes": out, "Warnings": nil}, nil
}

func (f *Fake) inspectVolume(r *http.Request) (any, error) {
	v := f.volumes[r.PathValue("id")]
	if v == nil {
		return nil, failure(http.StatusNotFound, "get %s: no such volume", r.PathValue("id"))
	}
	return v.tree, nil
}

func (f *Fake) deleteVolume(r *http.Request) (any, error) {
	name := r.PathValue("id")
	if f.volumes[name] == nil {
		return nil, failure(http.StatusNotFound, "get %s: no such volume", name)
	}
	var users []string
	for _, c := range f.byName() {
		if c.is("volume", name) {
			users = append(users, c.id())
		}
	}
	if len(users) > 0 {
		return nil, failure(http.StatusConflict, "remove %s: volume is in use - [%s]", name, strings.Join(users, ", "))
	}
	delete(f.volumes, name)
	f.tell("volume", "destroy", name, nil)
	return nil, nil
}
