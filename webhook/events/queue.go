package events

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"
)

// QueueOptions bound a Queue.
type QueueOptions[T any] struct {
	Size     int           // items that wait
	QPS      float32       // items written in a second
	Burst    int           // items written at once
	Remember int           // keys that are remembered
	Quiet    time.Duration // how long a key is remembered, and its items are dropped as repeated
	Allow    func(T) bool  // a further limit on items that are not repeated; nil: none
}

// Queue has the items of Events that are to be written. It is bounded, writes at a limited rate, and takes one item
// for each key in a while. It is safe for concurrent use.
type Queue[T any] struct {
	options QueueOptions[T]
	items   chan T
	recent  *cache.LRUExpireCache
	limiter flowcontrol.RateLimiter
}

// NewQueue returns an empty Queue.
func NewQueue[T any](o QueueOptions[T]) *Queue[T] {
	return &Queue[T]{options: o, items: make(chan T, o.Size), recent: cache.NewLRUExpireCache(o.Remember),
		limiter: flowcontrol.NewTokenBucketRateLimiter(o.QPS, o.Burst)}
}

// AddResult is the result of Add, as metrics label it.
type AddResult string

// The results.
const (
	Added    AddResult = "recorded"
	Repeated AddResult = "repeated" // an item of the same key was added a short while ago
	Dropped  AddResult = "dropped"  // the queue is full, or Allow returned false
)

// Add queues an item. It never blocks.
func (q *Queue[T]) Add(key any, item T) AddResult {
	if _, ok := q.recent.Get(key); ok {
		return Repeated
	}
	if q.options.Allow != nil && !q.options.Allow(item) {
		return Dropped
	}
	select {
	case q.items <- item:
		q.recent.Add(key, true, q.options.Quiet)
		return Added
	default:
		return Dropped
	}
}

// Forget lets the next item of the key in, for instance because writing the last one failed.
func (q *Queue[T]) Forget(key any) { q.recent.Remove(key) }

// Run calls write with each item in turn until ctx is done.
func (q *Queue[T]) Run(ctx context.Context, write func(context.Context, T)) {
	for {
		select {
		case <-ctx.Done():
			return
		case item := <-q.items:
			if q.limiter.Wait(ctx) == nil {
				write(ctx, item)
			}
		}
	}
}
