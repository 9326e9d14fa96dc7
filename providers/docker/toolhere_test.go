package docker

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What is read on this machine only ever confirms: it takes the very bytes, in the very volume, of the very engine.
func TestToolIsConfirmedHere(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the files of an engine are root's")
	}
	self, err := os.ReadFile(must(os.Executable()))
	if err != nil {
		t.Fatal(err)
	}
	const seed, vol = "5eed", "vol"
	type place struct{ root, data, file string }
	tests := []struct {
		reason string
		change func(t *testing.T, p place, e *Engine)
		want   bool
	}{
		{"as it is wanted", func(*testing.T, place, *Engine) {}, true},
		{"one byte is another", func(t *testing.T, p place, _ *Engine) {
			other := bytes.Clone(self)
			other[len(other)-1] ^= 1
			write(t, p.file, string(other))
		}, false},
		{"a byte more", func(t *testing.T, p place, _ *Engine) { write(t, p.file, string(self)+"\x00") }, false},
		{"may be written", func(t *testing.T, p place, _ *Engine) { succeed(t, os.Chmod(p.file, 0o755)) }, false},
		{"set-id", func(t *testing.T, p place, _ *Engine) { succeed(t, os.Chmod(p.file, 0o555|os.ModeSetuid)) }, false},
		{"another owner", func(t *testing.T, p place, _ *Engine) { succeed(t, os.Chown(p.file, 1, 0)) }, false},
		{"another file beside it", func(t *testing.T, p place, _ *Engine) { write(t, filepath.Join(p.data, "x"), "") }, false},
		{"a link to the right bytes", func(t *testing.T, p place, _ *Engine) {
			succeed(t, os.Rename(p.file, p.root+"/elsewhere"))
			succeed(t, os.Symlink(p.root+"/elsewhere", p.file))
		}, false},
		{"a FIFO, which nobody waits for", func(t *testing.T, p place, _ *Engine) {
			succeed(t, os.Remove(p.file))
			succeed(t, syscall.Mkfifo(p.file, 0o555))
		}, false},
		{"the volume's directory is a link", func(t *testing.T, p place, _ *Engine) {
			succeed(t, os.Rename(p.data, p.root+"/elsewhere"))
			succeed(t, os.Symlink(p.root+"/elsewhere", p.data))
		}, false},
		{"another volume", func(t *testing.T, p place, _ *Engine) {
			succeed(t, os.Rename(filepath.Dir(p.data), p.root+"/volumes/other"))
		}, false},
		{"another engine's data: it knows no such seed", func(t *testing.T, p place, _ *Engine) {
			succeed(t, os.Remove(p.root+"/containers/"+seed))
		}, false},
		{"an engine that cannot be looked at", func(_ *testing.T, _ place, e *Engine) { e.apart = apart{} }, false},
		{"an engine in another mount namespace", func(_ *testing.T, _ place, e *Engine) { e.apart.names = []string{"mount"} }, false},
		{"an engine that does not say where its data is", func(_ *testing.T, _ place, e *Engine) { e.info.DataDir = "" }, false},
	}
	sum := sha256.Sum256(self)
	b := &binary{path: must(os.Executable()), sha256: hex.EncodeToString(sum[:])}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			root := t.TempDir()
			p := place{root: root, data: root + "/volumes/" + vol + "/_data"}
			p.file = p.data + "/sandplan"
			succeed(t, os.MkdirAll(p.data, 0o755))
			succeed(t, os.MkdirAll(root+"/containers/"+seed, 0o755))
			write(t, p.file, string(self))
			succeed(t, os.Chmod(p.file, 0o555))
			e := &Engine{info: Info{DataDir: root}, apart: apart{known: true}, own: func() (*ownImage, error) { return &ownImage{binary: b}, nil }}
			tt.change(t, p, e)
			type answer struct {
				content map[string]any
				ok      bool
			}
			said := make(chan answer, 1)
			go func() {
				content, ok := e.confirmTool(t.Context(), seed, vol)
				said <- answer{content, ok}
			}()
			select {
			case a := <-said:
				if a.ok != tt.want {
					t.Errorf("confirmed: %v, want %v", a.ok, tt.want)
				}
				if a.ok && a.content["sandplan"] != shimContent(b)["sandplan"] {
					t.Errorf("it is said to hold %v", a.content)
				}
			case <-time.After(time.Minute):
				t.Fatal("it waits")
			}
		})
	}
}

