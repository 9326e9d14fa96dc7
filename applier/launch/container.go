package launch

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// ending is how a container ended, as the engine tells it.
type ending struct {
	process planner.Process
	err     error // of waiting: the engine is gone, or does not know the container any more
}

// authenticity is what is known of the program that a container's first process executes.
type authenticity struct {
	same, known bool
	err         error
}

// container is one container that this run started, with the two ends of the conversation.
type container struct {
	addr   planner.Address
	id     string
	engine Engine
	stdin  io.WriteCloser
	frames *wire.Writer
	nonce  string
	token  string
	// first is the first line of its standard output; the rest goes on.
	first *firstLine
	// last keeps the end of what it wrote to standard error, for messages.
	last *tail
	// process is what it was right after its start: another start time later is another process.
	process planner.Process
	// genuine gets one value once it is known whether its first process is sandplan's own program.
	genuine chan authenticity
	// out gets one value when its output ends, ended one when it does not run any more, mute one when a
	// beat could not be written.
	out   <-chan error
	ended chan ending
	mute  chan error
	// over is set by whoever took the value out of ended, outOver by whoever took the one out of out.
	over    *ending
	outOver bool
	tried   bool               // starting it was asked for
	quit    context.CancelFunc // ends the goroutines
	busy    sync.WaitGroup
}

// open attaches to a container that is armed. Nothing is started.
func (r *run) open(ctx context.Context, addr planner.Address, stdout, stderr io.Writer, token string) (*container, error) {
	c := &container{addr: addr, id: r.ids[addr], engine: r.Engine, token: token,
		nonce: newSecret(), first: newFirstLine(stdout), last: &tail{},
		ended: make(chan ending, 1), mute: make(chan error, 1), genuine: make(chan authenticity, 1)}
	var err error
	c.stdin, c.out, err = c.engine.Attach(ctx, c.id, c.first, io.MultiWriter(c.last, stderr))
	if err != nil {
		return nil, err
	}
	c.frames = wire.NewWriter(c.stdin)
	return c, nil
}

// start starts the container, opens the conversation, and keeps its lease until close.
func (c *container) start(ctx context.Context, hostAddresses []string) error {
	c.tried = true
	if err := c.engine.Start(ctx, c.id); err != nil {
		// The engine may have started it all the same: stop does not take it for never started.
		return err
	}
	life, quit := context.WithCancel(context.WithoutCancel(ctx))
	c.quit = quit
	c.busy.Go(func() {
		p, err := c.engine.Wait(life, c.id)
		c.ended <- ending{p, err}
	})
	c.busy.Go(func() {
		// A container that does not read blocks this, one that has ended makes it fail. Either is found out
		// by whoever waits for its answer, with better words.
		err := c.frames.Challenge(wire.Challenge{Nonce: c.nonce, Token: c.token, HostAddresses: hostAddresses})
		if err == nil {
			err = c.frames.Beats(life, wire.BeatEvery)
		}
		if err != nil {
			c.mute <- err
		}
	})
	var err error
	if c.process, err = c.engine.Process(ctx, c.id); err == nil && c.process.Restarts > 0 {
		err = fmt.Errorf("%s was restarted by somebody", c.addr)
	}
	return err
}

// identify begins to find out what the first process executes. It must have said something by then: an
// engine reports a container as started a moment before the program replaces the engine's own.
func (c *container) identify(ctx context.Context) {
	c.busy.Go(func() {
		var a authenticity
		if c.process.PID != 0 {
			a.same, a.known, a.err = c.engine.Executes(ctx, c.id, c.process.PID)
		}
		c.genuine <- a
	})
}

