package gpu

import (
	"context"
	"fmt"
	"time"
)

// watchdog bounds calls into the driver. A call that hangs cannot be cancelled;
// until it returns no other is begun, so that it costs one thread.
type watchdog struct {
	limit time.Duration
	busy  chan struct{}
}

func newWatchdog(limit time.Duration) *watchdog {
	return &watchdog{limit: limit, busy: make(chan struct{}, 1)}
}

// bounded runs f and returns what it returned, or ErrHung when the limit passes
// first. f must not touch what the caller goes on to use.
func bounded[T any](ctx context.Context, w *watchdog, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	timer := time.NewTimer(w.limit)
	defer timer.Stop()
	select {
	case w.busy <- struct{}{}:
	case <-timer.C:
		return none, fmt.Errorf("%w: a call has been under way for more than %s", ErrHung, w.limit)
	case <-ctx.Done():
		return none, ctx.Err()
	}
	answers := make(chan answer, 1)
	go func() {
		defer func() { <-w.busy }()
		value, err := f()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-timer.C:
		return none, fmt.Errorf("%w: waited %s", ErrHung, w.limit)
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
