package claimtemplates

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gpuslice/gpuslice/guard/ticks"
	"github.com/gpuslice/gpuslice/webhook/governed"
)

const (
	settle       = 50 * time.Millisecond // after a change: pods come in waves
	syncPeriod   = time.Minute           // between two looks for unnamed or changed templates
	servedPeriod = time.Second           // between two looks whether the cluster serves templates
	maxWrites    = 32                    // before pods are looked at again
)

// Options are the parts of a Writer.
type Options struct {
	Client    kubernetes.Interface
	Templates cache.SharedIndexInformer // all of them; the caller runs it, where the cluster serves them
	Governed  governed.Source
	Log       logr.Logger
}

// Writer writes templates, and removes its own. Run it in one replica at a time.
type Writer struct {
	options Options
	changed chan struct{}
	// Since it leads:
	named   *namedTemplates
	unused  map[string]time.Time // by namespace and name, when a template was first seen without a pod
	backoff *flowcontrol.Backoff // of calls, by verb and namespace
	full    map[string]bool      // namespaces whose pods name more than may be written
	looked  time.Time            // when the last sync began
}

// New prepares a Writer.
func New(o Options) *Writer { return &Writer{options: o, changed: make(chan struct{}, 1)} }

// Run writes the templates that pods name until ctx is done. pods are podcache.Pods with the result of NamedBy. If the
// cluster serves no templates it does nothing.
func (w *Writer) Run(ctx context.Context, pods cache.SharedIndexInformer) error {
	w.named = newNamedTemplates(w.wake, w.lacks)
	w.unused, w.backoff, w.full = map[string]time.Time{}, flowcontrol.NewBackOff(minBackoff, maxBackoff), map[string]bool{}
	served := func(context.Context) (bool, error) { return w.options.Templates.HasSynced(), nil }
	if wait.PollUntilContextCancel(ctx, servedPeriod, true, served) != nil {
		return nil // ctx is done
	}
	remove, err := w.watchTemplates(w.named)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer remove()
	counted, err := pods.AddEventHandler(w.named.handler())
	if err != nil {
		return unlessEnded(ctx, fmt.Errorf("watch pods: %w", err))
	}
	if !cache.WaitForCacheSync(ctx.Done(), counted.HasSynced) {
		return nil
	}
	for {
		more := w.sync(ctx)
		if !w.await(ctx, more) {
			return nil
		}
	}
}

// unlessEnded returns an error of an informer until ctx is done. Afterwards the informer stopped first.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// wake requests a sync. Many calls come to one.
func (w *Writer) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// await returns when there is reason to look again, and false when ctx is done.
func (w *Writer) await(ctx context.Context, more bool) bool {
	if more {
		w.wake()
	}
	select {
	case <-ctx.Done():
		return false
	case <-w.changed:
	case <-time.After(syncPeriod):
	}
	return ticks.Sleep(ctx, settle)
}

// sync writes the templates that pods name, and removes the ones that no pod names. It reports whether there is more to do at
// once.
func (w *Writer) sync(ctx context.Context) (more bool) {
	w.looked = time.Now()
	w.backoff.GC()
	all, err := w.options.Governed()
	if err != nil {
		return false
	}
	namespaces := map[string]bool{}
	for _, g := range all {
		namespaces[g.Name] = true
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

// turn is a template by its name, which determines its content.
type turn struct {
	n               int // of the namespace
	namespace, name string
}

// inTurn lists the templates of each namespace so that the first of each comes before the second of any: no namespace makes others wait.
func inTurn(byNamespace map[string][]string) (turns []turn) {
	for namespace, names := range byNamespace {
		for n, name := range names {
			turns = append(turns, turn{n, namespace, name})
		}
	}
	slices.SortFunc(turns, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.namespace, b.namespace))
	})
	return turns
}
