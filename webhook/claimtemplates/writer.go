package claimtemplates

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/webhook/nativequota"
)

const (
	settle     = 50 * time.Millisecond // after a change: pods come in waves
	syncPeriod = time.Minute           // between two looks at what nobody names, or what is not what it was
	maxWrites  = 32                    // before pods are looked at again
)

// Options are what a Writer is made of.
type Options struct {
	Client    kubernetes.Interface
	Templates cache.SharedIndexInformer // all of them; the caller runs it, where the cluster serves them
	Governed  func() ([]nativequota.Governed, error)
	Log       logr.Logger
}

// Writer writes templates, and removes what it wrote. Run it in one replica at a time.
type Writer struct {
	options Options
	changed chan struct{}
	// Since it leads:
	named   *namedTemplates
	unused  map[string]time.Time // by namespace and name, when a template was first seen without a pod
	backoff map[kind]retry
	full    map[string]bool // namespaces whose pods name more than may be written
	looked  time.Time       // when the last sync began
}

// New prepares a Writer.
func New(o Options) *Writer { return &Writer{options: o, changed: make(chan struct{}, 1)} }

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) error {
	w.named = newNamedTemplates(w.wake, w.lacks)
	w.unused, w.backoff, w.full = map[string]time.Time{}, map[kind]retry{}, map[string]bool{}
	if !w.awaitStrategy(ctx) {
		return nil
	}
	remove, err := w.watchTemplates(w.named)
	if err != nil && ctx.Err() == nil {
		return err
	}
	if err != nil {
		return nil // the informer ended first
	}
	defer remove()
	pods, done := watchPods(w.options.Client, w.named, w.tooMany), make(chan struct{})
	defer func() { <-done }()
	go func() { defer close(done); pods.RunWithContext(ctx) }()
	select {
	case <-ctx.Done():
		return nil
	case <-w.named.listed:
	}
	for {
		more := w.sync(ctx)
		if !w.await(ctx, more) {
			return nil
		}
	}
}

// wake asks for a sync. Many calls come to one.
func (w *Writer) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// await returns when there is reason to look again, and false when ctx ends.
func (w *Writer) await(ctx context.Context, more bool) bool {
	if more {
		w.wake()
	}
	select {
	case <-ctx.Done():
		return false
	case <-w.changed:
	case <-time.After(w.nextRetry()):
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(settle):
		return true
	}
}

// sync writes what pods name, and removes what none does. It reports whether there is more to do at once.
func (w *Writer) sync(ctx context.Context) (more bool) {
	w.looked = time.Now()
	w.forgetRetries()
	governed, err := w.options.Governed()
	if err != nil {
		return false
	}
	namespaces := map[string]bool{}
	for _, g := range governed {
		namespaces[g.Namespace] = true
	}
	left, writes := w.left(), 0
	for _, named := range inTurn(w.named.of(namespaces)) {
		have := w.cached(named.namespace, named.name)
		if w.waits(verbWrite, named.namespace) || have == nil && left.take(named.namespace) < 0 {
			continue
		}
		want := templateNamed(named.namespace, named.name) // costs the most: not for each name of a namespace that is full
		if saysItsName(have, want) {
			continue
		}
		if writes++; writes > maxWrites {
			return true
		}
		w.call(ctx, verbWrite, want, func(ctx context.Context) error { return w.write(ctx, have, want) })
	}
	w.reportFull(ctx, left)
	return w.clean(ctx, left)
}
