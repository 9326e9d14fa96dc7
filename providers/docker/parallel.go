package docker

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// inParallel calls f for 0 to n-1, width at a time, and returns the first error. The same few goroutines do
// it all: a new one for each call would grow its stack each time.
func inParallel(ctx context.Context, width, n int, f func(ctx context.Context, i int) error) error {
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range min(width, n) {
		g.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := f(ctx, i); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return g.Wait()
}