// The engine mounts something else over the directory of a volume with options, and one of another driver has none.
func TestPlainVolume(t *testing.T) {
	const dataDir = "/data"
	for _, tt := range []struct {
		reason string
		volume tree
		want   string
	}{
		{"local, in its place", tree{"Name": "v", "Driver": "local", "Options": nil, "Mountpoint": "/data/volumes/v/_data"}, "v"},
		{"no options, spelled out", tree{"Name": "v", "Driver": "local", "Options": map[string]any{}, "Mountpoint": "/data/volumes/v/_data"}, "v"},
		{"a bind by way of options", tree{"Name": "v", "Driver": "local", "Options": map[string]any{"o": "bind", "device": "/evil"}, "Mountpoint": "/data/volumes/v/_data"}, ""},
		{"another driver", tree{"Name": "v", "Driver": "nfs", "Mountpoint": "/data/volumes/v/_data"}, ""},
		{"elsewhere", tree{"Name": "v", "Driver": "local", "Mountpoint": "/data/volumes/w/_data"}, ""},
	} {
		arrangeVolume(tt.volume, dataDir)
		if got := plainVolume(tt.volume); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.reason, got, tt.want)
		}
	}
}

// Files of one volume say nothing of a seed that has another one there.
func TestBytesReadAheadAreThoseOfTheVolume(t *testing.T) {
	for volume, want := range map[string]string{"vol": "read ahead", "other": ""} {
		cli, err := client.NewClientWithOpts(client.WithHost("unix:///nobody"), client.WithVersion(minAPI))
		if err != nil {
			t.Fatal(err)
		}
		l := &look{engine: &Engine{cli: cli}}
		early := &ahead{seed: "seed", view: toolView{content: "read ahead", volume: "vol"}, done: make(chan struct{})}
		close(early.done)
		l.ahead.Store(early)
		got, err := l.readTool(t.Context(), "seed", volume)
		if isAsked := isUnanswered(err); isAsked != (want == "") || want != "" && (err != nil || got != want) {
			t.Errorf("a seed with volume %s has %q there, want %q: %v", volume, got, want, err)
		}
	}
}

// TestBytesBreakOff: an answer that ends in the middle, as when an engine ends, is no sign that somebody changed the
// volume. What the engine cannot read is.
func TestBytesBreakOff(t *testing.T) {
	t.Parallel()
	const archive = "^GET /containers/.*/archive$"
	for _, tt := range []struct {
		reason string
		fault  dockertest.Fault
		lost   bool
	}{
		{"no answer", dockertest.Fault{Call: archive, Cut: true}, true},
		{"half an answer", dockertest.Fault{Call: archive, Half: true}, true},
		{"the engine cannot read it", dockertest.Fault{Call: archive, Status: 500, Message: "no such file"}, false},
	} {
		f := dockertest.NewFake(t, dockertest.FakeOptions{Release: "20.10"})
		e, s := openSocket(t, f.Socket), planner.Scope{Project: "half", Workspace: "w"}
		withProgram(t, e, "package main\n\nfunc main() {}\n")
		shimOf(t, e, s)
		f.AddFault(tt.fault)
		e.apart = apart{} // its files are not to be seen from here
		snap, err := e.Recheck(t.Context(), s, []planner.Address{planner.AddrShim})
		if isUnanswered(err) != tt.lost {
			t.Errorf("%s: %v, want that there was no answer: %v", tt.reason, err, tt.lost)
		}
		if tt.lost {
			continue
		}
		o, _ := snap.Object(planner.AddrShim)
		for _, field := range o.Observed {
			if field.Path == "Content" && !strings.Contains(field.Value.Text(), "cannot be read") {
				t.Errorf("%s: the volume holds %s", tt.reason, field.Value.Text())
			}
		}
		if len(o.Observed) == 0 {
			t.Errorf("%s: there is no shim", tt.reason)
		}
	}
}
