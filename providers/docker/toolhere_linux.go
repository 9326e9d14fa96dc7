package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

var errOtherFiles = errors.New("other files are there")

// hashFiles says of each file of a directory what it is, as hashTree does. It fails where the directory holds
// anything but regular files of these names, or is reached through a link.
func hashFiles(ctx context.Context, dir string, names []string) (map[string]any, error) {
	fd, err := openPlace(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	d := os.NewFile(uintptr(fd), dir)
	defer d.Close()
	there, err := d.Readdirnames(len(names) + 1)
	if err != nil {
		return nil, err
	}
	if slices.Sort(there); !slices.Equal(there, names) {
		return nil, errOtherFiles
	}
	out := map[string]any{}
	for _, name := range names {
		if out[name], err = hashFile(ctx, fd, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func hashFile(ctx context.Context, dir int, name string) (string, error) {
	// Nothing that is there by now can make this wait, or lead elsewhere.
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxTool {
		return "", errOtherFiles
	}
	// Capabilities of a program are no part of its bytes; the engine's archive shows them.
	if n, err := unix.Fgetxattr(fd, "security.capability", nil); err == nil && n > 0 {
		return "", errOtherFiles
	}
	sum, buf := sha256.New(), make([]byte, 1<<20)
	for ctx.Err() == nil {
		n, err := f.Read(buf)
		sum.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			return fmt.Sprintf("sha256:%s mode %04o owner %d:%d", hex.EncodeToString(sum.Sum(nil)), st.Mode&0o7777, st.Uid, st.Gid), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", ctx.Err()
}
