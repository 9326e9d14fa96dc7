package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"time"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// Exit codes of the proxy.
const (
	ExitStopped = 0 // it was asked to stop
	ExitFailed  = 1 // it lost its lease, or could not do its work
	ExitUsage   = 2 // its argument is no configuration
	ExitLogFull = 3 // its log is full, or cannot be written
)

// gcPercent is how much garbage there may be for each byte in use; the memory limit bounds it.
const gcPercent = 300

// Main is the proxy: it waits for the challenge on stdin, says on stdout that it is ready, serves, and
// ends with the lease. Its one argument is a Config. After the ready line stdout is its log.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintf(stderr, "sandplan egress: %d arguments; it is started by sandplan, with one\n", len(args))
		return ExitUsage
	}
	cfg, err := ParseConfig(args[0])
	if err != nil {
		fmt.Fprintf(stderr, "sandplan egress: %v\n", err)
		return ExitUsage
	}
	if cfg.Limits.MemoryBytes > 0 {
		// The collector works harder before the kernel kills the proxy, and the run with it.
		debug.SetMemoryLimit(cfg.Limits.MemoryBytes / 10 * 9)
		// The heap of a proxy is small, so that the default would collect after every few hundred tunnels.
		debug.SetGCPercent(gcPercent)
	}
	// The lease counts from here: a proxy that was started by hand ends by itself.
	lease := wire.Hold(stdin, ms(cfg.Limits.SilenceMS))
	code, err := run(cfg, lease, stdout, "/")
	if err != nil {
		fmt.Fprintf(stderr, "sandplan egress: %v\n", err)
	}
	return code
}

func run(cfg *Config, lease *wire.Lease, stdout io.Writer, root string) (int, error) {
	challenge, err := lease.Challenge(context.Background()) // the lease bounds the wait
	if err != nil {
		return codeOf(err), err
	}
	in, err := look(root, cfg)
	if err != nil {
		return ExitFailed, err
	}
	w, err := realWorld(cfg, in.networks())
	if err != nil {
		return ExitFailed, err
	}
	log := newLog(stdout, w.now, cfg.Invocation, cfg.Limits.LogBytes)
	s, err := newServer(cfg, w, log)
	if err != nil {
		return ExitFailed, err
	}
	l, err := listen(context.Background(), cfg.Listen)
	if err != nil {
		return ExitFailed, err
	}
	defer l.Close()
	if err := wire.WriteReady(stdout, in.ready(cfg, challenge.Nonce, l.Addr())); err != nil {
		return ExitFailed, fmt.Errorf("write the ready line: %w", err)
	}
	return serveUntil(s, l, lease)
}

// errLogFull ends a proxy that may not go on unlogged.
var errLogFull = errors.New("the log is full or cannot be written")

// endWithin is how long tunnels and the last lines of the log have after the end was decided. A log
// that nobody reads blocks for ever, and must not keep the proxy alive.
const endWithin = 2 * time.Second

// serveUntil serves until the lease ends, the log is full, or serving fails.
func serveUntil(s *server, l net.Listener, lease *wire.Lease) (int, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	served := make(chan error, 1)
	over := make(chan struct{})
	go func() {
		defer close(over)
		err := s.serve(ctx, l)
		if err != nil {
			served <- err
			cancel(err)
		}
		s.log.End(context.Cause(ctx).Error())
	}()
	go s.flush(ctx)
	var err error
	select {
	case err = <-served:
	case <-lease.Done():
		err = lease.Err()
	case <-s.log.Full():
		err = errLogFull
	}
	cancel(err)
	select {
	case <-over:
	case <-time.After(endWithin):
	}
	if code := codeOf(err); code != ExitStopped {
		return code, err
	}
	return ExitStopped, nil
}

// flush writes counted refusals every second.
func (s *server) flush(ctx context.Context) {
	tick := time.NewTicker(repeatAfter)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.log.Flush()
		case <-ctx.Done():
			return
		}
	}
}

func codeOf(err error) int {
	switch {
	case errors.Is(err, wire.ErrStopped):
		return ExitStopped
	case errors.Is(err, errLogFull):
		return ExitLogFull
	}
	return ExitFailed
}
