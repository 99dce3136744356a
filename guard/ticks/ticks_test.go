package ticks

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 35*time.Second)
		defer cancel()
		began := time.Now()
		for what, c := range map[string]struct{ n, want int }{
			"at once":        {count(Every(ctx, 10*time.Second), 1), 1},
			"and thereafter": {count(Every(ctx, 10*time.Second), 3), 3},
		} {
			if c.n != c.want {
				t.Errorf("%s: %d times", what, c.n)
			}
		}
		if passed := time.Since(began); passed != 20*time.Second {
			t.Errorf("three times took %s", passed)
		}
		if n := count(After(ctx, 10*time.Second), 5); n != 1 {
			t.Errorf("%d times until the context ended", n)
		}
	})
}

// count counts the times, up to most.
func count(all func(func() bool), most int) (n int) {
	for range all {
		if n++; n == most {
			break
		}
	}
	return n
}
