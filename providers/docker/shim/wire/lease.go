package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Why a lease ended. Only ErrStopped asks for a graceful end: after the others nobody waits for what
// the container could still say.
var (
	ErrStopped = errors.New("asked to stop")
	ErrClosed  = errors.New("the lease was dropped: standard input ended")
	ErrSilent  = errors.New("the lease ran out")
)

// Challenge opens the stream. Nothing in it is secret from the host; Token is secret from the agent.
type Challenge struct {
	// Nonce is echoed in the report, so that no earlier report can stand in for it.
	Nonce string `json:"nonce"`
	// Token is repeated in the exit record. Who does not know it cannot forge one.
	Token string `json:"token"`
	// HostAddresses are the host's own addresses, which must all be unreachable from inside.
	HostAddresses []string `json:"host_addresses,omitempty"`
}

// Bundle is what an agent needs to begin, and its permission to.
type Bundle struct {
	Prompt []byte `json:"prompt,omitempty"`
	// Credentials are secrets by the name of their credential block.
	Credentials map[string][]byte `json:"credentials,omitempty"`
}

// turns are how many times in a row a Lease listens in vain before it runs out. While a machine stands still,
// nobody can be heard; when it goes on, that was one turn, and what comes in the others counts.
const turns = 10

// Lease is the container's end of the stream: it takes the challenge and the bundle, counts beats,
// and ends with the stream, with a stop, with a broken frame, or after too long a silence.
type Lease struct {
	reader    *Reader
	challenge chan Challenge
	bundle    chan Bundle
	done      chan struct{}
	err       error // written before done is closed
}

// Hold reads frames from r until the lease ends. silence is the longest time without a frame, counted
// from now on: a container that was started by hand, with nobody at its standard input, ends too.
// Reading r goes on in the background after the end, until r itself ends.
func Hold(r io.Reader, silence time.Duration) *Lease {
	l := &Lease{
		reader:    NewReader(r),
		challenge: make(chan Challenge, 1),
		bundle:    make(chan Bundle, 1),
		done:      make(chan struct{}),
	}
	frames := make(chan Frame)
	failed := make(chan error, 1)
	go func() {
		for {
			f, err := l.reader.Next()
			if err != nil {
				failed <- err
				return
			}
			select {
			case frames <- f:
			case <-l.done:
				return
			}
		}
	}()
	go func() {
		l.err = l.watch(frames, failed, silence)
		close(l.done)
	}()
	return l
}

func (l *Lease) watch(frames <-chan Frame, failed <-chan error, silence time.Duration) error {
	timer := time.NewTimer(silence / turns)
	defer timer.Stop()
	for quiet := 0; ; {
		select {
		case f := <-frames:
			if err := l.take(f); err != nil {
				return err
			}
			quiet = 0
			timer.Reset(silence / turns)
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return ErrClosed
			}
			return err
		case <-timer.C:
			if quiet++; quiet == turns {
				return fmt.Errorf("%w: nothing was heard for %s", ErrSilent, silence)
			}
			timer.Reset(silence / turns)
		}
	}
}

func (l *Lease) take(f Frame) error {
	switch f.Type {
	case TypeChallenge:
		var c Challenge
		if err := decode(f.Body, &c); err != nil {
			return fmt.Errorf("%w: challenge: %w", ErrProtocol, err)
		}
		if c.Nonce == "" || c.Token == "" {
			return fmt.Errorf("%w: a challenge without nonce and token", ErrProtocol)
		}
		l.challenge <- c
	case TypeBundle:
		var b Bundle
		if err := decode(f.Body, &b); err != nil {
			return fmt.Errorf("%w: bundle: %w", ErrProtocol, err)
		}
		clear(f.Body) // it holds the credentials, and the agent will share this machine's memory
		l.bundle <- b
	case TypeStop:
		return ErrStopped
	}
	return nil
}

// Challenge waits for the challenge. It may be called once.
func (l *Lease) Challenge(ctx context.Context) (Challenge, error) {
	return await(ctx, l, l.challenge)
}

// AllowBundle permits the bundle; see Reader.AllowBundle.
func (l *Lease) AllowBundle() { l.reader.AllowBundle() }

// Bundle waits for the bundle. It may be called once.
func (l *Lease) Bundle(ctx context.Context) (Bundle, error) {
	return await(ctx, l, l.bundle)
}

// Done is closed when the lease is over; Err then says why.
func (l *Lease) Done() <-chan struct{} { return l.done }

// Err is nil while the lease holds. Afterwards it is ErrStopped, ErrClosed, ErrSilent, ErrProtocol
// (possibly wrapped), or the error of reading.
func (l *Lease) Err() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}

// await prefers the end of the lease: what came before a stop is no longer wanted.
func await[T any](ctx context.Context, l *Lease, from <-chan T) (T, error) {
	var none T
	select {
	case <-l.done:
		return none, l.err
	default:
	}
	select {
	case v := <-from:
		return v, nil
	case <-l.done:
		return none, l.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// decode reads one JSON value and nothing else: both sides are the same program, so that a field
// unknown to one of them is a sign of tampering, not of age.
func decode(body []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}
