package docker

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Where the binary stands, in sandplan.image and in every agent container alike.
const (
	toolDir    = "/.sandplan"
	toolBinary = toolDir + "/sandplan"
)

// binary is the static program that sandplan.image is made of: the running one, or the one that a
// test injects. It is a layer of an image: one directory and one file, with fixed modes, owner and
// times, so that equal bytes give an equal image wherever and whenever it is made.
type binary struct {
	path   string
	size   int64
	arch   string // as GOARCH spells it
	sha256 string // of the file, in hex
	diffID v1.Hash
}

// readBinary checks that the file can run in an empty image, and hashes it. It reads the file twice
// at most; a caller keeps the result.
func readBinary(file string) (*binary, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the sandplan binary: %w", err)
	}
	defer f.Close()
	arch, err := staticArch(f)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be the first process of a container: %w", file, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the sandplan binary: %w", err)
	}
	b := &binary{path: file, size: info.Size(), arch: arch}
	fileHash, layerHash := sha256.New(), sha256.New()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the sandplan binary: %w", err)
	}
	r := b.tar(io.TeeReader(io.LimitReader(f, b.size), fileHash))
	if _, err := io.Copy(layerHash, r); err != nil {
		return nil, fmt.Errorf("read the sandplan binary: %w", err)
	}
	b.sha256 = hex.EncodeToString(fileHash.Sum(nil))
	b.diffID = v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(layerHash.Sum(nil))}
	return b, nil
}

// staticArch is the architecture of a static Linux executable. An executable that asks for a
// loader, or for a shared library, would be "no such file or directory" in an image that holds
// nothing else.
func staticArch(r io.ReaderAt) (string, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return "", fmt.Errorf("it is no Linux executable (%w); run sandplan on Linux", err)
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return "", fmt.Errorf("its libraries cannot be read: %w", err)
	}
	dynamic := len(needed) > 0
	for _, p := range f.Progs {
		dynamic = dynamic || p.Type == elf.PT_INTERP
	}
	if dynamic {
		return "", errors.New("it is linked dynamically, and the image made of it holds no loader; " +
			"build it with CGO_ENABLED=0 (make build does)")
	}
	switch f.Machine {
	case elf.EM_X86_64:
		return "amd64", nil
	case elf.EM_AARCH64:
		return "arm64", nil
	}
	return "", fmt.Errorf("its architecture is %s; sandplan supports amd64 and arm64", f.Machine)
}

// tar is the layer: content is the file's bytes, b.size of them.
func (b *binary) tar(content io.Reader) io.Reader {
	var head bytes.Buffer
	tw := tar.NewWriter(&head)
	epoch := time.Unix(0, 0).UTC()
	for _, h := range []*tar.Header{
		{Typeflag: tar.TypeDir, Name: toolDir[1:] + "/", Mode: 0o555, ModTime: epoch},
		{Typeflag: tar.TypeReg, Name: path.Clean(toolBinary)[1:], Mode: 0o555, ModTime: epoch, Size: b.size},
	} {
		// Into memory, and with names and sizes that every tar can hold, this cannot fail.
		if err := tw.WriteHeader(h); err != nil {
			panic(fmt.Sprintf("tar header of %s: %v", h.Name, err))
		}
	}
	// The writer is left open on purpose: the content follows from its own reader, then the padding of
	// the last block and the two empty blocks that end an archive.
	const block = 512
	padding := (block-b.size%block)%block + 2*block
	return io.MultiReader(&head, content, bytes.NewReader(make([]byte, padding)))
}

// The methods of v1.Layer. The layer is not compressed: it travels over a unix socket, its digest
// is then its diff ID, and a plan needs no compression to know the image's ID.

// Digest implements v1.Layer.
func (b *binary) Digest() (v1.Hash, error) { return b.diffID, nil }

// DiffID implements v1.Layer.
func (b *binary) DiffID() (v1.Hash, error) { return b.diffID, nil }

// Size implements v1.Layer.
func (b *binary) Size() (int64, error) {
	n, err := io.Copy(io.Discard, b.tar(bytes.NewReader(nil)))
	return n + b.size, err
}

// MediaType implements v1.Layer.
func (b *binary) MediaType() (types.MediaType, error) { return types.DockerUncompressedLayer, nil }

// Compressed implements v1.Layer.
func (b *binary) Compressed() (io.ReadCloser, error) { return b.Uncompressed() }

// Uncompressed implements v1.Layer.
func (b *binary) Uncompressed() (io.ReadCloser, error) {
	f, err := os.Open(b.path)
	if err != nil {
		return nil, fmt.Errorf("read the sandplan binary: %w", err)
	}
	return struct {
		io.Reader
		io.Closer
	}{b.tar(io.LimitReader(f, b.size)), f}, nil
}
