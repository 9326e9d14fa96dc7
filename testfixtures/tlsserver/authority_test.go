package tlsserver

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAuthorityIsKept(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	a, err := Load(ca)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Load(ca)
	if err != nil || !a.cert.Equal(b.cert) {
		t.Errorf("a second start has another authority (%v): images that trust the first would fail", err)
	}
	if info, err := os.Stat(ca + ".key"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: %v, %v", info.Mode(), err)
	}
}
