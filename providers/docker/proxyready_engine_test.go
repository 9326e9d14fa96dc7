package docker

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// TestProxyIsReadySoonInside starts a declared proxy in its container, as runs do, and waits for its first line. The
// bound only tells that nothing inside waits for anything; how long it takes is for benches, as the machine is everybody's.
func TestProxyIsReadySoonInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.engine.options.Self = filepath.Join(t.TempDir(), "sandplan")
	// A program of this test's own, and so an image: it is removed in the end, and other tests have theirs.
	build := exec.Command("go", "build", "-ldflags", "-X main.version="+unique("0.0.0-ready"), "-o", w.engine.options.Self,
		"github.com/sandplan/sandplan/cmd/sandplan")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	w.engine.own = lazyOwnImage(w.engine.options)
	c, ids := w.makeOne("10.231.160.0/20")
	const proxy = "invocation.one.proxy"
	var whole, inside []time.Duration
	for range 3 {
		before := time.Now()
		ready, at := w.readyLine(ids[proxy])
		p, err := w.engine.Process(t.Context(), ids[proxy])
		if err != nil {
			t.Fatal(err)
		}
		whole, inside = append(whole, at.Sub(before)), append(inside, at.Sub(p.Started))
		if failed := ready.Failed(); len(failed) > 0 {
			t.Errorf("seen from the inside it is not as declared: %+v", failed)
		}
		if want := c.Allocation().Networks["invocation.one"]; ready.Listen != want.Proxy.String()+":3128" {
			t.Errorf("it listens at %s, want %s", ready.Listen, want.Proxy)
		}
		if err := w.engine.Kill(t.Context(), ids[proxy]); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(whole)
	slices.Sort(inside)
	t.Logf("from the start of the process to the ready line: %v; with the engine's part: %v", inside, whole)
	if inside[0] > 30*time.Second {
		t.Errorf("%s from the start of the process to the ready line at best", inside[0])
	}
	w.requireSeenInside(c, proxy, ids[proxy])
}

// readyLine starts a proxy, and says what its first line was and when it came.
func (w *world) readyLine(id string) (wire.Ready, time.Time) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), soon)
	defer cancel()
	out, log := io.Pipe()
	defer out.Close()
	stderr := &syncBuffer{}
	stdin, _, err := w.engine.Attach(ctx, id, log, stderr)
	if err != nil {
		w.t.Fatal(err)
	}
	defer context.AfterFunc(ctx, func() { out.Close() })()
	lease := wire.NewWriter(stdin)
	if err := lease.Challenge(wire.Challenge{Nonce: "n-1", Token: "t"}); err != nil { // the engine hands it over when it starts
		w.t.Fatal(err)
	}
	if err := w.engine.Start(ctx, id); err != nil {
		w.t.Fatal(err)
	}
	go func() { _ = lease.Beats(ctx, wire.BeatEvery) }()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	at := time.Now()
	if err != nil {
		w.t.Fatalf("no ready line: %v, %s", err, stderr)
	}
	ready, err := wire.ParseReady(line, "n-1")
	if err != nil {
		w.t.Fatalf("%v: %s", err, line)
	}
	return ready, at
}
