package launch

import (
	"context"
	"errors"
	"time"
)

// deadline is the time that everything before the agent's start shares. Each step says what it is
// doing, so that when time runs out the message can name it.
type deadline struct {
	limit time.Duration
	ctx   context.Context
	end   context.CancelFunc
}

var errLate = errors.New("out of time")

func newDeadline(ctx context.Context, limit time.Duration) *deadline {
	ctx, end := context.WithTimeoutCause(ctx, limit, errLate)
	return &deadline{limit: limit, ctx: ctx, end: end}
}

// step runs one step. doing completes "it was still …".
func (d *deadline) step(doing string, do func(context.Context) error) error {
	err := d.ctx.Err()
	if err == nil {
		err = do(d.ctx)
	}
	if err != nil && context.Cause(d.ctx) == errLate {
		return &LateError{Limit: d.limit, Doing: doing}
	}
	return err
}
