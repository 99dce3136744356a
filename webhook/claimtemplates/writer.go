package claimtemplates

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/events"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
)

// strategy is that of slices by claim.
const strategy = "claim"

// Reasons of Events.
const (
	ReasonReplaced = "GPUSliceTemplateReplaced"
	ReasonTooMany  = "GPUSliceTooManyTemplates"
)

const (
	settle      = 50 * time.Millisecond // after a change: pods come in waves
	syncPeriod  = time.Minute           // between two looks at what nobody names, or what is not what it was
	callTimeout = 5 * time.Second
	keep        = time.Hour       // a template that no pod names
	maxBackoff  = 5 * time.Minute // of a namespace in which a call failed
	// maxTemplates bounds what the pods of one namespace can have written: few have more than a dozen sizes.
	maxTemplates = 256
	// maxWrites and maxRemoved bound what is done before pods are looked at again.
	maxWrites, maxRemoved = 32, 8
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
	pods    cache.SharedIndexInformer
	// Since it leads:
	unused  map[string]time.Time // by namespace and name, when a template was first seen without a pod
	backoff map[kind]retry
	full    map[string]bool // namespaces whose pods name more than may be written
	looked  time.Time       // when the last sync began
}

// Verbs of calls.
const verbWrite, verbRemove = "write", "remove"

// kind is the calls that wait for each other after one that failed: what cannot be removed keeps nothing from being written.
type kind struct{ verb, namespace string }

// retry is when there is a next call after one that failed.
type retry struct {
	after time.Time
	wait  time.Duration
}

