package watcher

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// maxReadsAtOnce is how many claims and templates of a namespace are read from the API server at a time: each may have 1.5 MB, and pods may
// name hundreds that are not kept.
const maxReadsAtOnce = 4

// claimReads are the reads of claims that run, by namespace: none makes another wait.
type claimReads struct {
	mu         sync.Mutex
	namespaces map[string]*namespaceReads
}

type namespaceReads struct {
	semaphore *semaphore.Weighted
	users     int // that run or wait
}

// do calls read once the namespace has a place for it, unless ctx ends first.
func (r *claimReads) do(ctx context.Context, namespace string, read func()) {
	r.mu.Lock()
	in := r.namespaces[namespace]
	if in == nil {
		in = &namespaceReads{semaphore: semaphore.NewWeighted(maxReadsAtOnce)}
		r.namespaces[namespace] = in
	}
	in.users++
	r.mu.Unlock()
	if in.semaphore.Acquire(ctx, 1) == nil {
		read()
		in.semaphore.Release(1)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if in.users--; in.users == 0 {
		delete(r.namespaces, namespace)
	}
}
