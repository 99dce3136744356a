package watcher

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestReadsAtOnce: a namespace reads few claims at a time, those that wait too long none, and another namespace waits for none of them.
func TestReadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &claimReads{namespaces: map[string]*namespaceReads{}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var running sync.WaitGroup
		var now, most, done atomic.Int64
		for range 50 {
			running.Go(func() {
				r.do(ctx, "hog", func() {
					most.Store(max(most.Load(), now.Add(1)))
					time.Sleep(300 * time.Millisecond)
					now.Add(-1)
					done.Add(1)
				})
			})
		}
		synctest.Wait()
		start, read := time.Now(), false
		r.do(ctx, "team-a", func() { read = true })
		if !read || time.Since(start) > 0 {
			t.Errorf("another namespace reads %t, after %s", read, time.Since(start))
		}
		running.Wait()
		if most.Load() != maxReadsAtOnce || done.Load() != 4*maxReadsAtOnce || len(r.namespaces) > 0 {
			t.Errorf("%d at a time, %d in a second, %d namespaces are left", most.Load(), done.Load(), len(r.namespaces))
		}
	})
}
