package docker

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
)

// The shim's bytes can be read in two ways: through the archive of the seed, which any user of the engine may
// ask for, and as the files that they are, where they lie on this machine and this process may read them.
// The archive decides. The engine starts a process of its own for it and sends 20 MB through a socket, which
// is most of what a look takes; so files that are to the byte what is wanted spare it. Whatever else
// they are, or cannot be seen to be, is for the archive to tell: nothing is drift because of what was read here.

// toolView is what stands at /.sandplan of a seed.
type toolView struct {
	content any
	// volume is the one in whose files it was read on this machine; "" when the seed's archive told.
	volume string
}

// confirmTool reports whether a volume, as it lies on this machine, holds sandplan's own program and nothing else.
func (e *Engine) confirmTool(ctx context.Context, seed, volume string) (map[string]any, bool) {
	dir := e.info.DataDir
	if volume == "" || !e.apart.known || len(e.apart.names) > 0 || !filepath.IsAbs(dir) {
		return nil, false
	}
	// What listens at the socket may pass the calls on to an engine that is elsewhere, and another engine's data
	// may lie here under the same path. But only the engine that made the seed has a directory of its ID, which is random.
	if p, err := findPlace(filepath.Join(dir, "containers", seed)); err != nil || !p.isDir() {
		return nil, false
	}
	own, err := e.own()
	if err != nil {
		return nil, false
	}
	want := shimContent(own.binary)
	got, err := hashFiles(ctx, filepath.Join(dir, "volumes", volume, "_data"), slices.Sorted(maps.Keys(want)))
	return want, err == nil && maps.Equal(got, want)
}

// plainVolume is the name of a volume whose bytes are the files in its directory, and nothing that the engine
// mounts there; "" for any other. The volume is in the form of rows.
func plainVolume(v tree) string {
	options, _ := v["Options"].(map[string]any)
	if v["Driver"] != "local" || len(options) > 0 || v["Mountpoint"] != inDataDir {
		return ""
	}
	return treeName(v)
}