// authentic makes sure that the first process is sandplan's own program: it alone can be believed. known
// is false where that cannot be told from here.
func (c *container) authentic(ctx context.Context) (known bool, err error) {
	select {
	case a := <-c.genuine:
		if a.err == nil && a.known && !a.same {
			return true, fmt.Errorf("the first process of %s is another program than sandplan's", c.addr)
		}
		return a.known, a.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// started reports whether the engine said that it was started.
func (c *container) started() bool { return c.quit != nil }

// write sends a frame. A container that does not read (a paused one) blocks the writer, so that the
// connection is cut when time runs out; that ends the container too, which is what is wanted then.
func (c *container) write(ctx context.Context, send func() error) error {
	defer context.AfterFunc(ctx, func() { _ = c.stdin.Close() })()
	if err := send(); err != nil {
		return errors.Join(err, ctx.Err())
	}
	return nil
}

// line waits for the first line of standard output.
func (c *container) line(ctx context.Context) ([]byte, error) {
	select {
	case line := <-c.first.line:
		return line, nil
	case err := <-c.out:
		c.outOver = true
		select {
		case line := <-c.first.line: // it said its line and ended at once
			return line, nil
		default:
		}
		return nil, fmt.Errorf("it ended before it said anything%s", c.said(err))
	case err := <-c.mute:
		// It may have ended by itself, and then its own words say more.
		select {
		case line := <-c.first.line:
			return line, nil
		case end := <-c.out:
			c.outOver = true
			return nil, fmt.Errorf("it ended before it said anything%s: %w", c.said(end), err)
		case <-time.After(linkLimit):
			return nil, fmt.Errorf("it cannot be talked to: %w", err)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// said is the end of its standard error for a message, with the error of reading, if any.
func (c *container) said(err error) string {
	text := ""
	if last := bytes.TrimSpace(c.last.bytes()); len(last) > 0 {
		text = fmt.Sprintf("; its last words: %q", last)
	}
	if err != nil {
		text += fmt.Sprintf(" (%v)", err)
	}
	return text
}

// stop ends the container, gracefully if there is time for that, and returns when it certainly does not
// run, or with an error when that cannot be made certain. now cuts the grace short.
func (c *container) stop(ctx context.Context, grace time.Duration, now <-chan struct{}) error {
	if !c.tried {
		return nil
	}
	if c.started() && c.over == nil && grace > 0 {
		asked := make(chan error, 1)
		go func() { asked <- c.frames.Stop() }() // it may block: nobody reads a paused container's pipe
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case e := <-c.ended:
			c.over = &e
		case <-timer.C:
		case <-now:
		}
	}
	// A container that somebody restarts has ended, and runs again.
	for range killAttempts {
		p, err := c.engine.Process(ctx, c.id)
		if errors.Is(err, planner.ErrGone) || err == nil && p.Status != planner.StatusRunning {
			if c.over == nil || c.over.err != nil {
				c.over = &ending{process: p}
			}
			return nil
		}
		// Its lease ends with its standard input, so that it ends even if the engine does not hear us.
		_ = c.stdin.Close()
		if err := c.engine.Kill(ctx, c.id); err != nil && !errors.Is(err, planner.ErrGone) {
			return c.uncertain(err)
		}
		if _, err := c.engine.Wait(ctx, c.id); err != nil && !errors.Is(err, planner.ErrGone) {
			return c.uncertain(err)
		}
	}
	return c.uncertain(errors.New("it is started again and again"))
}

// killAttempts is how often a container is killed that somebody starts again.
const killAttempts = 5

func (c *container) uncertain(err error) error {
	return fmt.Errorf("%s may still run: %w; it ends by itself within %s; container %.12s", c.addr, err, wire.Silence, c.id)
}

// drain waits for the end of the output of a container that does not run any more, so that nothing
// is written to its writers afterwards. A reader who is slow gets the time that he needs: only an output
// that does not move although nobody holds it up is given up, and `now` gives up at once.
func (c *container) drain(limit time.Duration, moving func() bool, now <-chan struct{}) error {
	if c.outOver {
		return nil
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case err := <-c.out:
			c.outOver = true
			return err
		case <-now:
			return fmt.Errorf("the output of %s was cut off", c.addr)
		case <-timer.C:
			if moving() || len(c.out) > 0 { // its end may have come meanwhile, if this process had to wait itself
				timer.Reset(limit)
				continue
			}
			return fmt.Errorf("the output of %s did not end within %s", c.addr, limit)
		}
	}
}

// close ends the conversation and everything that this program does for the container.
func (c *container) close() {
	_ = c.stdin.Close()
	if c.quit != nil {
		c.quit()
	}
	c.busy.Wait()
}

// newSecret is 128 random bits in hex.
func newSecret() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails: it ends the program instead
	return hex.EncodeToString(b[:])
}
