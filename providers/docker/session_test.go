package docker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/docker/docker/api/types/container"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

// stepsImage is an image with the program of testfixtures/agent, whose arguments are what it does.
func stepsImage(t *testing.T, e *Engine) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "agent")
	build := exec.Command("go", "build", "-o", bin, "github.com/sandplan/sandplan/testfixtures/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	img, err := scratch.Image(scratch.Spec{Arch: runtime.GOARCH, Entries: []scratch.Entry{{Path: "/agent", Mode: 0o755, Source: bin}},
		Config: v1.Config{Entrypoint: []string{"/agent"}}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := scratch.Load(t.Context(), e.info.Socket, "sandplan-test/session:1", img)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// armed is a container with attachable standard streams, removed at the end of the test.
func armed(t *testing.T, e *Engine, image string, args ...string) string {
	t.Helper()
	c, err := e.cli.ContainerCreate(t.Context(), &container.Config{Image: image, Cmd: args, OpenStdin: true, StdinOnce: true,
		AttachStdin: true, AttachStdout: true, AttachStderr: true}, &container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeContainer(context.Background(), e, planner.Object{ID: c.ID}); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return c.ID
}

// soon is enough for whatever takes an engine a moment, on a machine that is busy with other things: engine
// 20.10 has taken 20 seconds to tell of a container that it was ending.
const soon = 2 * time.Minute

// syncBuffer is a buffer that one goroutine writes and another reads.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// talk attaches to a container and starts it.
func talk(t *testing.T, e *Engine, id string) (stdin io.WriteCloser, done <-chan error, stdout, stderr *syncBuffer) {
	t.Helper()
	stdout, stderr = &syncBuffer{}, &syncBuffer{}
	stdin, done, err := e.Attach(t.Context(), id, stdout, stderr)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return stdin, done, stdout, stderr
}

func TestSession(t *testing.T) {
	e := openEngine(t)
	image := stepsImage(t, e)

	t.Run("streams and exit code", func(t *testing.T) {
		id := armed(t, e, image, "say=out", "warn=err", "stdin", "exit=42")
		if p, err := e.Process(t.Context(), id); err != nil || p.Status != planner.StatusCreated || !p.Started.IsZero() {
			t.Errorf("before the start: %+v, %v", p, err)
		}
		stdin, done, stdout, stderr := talk(t, e, id)
		if _, err := io.WriteString(stdin, "secret\n"); err != nil {
			t.Fatal(err)
		}
		p, err := e.Process(t.Context(), id)
		if err != nil || p.Status != planner.StatusRunning || p.PID == 0 || p.Started.IsZero() {
			t.Errorf("while it runs: %+v, %v", p, err)
		}
		if err := stdin.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("its output ended with %v", err)
		}
		p, err = e.Wait(t.Context(), id)
		if err != nil || p.Status != planner.StatusExited || p.ExitCode != 42 || p.OOM || p.Finished.Before(p.Started) {
			t.Errorf("afterwards: %+v, %v", p, err)
		}
		if stdout.String() != "out\nsecret\n" || stderr.String() != "err\n" {
			t.Errorf("stdout %q, stderr %q", stdout, stderr)
		}
		if err := e.Kill(t.Context(), id); err != nil {
			t.Errorf("killing what has ended: %v", err)
		}
	})

	t.Run("stdin ends alone", func(t *testing.T) {
		id := armed(t, e, image, "stdin", "say=last words", "exit=7")
		stdin, done, stdout, _ := talk(t, e, id)
		if err := stdin.Close(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), soon) // it reads until its input ends
		defer cancel()
		if p, err := e.Wait(ctx, id); err != nil || p.ExitCode != 7 {
			t.Errorf("%+v, %v: the lease must end with the connection", p, err)
		}
		if err := <-done; err != nil || stdout.String() != "last words\n" {
			t.Errorf("after its standard input ended it said %q, %v", stdout, err)
		}
	})

	t.Run("kill", func(t *testing.T) {
		id := armed(t, e, image, "ignore", "sleep=1h")
		stdin, done, _, _ := talk(t, e, id)
		defer stdin.Close()
		if err := e.Kill(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if p, err := e.Wait(t.Context(), id); err != nil || p.ExitCode != 137 {
			t.Errorf("%+v, %v", p, err)
		}
		<-done
	})

	t.Run("kill what is paused", func(t *testing.T) {
		id := armed(t, e, image, "sleep=1h")
		stdin, _, _, _ := talk(t, e, id)
		defer stdin.Close()
		if err := e.cli.ContainerPause(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if p, err := e.Process(t.Context(), id); err != nil || p.Status != planner.StatusRunning {
			t.Errorf("paused: %+v, %v", p, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		if err := e.Kill(ctx, id); err != nil {
			t.Fatal(err)
		}
		if p, err := e.Wait(ctx, id); err != nil || p.Status != planner.StatusExited {
			t.Errorf("%+v, %v", p, err)
		}
	})

	t.Run("never started", func(t *testing.T) {
		id := armed(t, e, image, "exit=0")
		if err := e.Kill(t.Context(), id); err != nil {
			t.Errorf("killing what never ran: %v", err)
		}
		if p, err := e.Wait(t.Context(), id); err != nil || p.Status != planner.StatusCreated {
			t.Errorf("waiting for what never ran: %+v, %v", p, err)
		}
	})

	t.Run("gone", func(t *testing.T) {
		const id = "0000000000000000000000000000000000000000000000000000000000000000"
		_, _, attach := e.Attach(t.Context(), id, io.Discard, io.Discard)
		_, process := e.Process(t.Context(), id)
		_, wait := e.Wait(t.Context(), id)
		for what, err := range map[string]error{"attach": attach, "start": e.Start(t.Context(), id), "look": process, "wait": wait, "kill": e.Kill(t.Context(), id)} {
			if err == nil || (what == "look" || what == "wait" || what == "kill") != errors.Is(err, planner.ErrGone) || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "000000000000") {
				t.Errorf("%s of a container that is gone: %v", what, err)
			}
		}
	})

	t.Run("out of memory", func(t *testing.T) {
		// An engine that hears of the end before it hears of the reason never tells the reason. The shim does:
		// it looks itself. So it is enough that the engine's word comes through when there is one.
		const attempts = 8
		for n := 1; ; n++ {
			p := eatTooMuch(t, e, image)
			if p.ExitCode != 137 {
				t.Fatalf("%+v", p)
			}
			if p.OOM {
				return
			}
			if n == attempts {
				t.Fatalf("%d times the engine did not say why: %+v", n, p)
			}
		}
	})
}

// eatTooMuch is the end of a container that uses more memory than it has.
func eatTooMuch(t *testing.T, e *Engine, image string) planner.Process {
	t.Helper()
	c, err := e.cli.ContainerCreate(t.Context(), &container.Config{Image: image, Cmd: []string{"eat=256MiB"}},
		&container.HostConfig{NetworkMode: "none", Resources: container.Resources{Memory: 32 << 20, MemorySwap: 32 << 20}}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.cli.ContainerRemove(context.Background(), c.ID, container.RemoveOptions{Force: true}) }()
	if err := e.Start(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	p, err := e.Wait(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
