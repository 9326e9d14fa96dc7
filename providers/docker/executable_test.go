package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestExecutes(t *testing.T) {
	e := openEngine(t)
	image := stepsImage(t, e)
	id := armed(t, e, image, "say=up", "sleep=1h")
	stdin, _, stdout, _ := talk(t, e, id)
	defer stdin.Close()
	// An engine calls a container started a moment before its program takes the place of the engine's own.
	for deadline := time.Now().Add(soon); stdout.String() == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the program does not begin")
		}
	}
	p, err := e.Process(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	got, err := executable(t.Context(), "/proc", id, p.PID)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := executable(t.Context(), "/proc", id, p.PID); err != nil || again != got || len(got) != 64 {
		t.Errorf("%q, then %q, %v", got, again, err)
	}
	if _, err := executable(t.Context(), "/proc", id, os.Getpid()); !errors.Is(err, errNotThere) {
		t.Errorf("a process of no container: %v", err)
	}
	if err := e.Kill(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Wait(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := executable(t.Context(), "/proc", id, p.PID); !errors.Is(err, errNotThere) {
		t.Errorf("a process that has ended: %v", err)
	}
}

func TestExecutable(t *testing.T) {
	const id = "0123456789abcdef"
	sum := sha256.Sum256([]byte("program"))
	for name, c := range map[string]struct {
		cgroup, exe string
		want        string
		reason      string
	}{
		"cgroup v1":      {"5:devices:/docker/" + id + "\n", "program", hex.EncodeToString(sum[:]), "the cgroupfs driver"},
		"systemd":        {"0::/system.slice/docker-" + id + ".scope\n", "program", hex.EncodeToString(sum[:]), "the systemd driver"},
		"somebody else":  {"0::/docker/fedcba9876543210\n", "program", "", "the number belongs to another container by now"},
		"our namespace":  {"0::/\n", "program", "", "nothing says whose process it is"},
		"no such number": {"0::/docker/" + id + "\n", "", "", "another pid namespace"},
	} {
		proc := t.TempDir()
		if err := os.Mkdir(filepath.Join(proc, "7"), 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"cgroup": c.cgroup, "exe": c.exe} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(proc, "7", file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := executable(context.Background(), proc, id, 7)
		if got != c.want || (c.want == "") != errors.Is(err, errNotThere) {
			t.Errorf("%s: %q, %v; want %q (%s)", name, got, err, c.want, c.reason)
		}
	}
}
