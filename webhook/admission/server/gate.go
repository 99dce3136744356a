package server

import (
	"context"
	"time"
)

// gate admits a fixed number at a time.
type gate chan struct{}

// enter takes a place, waiting for one at most that long. Whoever got true must leave.
func (g gate) enter(ctx context.Context, wait time.Duration) bool {
	select {
	case g <- struct{}{}:
		return true
	default: // a select of all cases would time out by chance although there is a place
	}
	if wait <= 0 {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case g <- struct{}{}:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}

// leave gives the place back.
func (g gate) leave() { <-g }
