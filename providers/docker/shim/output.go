//go:build linux

package shim

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// output passes what the command prints on, up to a bound for both streams together. The command
// never holds the container's own streams: only the shim can write the last line.
type output struct {
	bound int64
	left  atomic.Int64
	full  chan struct{} // closed when the bound is used up
	once  sync.Once
	wg    sync.WaitGroup
}

func newOutput(bound int64) *output {
	o := &output{bound: bound, full: make(chan struct{})}
	o.left.Store(bound)
	return o
}

// take reserves up to n bytes.
func (o *output) take(n int) int {
	for {
		left := o.left.Load()
		got := min(int64(n), left)
		if o.left.CompareAndSwap(left, left-got) {
			return int(got)
		}
	}
}

// copy passes on what comes from a pipe until all its writers are gone, and counts it in seen. What is
// beyond the bound is read and thrown away, so that nobody blocks who is about to be killed.
func (o *output) copy(to io.Writer, from *os.File, seen *atomic.Int64) {
	o.wg.Go(func() {
		defer from.Close()
		buf := make([]byte, 32<<10)
		cut, midLine := false, false
		for {
			n, err := from.Read(buf)
			seen.Add(int64(n))
			if n > 0 && !cut {
				allowed := o.take(n)
				_, _ = to.Write(buf[:allowed])
				if allowed > 0 {
					midLine = buf[allowed-1] != '\n'
				}
				if cut = allowed < n; cut {
					o.mark(to, midLine)
				}
			}
			if err != nil {
				return
			}
		}
	})
}

// mark says where a stream was cut, on a line of its own.
func (o *output) mark(to io.Writer, midLine bool) {
	lead := ""
	if midLine {
		lead = "\n"
	}
	_, _ = fmt.Fprintf(to, "%ssandplan: cut here, the output bound of %d bytes is used up\n", lead, o.bound)
	o.once.Do(func() { close(o.full) })
}

// drained is closed when both streams have come to their ends.
func (o *output) drained() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		o.wg.Wait()
		close(done)
	}()
	return done
}
