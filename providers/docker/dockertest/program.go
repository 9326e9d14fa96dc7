package dockertest

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Program is the smallest static program that can stand in for sandplan's own: it waits for ever. Images
// made of it load at once, and have the same ID on every machine of one architecture.
func Program(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, waitForever(t), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func waitForever(t testing.TB) []byte {
	t.Helper()
	var machine uint16
	var code []byte
	switch runtime.GOARCH {
	case "amd64": // again: eax = pause; syscall; jump again
		machine, code = 62, []byte{0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7}
	case "arm64": // again: ppoll(0, 0, 0, 0); branch again
		machine = 183
		for _, word := range []uint32{0xd2800000, 0xd2800001, 0xd2800002, 0xd2800003, 0xd2800928, 0xd4000001, 0x17fffffa} {
			code = binary.LittleEndian.AppendUint32(code, word)
		}
	default:
		t.Fatalf("no program for %s", runtime.GOARCH)
	}
	const base, header, segment = 0x400000, 64, 56
	size := uint64(header + segment + len(code))
	var b bytes.Buffer
	b.Write([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}) // 64 bits, little endian
	for _, v := range []any{
		uint16(2), machine, uint32(1), uint64(base + header + segment), uint64(header), uint64(0), uint32(0),
		uint16(header), uint16(segment), uint16(1), uint16(0), uint16(0), uint16(0), // executable, one segment, no sections
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), size, size, uint64(0x1000), // load all of it, readable and executable
	} {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	b.Write(code)
	return b.Bytes()
}
