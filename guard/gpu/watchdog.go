package gpu

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// watchdog bounds calls into the driver, or into one of its devices. A call that
// hangs cannot be cancelled; until it returns no other is begun, so that it costs
// one thread. Nobody waits again for a lapsed call until it has returned in time,
// so that it costs others the time of one call.
//
// The time in which the guard had work and got no CPU does not count: a busy node
// or the container's CPU limit is no fault of the driver.
type watchdog struct {
	limit   time.Duration
	busy    chan struct{}
	lapsed  [calls]atomic.Bool   // the last one did not return in time
	starved func() time.Duration // how long the guard has waited for a CPU so far
}

// call is a kind of call that a watchdog bounds.
type call int

const (
	initializing call = iota
	counting
	opening
	reading
	sampling // utilization
	charging
	calls int = iota
)

// maxExtension is how many times its limit a call may be extended by.
const maxExtension = 3

func newWatchdog(limit time.Duration) *watchdog {
	return &watchdog{limit: limit, busy: make(chan struct{}, 1), starved: starved}
}

// bounded runs f and returns its result, or ErrHung when the limit passes first. f
// must not touch variables that the caller goes on to use. It is late if nobody
// waits for its result.
func bounded[T any](ctx context.Context, w *watchdog, c call, f func(late bool) (T, error)) (T, error) {
	return boundedSince(ctx, w, w.starved(), c, f)
}

// boundedSince is bounded with how long the guard had been starved before.
func boundedSince[T any](ctx context.Context, w *watchdog, before time.Duration, c call, f func(late bool) (T, error)) (T, error) {
	var none T
	if w.lapsed[c].Load() || w.lapsed[reading].Load() { // other calls do not wait for an unreadable device
		if w.lapsed[c].Load() {
			w.retry(c, func() { _, _ = f(true) })
		}
		return none, fmt.Errorf("%w: the last call took more than %s", ErrHung, w.limit)
	}
	timer := time.NewTimer(w.limit)
	defer timer.Stop()
	select {
	case w.busy <- struct{}{}:
	case <-timer.C:
		w.lapsed[c].Store(true)
		return none, fmt.Errorf("%w: a call has been under way for more than %s", ErrHung, w.limit)
	case <-ctx.Done():
		return none, ctx.Err()
	}
	answers := make(chan answer[T], 1)
	go func() {
		defer func() { <-w.busy }()
		value, err := f(false)
		answers <- answer[T]{value, err}
	}()
	extended := time.Duration(0)
	for {
		select {
		case a := <-answers:
			return a.value, a.err
		case <-timer.C:
			more := min(w.starved()-before, maxExtension*w.limit) - extended
			if more <= 0 {
				w.lapsed[c].Store(true)
				return none, fmt.Errorf("%w: waited %s", ErrHung, w.limit)
			}
			extended += more
			timer.Reset(more)
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

// retry begins a lapsed call, unless one is under way.
func (w *watchdog) retry(c call, f func()) {
	select {
	case w.busy <- struct{}{}:
	default:
		return
	}
	go func() {
		defer func() { <-w.busy }()
		began, before := time.Now(), w.starved()
		f()
		if took := time.Since(began) - min(w.starved()-before, maxExtension*w.limit); took <= w.limit {
			w.lapsed[c].Store(false)
		}
	}()
}

// starved returns the longest time that one of the guard's threads has been
// runnable and not running, be it for want of a CPU or by the container's limit;
// 0 where the kernel does not count it.
func starved() time.Duration {
	files, _ := filepath.Glob("/proc/self/task/*/schedstat") // the pattern is valid
	var longest time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread exited
		}
		const waited = 1 // of "ran waited slices", in nanoseconds
		fields := strings.Fields(string(text))
		if len(fields) <= waited {
			continue
		}
		if n, err := strconv.ParseInt(fields[waited], 10, 64); err == nil {
			longest = max(longest, time.Duration(n))
		}
	}
	return longest
}
