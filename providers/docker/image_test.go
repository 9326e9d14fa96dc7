package docker

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// buildProgram compiles a small static program; the packages' own binary would take seconds. It is another one in each
// test and process, whatever its source: an image of the same bytes would be the same image, which another test
// removes when it is over.
func buildProgram(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "program")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-buildid="+unique(t.Name()), "-o", out, filepath.Join(dir, "main.go"))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, msg)
	}
	return out
}

func TestToolImageIsItsContent(t *testing.T) {
	program := buildProgram(t, "package main\nfunc main() {}\n")
	first, err := readBinary(program)
	if err != nil {
		t.Fatal(err)
	}
	img, err := newToolImage(first)
	if err != nil {
		t.Fatal(err)
	}

	// The same bytes under another name, with other times and modes, are the same image.
	copied := filepath.Join(t.TempDir(), "other-name")
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(copied, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	again, err := readBinary(copied)
	if err != nil {
		t.Fatal(err)
	}
	same, err := newToolImage(again)
	if err != nil {
		t.Fatal(err)
	}
	if same.ID != img.ID {
		t.Errorf("equal binaries give the images %s and %s", img.ID, same.ID)
	}

	// One byte more is another image.
	if err := os.WriteFile(copied, append(content, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	longer, err := readBinary(copied)
	if err != nil {
		t.Fatal(err)
	}
	other, err := newToolImage(longer)
	if err != nil {
		t.Fatal(err)
	}
	if other.ID == img.ID {
		t.Errorf("different binaries give one image %s", img.ID)
	}
}

func TestToolImageLayer(t *testing.T) {
	b, err := readBinary(buildProgram(t, "package main\nfunc main() {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if size, err := b.Size(); err != nil || size != int64(len(raw)) {
		t.Errorf("Size() = %d, %v; the layer has %d bytes", size, err, len(raw))
	}
	var names []string
	for tr := tar.NewReader(bytes.NewReader(raw)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Mode != 0o555 || h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 0 {
			t.Errorf("%s: mode %o, owner %d:%d, time %v; want 555, 0:0, the epoch", h.Name, h.Mode, h.Uid, h.Gid, h.ModTime)
		}
	}
	if got, want := strings.Join(names, " "), ".sandplan/ .sandplan/sandplan"; got != want {
		t.Errorf("the layer holds %q, want %q", got, want)
	}
}

func TestStaticArch(t *testing.T) {
	if _, err := staticArch(strings.NewReader("#!/bin/sh\n")); err == nil || !strings.Contains(err.Error(), "no Linux executable") {
		t.Errorf("a script: %v", err)
	}
	// Any dynamic program will do; the shell is one wherever these tests run.
	sh, err := os.Open("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	defer sh.Close()
	if _, err := staticArch(sh); err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("a dynamic program: %v; the error must say how to build a static one", err)
	}
}

func TestLockImageIsFixed(t *testing.T) {
	img, err := newLockImage("amd64")
	if err != nil {
		t.Fatal(err)
	}
	// Known to the bit: every version of sandplan with this schema shares it, and none of them removes
	// what another one's locks are made of.
	if want := "sha256:181e17a56c15ba4ec889e5e31983070a04909f244e7c7f309fffa2f103afd43e"; img.ID != want {
		t.Errorf("ID %s, want %s", img.ID, want)
	}
	layers, err := img.img.Layers()
	if err != nil || len(layers) != 0 {
		t.Errorf("the lock image has %d layers, %v; want none", len(layers), err)
	}
}

func TestIsNoSuchImage(t *testing.T) {
	for _, tt := range []struct {
		reason string
		err    error
		want   bool
	}{
		{"what an engine answers when the image is gone", notFound("No such image: sha256:00"), true},
		{"another missing thing is also 404", notFound("network 00 not found"), false},
		{"the words alone say nothing", errors.New("No such image: sha256:00"), false},
		{"no error", nil, false},
	} {
		if got := isNoSuchImage(tt.err); got != tt.want {
			t.Errorf("%s: isNoSuchImage(%v) = %v", tt.reason, tt.err, got)
		}
	}
}

func notFound(msg string) error { return errdefs.ErrNotFound.WithMessage(msg) }

func TestLoadError(t *testing.T) {
	if err := loadError(strings.NewReader(`{"stream":"Loaded"}` + "\n" + `{"errorDetail":{"message":"bad"},"error":"bad layer"}`)); err == nil || err.Error() != "bad layer" {
		t.Errorf("a failure in the stream: %v", err)
	}
	if err := loadError(strings.NewReader(`{"stream":"Loaded"}` + "\n")); err != nil {
		t.Errorf("a success: %v", err)
	}
	if err := loadError(strings.NewReader(`{"stream":`)); err == nil {
		t.Error("an answer that breaks off counts as a success")
	}
}

// What Docker 20.10 says, with status 500, of an image that is removed while a container is made of it, or while it
// is looked at: 3 of 66 removals beside four who made containers, 6 of 41 beside four who looked.
const (
	noConfiguration = "failed to get digest sha256:0123: open /var/lib/docker/image/overlay2/imagedb/content/sha256/0123: no such file or directory"
	noLayer         = "layer does not exist"
)

// TestImageIsRemovedMeanwhile: an image that another scope's destroy takes away in the middle of a call is made anew
// for a container, and is not there for who looks; one that stays half gone is an error.
func TestImageIsRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	const look = "^GET /images/.*/json"
	for _, said := range []string{noConfiguration, noLayer} {
		f := dockertest.NewFake(t, dockertest.FakeOptions{Release: "20.10", Faults: []dockertest.Fault{
			{Call: lockCreate, Times: 2, Status: 500, Message: said}, {Call: look, Times: 2, Status: 500, Message: said}}})
		e := openSocket(t, f.Socket)
		if _, err := e.imageAt(t.Context(), someImage(t)); !errdefs.IsNotFound(err) {
			t.Errorf("%s: it is looked at with %v, want that there is none", said, err)
		}
		if lock, err := e.LockScope(t.Context(), planner.Scope{Project: "removed", Workspace: "w"}, "apply"); err != nil {
			t.Errorf("%s: no lock: %v", said, err)
		} else if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
		f.AddFault(dockertest.Fault{Call: look, Status: 500, Message: said})
		if _, err := e.imageAt(t.Context(), someImage(t)); err == nil || errdefs.IsNotFound(err) || !strings.Contains(err.Error(), said) {
			t.Errorf("%s, again and again: it is looked at with %v", said, err)
		}
	}
}
