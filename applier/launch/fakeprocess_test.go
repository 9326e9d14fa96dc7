package launch

import (
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/sandplan/sandplan/planner"
)

// program is what runs in a container. It ends when killed is closed, or it is not waited for.
type program func(p *fakeProcess) (exitCode int)

type fakeProcess struct {
	stdin          *io.PipeReader
	clientEnd      *io.PipeWriter
	stdout, stderr io.Writer
	out            chan error
	outOnce        sync.Once
	killed         chan struct{}
	killOnce       sync.Once
	over           chan struct{}
	process        planner.Process
	chunks         chan chunk
	outEnds        chan error
	mute           chan struct{}
}

// chunk is something that a container wrote. The engine keeps it until the client has read it.
type chunk struct {
	to io.Writer
	b  []byte
}

// pump hands the client what the container wrote, one after another, and then the end of it.
func (p *fakeProcess) pump() {
	for {
		select {
		case c := <-p.chunks:
			_, _ = c.to.Write(c.b)
			continue
		default:
		}
		select {
		case c := <-p.chunks:
			_, _ = c.to.Write(c.b)
		case err := <-p.outEnds:
			if len(p.chunks) > 0 {
				p.outEnds <- err
				continue
			}
			p.out <- err
			return
		}
	}
}

// endOutput lets nothing more be written.
func (p *fakeProcess) endOutput(err error) {
	p.outOnce.Do(func() {
		close(p.mute)
		p.outEnds <- err
	})
}

// output is a stream of a process as its program sees it.
type output struct {
	p  *fakeProcess
	to io.Writer
}

func (o output) Write(b []byte) (int, error) {
	select {
	case <-o.p.mute: // a program that was killed writes nothing any more
		return 0, errors.New("broken pipe")
	default:
	}
	select {
	case o.p.chunks <- chunk{o.to, slices.Clone(b)}:
		return len(b), nil
	case <-o.p.mute:
		return 0, errors.New("broken pipe")
	}
}

// cut breaks the connection between client and container.
func (p *fakeProcess) cut() {
	p.endOutput(errors.New("connection reset"))
	_ = p.clientEnd.CloseWithError(io.EOF)
	_ = p.stdin.CloseWithError(errors.New("broken pipe"))
}
