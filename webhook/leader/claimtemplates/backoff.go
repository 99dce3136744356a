package claimtemplates

import (
	"context"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
)

const (
	callTimeout = 5 * time.Second
	minBackoff  = time.Second // of a namespace in which a call failed
	maxBackoff  = 5 * time.Minute
)

// Verbs of calls. Each has its own backoff in a namespace: failed removals block no writes.
const verbWrite, verbRemove = "write", "remove"

// waits reports whether such a call in the namespace failed just now.
func (w *Writer) waits(verb, namespace string) bool {
	return w.backoff.IsInBackOffSinceUpdate(verb+" "+namespace, w.looked)
}

// call makes one call and logs its outcome. A namespace in which it failed has to wait, so that others do not.
func (w *Writer) call(ctx context.Context, verb string, t *resourcev1.ResourceClaimTemplate, do func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	name, calls := "ResourceClaimTemplate "+t.Namespace+"/"+t.Name, verb+" "+t.Namespace
	if err := do(ctx); err != nil {
		w.backoff.Next(calls, time.Now())
		wait := w.backoff.Get(calls)
		time.AfterFunc(wait, w.wake)
		w.options.Log.Error(err, "cannot change claim template", "verb", verb, "object", name, "retryAfter", wait.String())
		return
	}
	w.backoff.DeleteEntry(calls)
	w.options.Log.Info("changed claim template", "verb", verb, "object", name)
}
