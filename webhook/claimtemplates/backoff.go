package claimtemplates

import (
	"context"
	"maps"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
)

const (
	callTimeout = 5 * time.Second
	maxBackoff  = 5 * time.Minute // of a namespace in which a call failed
)

// Verbs of calls.
const verbWrite, verbRemove = "write", "remove"

// kind is the calls that wait for each other after one that failed: what cannot be removed keeps nothing from being written.
type kind struct{ verb, namespace string }

// retry is when there is a next call after one that failed.
type retry struct {
	after time.Time
	wait  time.Duration
}

// waits reports whether such a call in the namespace failed just now.
func (w *Writer) waits(verb, namespace string) bool {
	return w.looked.Before(w.backoff[kind{verb, namespace}].after)
}

// call makes one call and logs its outcome. A namespace in which it failed has to wait, so that others do not.
func (w *Writer) call(ctx context.Context, verb string, t *resourcev1.ResourceClaimTemplate, do func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	name, calls := "ResourceClaimTemplate "+t.Namespace+"/"+t.Name, kind{verb, t.Namespace}
	if err := do(ctx); err != nil {
		wait := min(max(2*w.backoff[calls].wait, time.Second), maxBackoff)
		w.backoff[calls] = retry{time.Now().Add(wait), wait}
		w.options.Log.Error(err, "cannot change claim template", "verb", verb, "object", name, "retryAfter", wait.String())
		return
	}
	delete(w.backoff, calls)
	w.options.Log.Info("changed claim template", "verb", verb, "object", name)
}

// nextRetry is how long nothing needs to be done. What did not have to wait at the last look was done then, or needs no doing.
func (w *Writer) nextRetry() time.Duration {
	next := syncPeriod
	for _, r := range w.backoff {
		if r.after.After(w.looked) {
			next = min(next, max(time.Until(r.after), settle))
		}
	}
	return next
}

// forgetRetries forgets the failures that are too long ago to make anything wait.
func (w *Writer) forgetRetries() {
	maps.DeleteFunc(w.backoff, func(_ kind, r retry) bool { return w.looked.Sub(r.after) > maxBackoff })
}
