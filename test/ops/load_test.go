package ops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gpuslice/gpuslice/policies/api"
)

// load asks all the time, and counts what was not as it should be.
type load struct {
	stop    context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	passed int
	times  []time.Duration
	failed map[string]int // by message
}

// load runs what workers do, each again and again, until it is ended.
func (l *lab) load(workers int, once func(context.Context) error) *load {
	ctx, stop := context.WithCancel(context.WithoutCancel(l.t.Context()))
	out := &load{stop: stop, failed: map[string]int{}}
	for range workers {
		out.running.Go(func() {
			for ctx.Err() == nil {
				out.try(ctx, once)
			}
		})
	}
	l.t.Cleanup(out.end)
	return out
}

// longest bounds one try: a call of ours waits ten seconds, and a pod meets three.
const longest = 40 * time.Second

func (o *load) try(ctx context.Context, once func(context.Context) error) {
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest) // what was begun is counted to its end
	defer cancel()
	begin := time.Now()
	err := once(asking)
	took := time.Since(begin)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.failed[err.Error()]++
		return
	}
	o.passed++
	o.times = append(o.times, took)
}

// end ends the load; it may be called twice.
func (o *load) end() {
	o.stop()
	o.running.Wait()
}

func (o *load) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.passed
}

// failures tells of what failed, and how often; empty: nothing did.
func (o *load) failures() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var lines []string
	for _, text := range slices.Sorted(maps.Keys(o.failed)) {
		lines = append(lines, fmt.Sprintf("%d times: %s", o.failed[text], text))
	}
	return strings.Join(lines[:min(len(lines), 10)], "\n")
}

// judged requests a slice in a dry run, and is only content with one.
func (l *lab) judged(ctx context.Context) error {
	p, err := l.dryRun(ctx, team, slice())
	if err != nil {
		return err
	}
	if p.Annotations[api.AnnotationPromise] == "" {
		return fmt.Errorf("a pod passed without a slice")
	}
	return nil
}
