package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/sandplan/sandplan/planner"
)

// Attach connects to a container that was created and not started yet: what it will write goes to
// stdout and stderr, apart, and what is written to stdin goes to it. Its standard input ends when
// stdin is closed, and when the connection breaks, whatever the reason. done gets one value at the end
// of the output: nil when the container closed it.
//
// The connection outlives ctx, which bounds only its making. It ends with the container's output: to
// close stdin leaves that as it is, so that the last words of a container are heard.
func (e *Engine) Attach(ctx context.Context, id string, stdout, stderr io.Writer) (stdin io.WriteCloser, done <-chan error, err error) {
	conn, err := e.attach(ctx, id)
	if err != nil {
		return nil, nil, fmt.Errorf("attach to container %.12s: %w", id, err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := stdcopy.StdCopy(stdout, stderr, conn.Reader)
		conn.Close()
		ended <- err
	}()
	return halfConn{conn.Conn, conn.CloseWrite}, ended, nil
}

// attach makes the connection. The SDK waits for the engine's answer without looking at ctx: an engine that
// takes the call and says nothing would hold a run for ever.
func (e *Engine) attach(ctx context.Context, id string) (types.HijackedResponse, error) {
	type answer struct {
		conn types.HijackedResponse
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		conn, err := e.cli.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
		got <- answer{conn, err}
	}()
	select {
	case a := <-got:
		return a.conn, a.err
	case <-ctx.Done():
		go func() {
			if late := <-got; late.err == nil {
				late.conn.Close()
			}
		}()
		return types.HijackedResponse{}, ctx.Err()
	}
}

// halfConn is the sending half of a connection.
type halfConn struct {
	io.Writer
	closeWrite func() error
}

func (h halfConn) Close() error { return h.closeWrite() }

// Start starts a container.
func (e *Engine) Start(ctx context.Context, id string) error {
	if err := e.cli.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		return fmt.Errorf("start container %.12s: %w", id, err)
	}
	return nil
}

// Wait waits until a container does not run, and says how it ended.
func (e *Engine) Wait(ctx context.Context, id string) (planner.Process, error) {
	result, failed := e.cli.ContainerWait(ctx, id, container.WaitConditionNotRunning)
	select {
	case <-result:
		// The result's error concerns removing only; all else is in inspect.
		return e.Process(ctx, id)
	case err := <-failed:
		return planner.Process{}, fmt.Errorf("wait for container %.12s: %w", id, gone(err))
	}
}

// Kill ends a container at once. One that does not run is no error, and one that the engine has killed and does not
// know to have ended is for Wait.
func (e *Engine) Kill(ctx context.Context, id string) error {
	err := e.cli.ContainerKill(ctx, id, "KILL")
	if err == nil || isEndingLate(err) {
		return nil
	}
	// "Not running" is a conflict, and so is "is restarting": only a look tells which.
	if p, look := e.Process(ctx, id); look == nil && p.Status != planner.StatusRunning {
		return nil
	}
	return fmt.Errorf("kill container %.12s: %w", id, gone(err))
}

// isEndingLate reports whether an engine has killed a container and not heard yet that it has ended, as happens on a
// machine that is busy. It ends all the same.
func isEndingLate(err error) bool {
	return err != nil && strings.Contains(err.Error(), "did not receive an exit event")
}

// gone marks the errors that say that there is no such container.
func gone(err error) error {
	if errdefs.IsNotFound(err) {
		return fmt.Errorf("%w: %w", planner.ErrGone, err)
	}
	return err
}

// IsProxy reports whether a container says that it is a proxy of a scope. Whether that is true is for a look to find
// out; one that does not even say so is a stranger at once.
func (e *Engine) IsProxy(ctx context.Context, scope planner.Scope, id string) (bool, error) {
	v, err := e.inspect(ctx, "/containers/"+url.PathEscape(id)+"/json")
	if err != nil {
		return false, fmt.Errorf("look at container %.12s: %w", id, gone(err))
	}
	who, ok := readIdentity(labelsOf(treeLabels(v)))
	return ok && who.scope == scope && who.kind == planner.KindProxy && who.address.Part() == planner.PartProxy, nil
}

// Process is what the engine says of a container's process.
func (e *Engine) Process(ctx context.Context, id string) (planner.Process, error) {
	c, err := e.cli.ContainerInspect(ctx, id)
	if err != nil {
		return planner.Process{}, fmt.Errorf("look at container %.12s: %w", id, gone(err))
	}
	if c.ContainerJSONBase == nil || c.State == nil {
		return planner.Process{}, fmt.Errorf("look at container %.12s: the engine's reply holds no state", id)
	}
	started, err1 := engineTime(c.State.StartedAt)
	finished, err2 := engineTime(c.State.FinishedAt)
	if err := errors.Join(err1, err2); err != nil {
		return planner.Process{}, fmt.Errorf("look at container %.12s: %w", id, err)
	}
	return planner.Process{
		Status: processStatus(c.State), PID: c.State.Pid, ExitCode: c.State.ExitCode, OOM: c.State.OOMKilled,
		Error: c.State.Error, Started: started, Finished: finished, Restarts: c.RestartCount,
	}, nil
}

func processStatus(s *container.State) planner.Status {
	switch {
	case s.Running || s.Paused || s.Restarting:
		return planner.StatusRunning
	case s.Status == "created":
		return planner.StatusCreated
	}
	return planner.StatusExited
}

// engineTime reads a time of inspect output; the engine writes year 1 for "never".
func engineTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Year() <= 1 {
		return time.Time{}, err
	}
	return t, nil
}
