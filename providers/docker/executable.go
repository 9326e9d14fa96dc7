package docker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// Executes reports whether the first process of a container, pid as inspect names it, executes the
// program that sandplan.image is made of. It reads the very file that runs, not one of its name: what
// stood on the volume for a moment, while the container started, cannot hide. known is false where
// that file cannot be read from here: by a user who may not, or from another pid namespace.
func (e *Engine) Executes(ctx context.Context, id string, pid int) (same, known bool, err error) {
	own, err := e.own()
	if err != nil {
		return false, false, err
	}
	got, err := executable(ctx, "/proc", id, pid)
	if errors.Is(err, errNotThere) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("look at what container %.12s executes: %w", id, err)
	}
	return got == own.binary.sha256, true, nil
}

var errNotThere = errors.New("not to be seen from here")

// executable hashes the file that a process of a container executes.
func executable(ctx context.Context, proc, id string, pid int) (string, error) {
	dir := proc + "/" + strconv.Itoa(pid)
	f, err := os.Open(dir + "/exe")
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ESRCH):
		return "", errNotThere
	case err != nil:
		return "", err
	}
	defer f.Close()
	// A number means another process in another namespace, or later on. The groups of a container's
	// processes are named after it, by every cgroup driver.
	groups, err := os.ReadFile(dir + "/cgroup")
	if err != nil || !bytes.Contains(groups, []byte(id)) {
		return "", errNotThere
	}
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for ctx.Err() == nil {
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", ctx.Err()
}