// New prepares a Writer.
func New(o Options) *Writer { return &Writer{options: o, changed: make(chan struct{}, 1)} }

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) (err error) {
	w.unused, w.backoff, w.full = map[string]time.Time{}, map[kind]retry{}, map[string]bool{}
	if !w.awaitStrategy(ctx) {
		return nil
	}
	if w.pods, err = watchPods(w.options.Client, w.wake); err != nil {
		return err
	}
	done := make(chan struct{})
	defer func() { <-done }()
	go func() { defer close(done); w.pods.RunWithContext(ctx) }()
	if !cache.WaitForCacheSync(ctx.Done(), w.pods.HasSynced) {
		return nil
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

// awaitStrategy returns once a policy allows slices by claim on a cluster that has templates, or one did, and false when ctx ends.
// Until then pods are not watched, but looked at twice: one may name what the last leader could not write before the strategy left the
// last policy, and another replica may admit one a moment after that.
func (w *Writer) awaitStrategy(ctx context.Context) bool {
	ticker := time.NewTicker(syncPeriod / 12)
	defer ticker.Stop()
	looks, next := 2, time.Now()
	for {
		if w.options.Templates.HasSynced() && (w.allowed() || slices.ContainsFunc(w.options.Templates.GetStore().List(), isOursOf)) {
			return true
		}
		if w.options.Templates.HasSynced() && looks > 0 && !time.Now().Before(next) {
			named, err := nameTemplates(ctx, w.options.Client)
			switch {
			case named:
				return true
			case err != nil && ctx.Err() == nil:
				w.options.Log.Error(err, "cannot tell whether pods name templates of claims")
			default:
				looks--
			}
			next = time.Now().Add(syncPeriod)
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}

// allowed reports whether a policy allows slices by claim.
func (w *Writer) allowed() bool {
	governed, _ := w.options.Governed() // none while they are not read
	for _, g := range governed {
		if g.Policy != nil && g.Policy.Allows(strategy) {
			return true
		}
	}
	return false
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

// sync writes what pods name, and removes what none does. It reports whether there is more to do at once.
func (w *Writer) sync(ctx context.Context) (more bool) {
	w.looked = time.Now()
	maps.DeleteFunc(w.backoff, func(_ kind, r retry) bool { return w.looked.Sub(r.after) > maxBackoff })
	governed, err := w.options.Governed()
	if err != nil {
		return false
	}
	namespaces := map[string]bool{}
	for _, g := range governed {
		namespaces[g.Namespace] = true
	}
	named := wanted(w.pods.GetStore().List())
	left, writes := w.left(), 0
	for _, want := range inTurn(named) {
		if !namespaces[want.Namespace] {
			continue
		}
		have := w.cached(want)
		if have != nil && equality.Semantic.DeepEqual(have.Spec.Spec, want.Spec.Spec) || w.waits(verbWrite, want.Namespace) {
			continue
		}
		if have == nil && left.take(want.Namespace) < 0 {
			continue
		}
		if writes++; writes > maxWrites {
			return true
		}
		w.call(ctx, verbWrite, want, func(ctx context.Context) error { return w.write(ctx, have, want) })
	}
	w.reportFull(ctx, left)
	return w.clean(ctx, named, left)
}

// waits reports whether such a call in the namespace failed just now.
func (w *Writer) waits(verb, namespace string) bool {
	return w.looked.Before(w.backoff[kind{verb, namespace}].after)
}

// room is by namespace how many more templates may be written; negative: how many pods wait for.
type room map[string]int

func (w *Writer) left() room {
	out := room{}
	for _, object := range w.options.Templates.GetStore().List() {
		if t, ok := object.(*resourcev1.ResourceClaimTemplate); ok && isOurs(t) {
			out.take(t.Namespace)
		}
	}
	return out
}

// take takes the place of one template, and returns what is left.
func (r room) take(namespace string) int {
	if _, ok := r[namespace]; !ok {
		r[namespace] = maxTemplates
	}
	r[namespace]--
	return r[namespace]
}

// cached is the template of that name as it is; nil: there is none.
func (w *Writer) cached(want *resourcev1.ResourceClaimTemplate) *resourcev1.ResourceClaimTemplate {
	object, _, _ := w.options.Templates.GetStore().GetByKey(want.Namespace + "/" + want.Name)
	have, _ := object.(*resourcev1.ResourceClaimTemplate)
	return have
}

// write makes the template, in place of one of its name that says something else.
func (w *Writer) write(ctx context.Context, have, want *resourcev1.ResourceClaimTemplate) error {
	if have != nil {
		if err := w.remove(ctx, have); err != nil {
			return err
		}
	}
	_, err := w.options.Client.ResourceV1().ResourceClaimTemplates(want.Namespace).Create(ctx, want, metav1.CreateOptions{})
	switch {
	case err != nil && (have != nil || !apierrors.IsAlreadyExists(err)): // a finalizer keeps the one that was deleted
		return fmt.Errorf("create template: %w", err)
	case have != nil:
		w.reportReplaced(ctx, have)
	}
	return nil
}

// remove deletes the template that was read, and no other.
func (w *Writer) remove(ctx context.Context, have *resourcev1.ResourceClaimTemplate) error {
	err := w.options.Client.ResourceV1().ResourceClaimTemplates(have.Namespace).Delete(ctx, have.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete template: %w", err)
	}
	return nil
}

// reportReplaced writes an Event on the template that was replaced.
func (w *Writer) reportReplaced(ctx context.Context, have *resourcev1.ResourceClaimTemplate) {
	w.report(ctx, events.Event{Object: reference("ResourceClaimTemplate", resourcev1.SchemeGroupVersion.String(), have), Type: corev1.EventTypeWarning, Reason: ReasonReplaced,
		Message: "it asked for something else than its name says, and gpuslice's names are what pods are charged for: gpuslice wrote it anew. Claims that were made of it stay as they are until their pods are deleted: gpuslice audit lists them"})
}

func reference(kind, version string, o metav1.Object) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
}

func (w *Writer) report(ctx context.Context, e events.Event) {
	if err := events.Once(ctx, w.options.Client, e); err != nil {
		w.options.Log.Error(err, "claim template not reported", "object", e.Object.Namespace+"/"+e.Object.Name)
	}
}

// reportFull reports to each namespace once that its pods name too many templates.
func (w *Writer) reportFull(ctx context.Context, left room) {
	full := map[string]bool{}
	for namespace, n := range left {
		if n >= 0 {
			continue
		}
		if full[namespace] = true; w.full[namespace] {
			continue
		}
		text := fmt.Sprintf("its pods have slices of more than %d sizes by claim: pods of further sizes wait until others are deleted; use fewer sizes", maxTemplates)
		w.options.Log.Info("too many claim templates", "object", "Namespace "+namespace, "reason", text)
		w.report(ctx, events.Event{Object: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: namespace, Name: namespace},
			Type: corev1.EventTypeWarning, Reason: ReasonTooMany, Message: text, Name: strings.ToLower(ReasonTooMany)})
	}
	w.full = full
}

// clean removes templates of gpuslice's that no pod has named for a while, or at once where others need the room. It reports whether
// there are more of them.
func (w *Writer) clean(ctx context.Context, named map[string]templates, left room) (more bool) {
	seen, removed := map[string]time.Time{}, 0
	for _, object := range w.options.Templates.GetStore().List() {
		have, ok := object.(*resourcev1.ResourceClaimTemplate)
		if !ok || !isOurs(have) || named[have.Namespace][have.Name] != nil {
			continue
		}
		key := have.Namespace + "/" + have.Name
		since, ok := w.unused[key]
		if !ok {
			since = time.Now()
		}
		seen[key] = since
		if time.Since(since) <= keep && left[have.Namespace] >= 0 || w.waits(verbRemove, have.Namespace) {
			continue
		}
		if removed++; removed <= maxRemoved {
			w.call(ctx, verbRemove, have, func(ctx context.Context) error { return w.remove(ctx, have) })
		}
	}
	w.unused = seen
	return removed > maxRemoved
}

// isOurs reports whether gpuslice wrote the template, as far as can be seen. Anybody may write the label.
func isOurs(t *resourcev1.ResourceClaimTemplate) bool {
	return t.Labels["app.kubernetes.io/managed-by"] == "gpuslice" && t.DeletionTimestamp == nil && isSlice(t.Name)
}

func isOursOf(object any) bool {
	t, ok := object.(*resourcev1.ResourceClaimTemplate)
	return ok && isOurs(t)
}

// isSlice reports whether it is a name by which a pod names a slice.
func isSlice(template string) bool {
	pod := &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{ResourceClaimTemplateName: &template}}}}
	return len(policies.Input{Pod: pod}.ClaimTemplates()) > 0
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
