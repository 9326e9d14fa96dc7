package scratch

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestImageIsDeterministic(t *testing.T) {
	build := func(umask fs.FileMode) string {
		src := filepath.Join(t.TempDir(), "agent")
		if err := os.WriteFile(src, []byte("binary"), 0o600|umask); err != nil {
			t.Fatal(err)
		}
		s := Spec{Arch: "amd64", Entries: []Entry{
			{Path: "/usr/bin/agent", Source: src, Mode: 0o755},
			{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		}}
		Env(&s.Config, "B=2")
		Env(&s.Config, "A=1")
		Env(&s.Config, "B=3")
		s.Config.Volumes = map[string]struct{}{"/x": {}, "/y": {}}
		img, err := Image(s)
		if err != nil {
			t.Fatal(err)
		}
		id, err := img.ConfigName()
		if err != nil {
			t.Fatal(err)
		}
		cf, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(cf.Config.Env, ","); got != "A=1,B=3" {
			t.Errorf("environment %s", got)
		}
		return id.String()
	}
	if a, b := build(0), build(0o044); a != b {
		t.Errorf("two builds differ: %s and %s", a, b)
	}
}

func TestImageWithoutEntriesHasNoLayer(t *testing.T) {
	img, err := Image(Spec{Arch: "arm64", Config: v1.Config{User: "7"}})
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 0 {
		t.Errorf("%d layers, %v", len(layers), err)
	}
	if cf, err := img.ConfigFile(); err != nil || cf.Architecture != "arm64" || cf.Config.User != "7" {
		t.Errorf("configuration %+v, %v", cf, err)
	}
}

func TestLayer(t *testing.T) {
	src := t.TempDir()
	if err := os.MkdirAll(filepath.Join(src, "sub"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(src, "sub", "f"), []byte("x"), 0o640); err != nil {
		t.Fatal(err)
	}
	data, err := layer([]Entry{
		{Path: "/opt/tree", Source: src, Mode: 0o711},
		{Path: "/bin/su", Mode: fs.ModeSetuid | 0o755, Content: []byte("su"), UID: 3},
		{Path: "/sh", Link: "bin/su", Mode: 0o777},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for tr := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() != 0 {
			t.Errorf("%s has the time %s", h.Name, h.ModTime)
		}
		got = append(got, strings.TrimSpace(h.FileInfo().Mode().String()+" "+h.Name+" "+h.Linkname))
	}
	want := []string{"drwxr-xr-x bin/", "urwxr-xr-x bin/su", "drwxr-xr-x opt/", "drwx--x--x opt/tree/",
		"drwxr-x--- opt/tree/sub/", "-rw-r----- opt/tree/sub/f", "Lrwxrwxrwx sh bin/su"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("layer:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPathsAreCanonical(t *testing.T) {
	for p, reason := range map[string]string{
		"bin/x":     "relative",
		"/":         "the root itself",
		"/a/../etc": "another spelling of /etc",
	} {
		if _, err := Image(Spec{Entries: []Entry{{Path: p}}}); err == nil || !strings.Contains(err.Error(), "clean absolute path") {
			t.Errorf("%s: %v (%s)", p, err, reason)
		}
	}
}
