// Package ticks repeats work at intervals, and waits.
package ticks

import (
	"context"
	"time"
)

// Every yields at once, and then once in each period, until ctx is done.
func Every(ctx context.Context, period time.Duration) func(yield func() bool) {
	return ticks(ctx, period, true)
}

// After yields once in each period until ctx is done, first when one has passed.
func After(ctx context.Context, period time.Duration) func(yield func() bool) {
	return ticks(ctx, period, false)
}

// Sleep waits that long. It reports whether ctx is not done yet.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func ticks(ctx context.Context, period time.Duration, atOnce bool) func(yield func() bool) {
	return func(yield func() bool) {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		if atOnce && !yield() {
			return
		}
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if !yield() {
					return
				}
			}
		}
	}
}
