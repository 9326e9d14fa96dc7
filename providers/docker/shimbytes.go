package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// What the shim volume holds is read through its seed, as an archive.

// maxTool bounds what is read of a volume that anybody on the engine may have filled.
const maxTool = 256 * mib

// readTool hashes what stands at /.sandplan of a container that never started, which has a volume there. What
// cannot be read is a value like any other, which differs: whoever filled the volume so must not blind the look at
// all else. An answer that breaks off says nothing of the volume: what the engine's own archiver fails at ends as a
// whole answer.
func (e *Engine) readTool(ctx context.Context, id, volume string) (toolView, error) {
	if content, ok := e.confirmTool(ctx, id, volume); ok {
		return toolView{content: content, volume: volume}, nil
	}
	unreadable := func(err error) (toolView, error) {
		return toolView{content: "cannot be read: " + err.Error()}, ctx.Err()
	}
	body, _, err := e.cli.CopyFromContainer(ctx, id, toolDir)
	switch {
	case isUnanswered(err):
		return toolView{}, err
	case err != nil:
		return unreadable(err)
	}
	defer body.Close()
	said := &answerBody{from: body}
	limited := &io.LimitedReader{R: said, N: maxTool}
	content, err := hashTree(limited)
	switch {
	case limited.N <= 0:
		return toolView{content: fmt.Sprintf("more than %d bytes", maxTool)}, nil
	case said.broken != nil:
		return toolView{}, fmt.Errorf("read %s of container %.12s: %w", toolDir, id, said.broken)
	case err != nil:
		return unreadable(err)
	}
	return toolView{content: content}, nil
}

// answerBody is the body of an answer, and why it broke off.
type answerBody struct {
	from   io.Reader
	broken error
}

func (a *answerBody) Read(p []byte) (int, error) {
	n, err := a.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		a.broken = err
	}
	return n, err
}

// hashTree says of each entry below the one directory of an archive what it is.
func hashTree(r io.Reader) (map[string]any, error) {
	out := map[string]any{}
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		_, rel, _ := strings.Cut(path.Clean(h.Name), "/")
		if h.Typeflag == tar.TypeDir && rel == "" {
			continue // the directory itself
		}
		what := fmt.Sprintf("type %c to %q", h.Typeflag, h.Linkname)
		if h.Typeflag == tar.TypeReg {
			sum := sha256.New()
			if _, err := io.Copy(sum, tr); err != nil {
				return nil, err
			}
			what = "sha256:" + hex.EncodeToString(sum.Sum(nil))
		}
		out[rel] = fmt.Sprintf("%s mode %04o owner %d:%d", what, h.Mode&0o7777, h.Uid, h.Gid) + attributes(h)
	}
}

// attributes are the extended attributes of a file, as far as the engine puts them into archives: among them
// the capabilities that a program gets when it is started.
func attributes(h *tar.Header) string {
	var out string
	for _, name := range sortedKeys(h.PAXRecords) {
		if attribute, ok := strings.CutPrefix(name, "SCHILY.xattr."); ok {
			out += fmt.Sprintf(" %s %x", attribute, h.PAXRecords[name])
		}
	}
	return out
}
