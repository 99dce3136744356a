package gpu

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestBounded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		takes, starved time.Duration // starved of each second
		hung           bool
		after          time.Duration
	}{
		"in time":                       {900 * time.Millisecond, 0, false, 900 * time.Millisecond},
		"too slow":                      {time.Hour, 0, true, time.Second},
		"too slow for want of a CPU":    {1800 * time.Millisecond, 500 * time.Millisecond, false, 1800 * time.Millisecond},
		"no CPU at all, for ever":       {time.Hour, time.Second, true, 4 * time.Second},
		"too slow besides a want of it": {time.Hour, 500 * time.Millisecond, true, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				w := newWatchdog(time.Second)
				w.starved = func() time.Duration {
					return time.Duration(float64(tc.starved) * time.Since(began).Seconds())
				}
				_, err := bounded(context.Background(), w, reading, func(bool) (int, error) {
					time.Sleep(tc.takes)
					return 0, nil
				})
				took := time.Since(began)
				time.Sleep(tc.takes) // no goroutine is left
				if errors.Is(err, ErrHung) != tc.hung || took.Round(100*time.Millisecond) != tc.after {
					t.Errorf("got %v after %s, want %s", err, took, tc.after)
				}
			})
		})
	}
}

func TestStarved(t *testing.T) {
	t.Parallel()
	if first, second := starved(), starved(); first < 0 || second < first {
		t.Errorf("waited %s, and %s later", first, second)
	}
}
