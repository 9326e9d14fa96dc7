package docker

import "strings"

// place is a file or directory of the host, reached without following a symlink at any step: what a
// path names now, and not what somebody may turn a part of it into later.
type place struct {
	path  string
	dev   uint64
	inode uint64
	uid   uint32
	gid   uint32
	mode  uint32 // type and permissions, as stat shows them
}

// The types of a file in place.mode, as Linux numbers them.
const (
	modeType    = 0o170000
	modeDir     = 0o040000
	modeFile    = 0o100000
	modeSymlink = 0o120000
)

func (p place) isDir() bool  { return p.mode&modeType == modeDir }
func (p place) isFile() bool { return p.mode&modeType == modeFile }

// within reports whether path is dir or lies below it. Both are clean and absolute.
func within(dir, path string) bool {
	return path == dir || below(dir, path)
}

// below reports whether path lies below dir, dir itself excluded.
func below(dir, path string) bool {
	if dir == "/" {
		return path != "/"
	}
	return strings.HasPrefix(path, dir+"/")
}
