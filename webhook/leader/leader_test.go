package leader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
)

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		calls, ended := 0, make(chan struct{})
		go func() { defer close(ended); Every(ctx, time.Minute, func(context.Context) { calls++ }) }()
		time.Sleep(10 * time.Second)
		if calls != 1 {
			t.Errorf("%d calls at once", calls)
		}
		time.Sleep(3 * time.Minute)
		if cancel(); calls != 4 {
			t.Errorf("%d calls in three minutes", calls)
		}
		<-ended
	})
}

func TestLead(t *testing.T) {
	failed := errors.New("failed")
	wait := func(ctx context.Context) error { <-ctx.Done(); return nil }
	for name, c := range map[string]struct {
		run  Runnable
		want error
		ends time.Duration // of the lead, which lasts a minute otherwise
	}{
		"a runnable that fails ends the others": {func(context.Context) error { time.Sleep(time.Second); return failed },
			failed, time.Second},
		"a panic ends the lead, and not the replica, after a pause": {func(context.Context) error { time.Sleep(time.Second); panic("odd pod") },
			nil, 3 * time.Second},
		"a runnable that returns ends nothing": {func(context.Context) error { return nil }, nil, time.Minute},
		"an error after the lead is ignored": {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			nil, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				begin, e := time.Now(), &Election{Log: logr.Discard()}
				if err := e.lead(ctx, []Runnable{wait, c.run}); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
					t.Errorf("%v, want %v", err, c.want)
				}
				if took := time.Since(begin); took != c.ends {
					t.Errorf("ended after %v, want %v", took, c.ends)
				}
				if e.Leads() {
					t.Error("still leads")
				}
			})
		})
	}
}
