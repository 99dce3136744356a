// Package ticks repeats work at intervals, and waits.
package ticks

import (
	"context"
	"iter"
	"time"
)

// Every yields at once, and then once in each period, until ctx ends.
func Every(ctx context.Context, period time.Duration) iter.Seq[time.Time] {
	return ticks(ctx, period, true)
}

// After yields once in each period until ctx ends, first when one has passed.
func After(ctx context.Context, period time.Duration) iter.Seq[time.Time] {
	return ticks(ctx, period, false)
}

// Sleep waits that long. It reports whether ctx has not ended meanwhile.
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

func ticks(ctx context.Context, period time.Duration, atOnce bool) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		if atOnce && !yield(time.Now()) {
			return
		}
		for {
			select {
			case <-ctx.Done():
				return
			case at := <-ticker.C:
				if !yield(at) {
					return
				}
			}
		}
	}
}
