package docker

import (
	"archive/tar"
	"bytes"
	"testing"
)

func TestShellAnywhereInAnImage(t *testing.T) {
	const exec, plain = 0o755, 0o644
	for _, c := range []struct {
		reason, name string
		kind         byte
		mode         int64
		want         bool
	}{
		{"where everybody looks", "bin/sh", tar.TypeReg, exec, true},
		{"for root", "./usr/sbin/bash", tar.TypeReg, exec, true},
		{"where nobody looks", "opt/vendor/tools/dash", tar.TypeReg, exec, true},
		{"a link, whatever it leads to", "sbin/ash", tar.TypeSymlink, 0o777, true},
		{"a second name", "x/zsh", tar.TypeLink, exec, true},
		{"with its version", "usr/bin/python3.11", tar.TypeReg, exec, true},
		{"and another", "usr/bin/perl5.36.0", tar.TypeReg, exec, true},
		{"all in one", "usr/lib/initramfs/busybox.static", tar.TypeReg, exec, true},
		{"put aside by its distribution", "bin/sh.distrib", tar.TypeReg, exec, true},
		{"an interpreter of another language", "usr/bin/node", tar.TypeReg, exec, true},
		{"nobody can execute it", "usr/share/lint/sh", tar.TypeReg, plain, false},
		{"a directory", "etc/bash", tar.TypeDir, exec, false},
		{"a longer name", "usr/lib/libssh.so.4", tar.TypeReg, exec, false},
		{"what links to it is none", "usr/bin/node_modules", tar.TypeSymlink, 0o777, false},
		{"the CLI itself", "usr/local/bin/claude", tar.TypeReg, exec, false},
		{"its libraries", "lib64/ld-linux-x86-64.so.2", tar.TypeReg, exec, false},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range []tar.Header{
			{Name: "etc/passwd", Typeflag: tar.TypeReg, Mode: plain, Size: 1},
			{Name: c.name, Typeflag: c.kind, Mode: c.mode, Linkname: map[bool]string{true: "target"}[c.kind == tar.TypeLink || c.kind == tar.TypeSymlink]},
		} {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(make([]byte, h.Size)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, _, err := readRoot(&b); got != c.want || err != nil {
			t.Errorf("%s: %s is a shell: %t, %v", c.reason, c.name, got, err)
		}
	}
	if _, _, err := readRoot(bytes.NewReader(make([]byte, 100))); err == nil {
		t.Error("half an archive says nothing, and is taken for one without a shell")
	}
}
