package nativequota

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/events"
	"github.com/gpuslice/gpuslice/webhook/governed"
	"github.com/gpuslice/gpuslice/webhook/leader"
)

// AnnotationPolicy, on gpuslice's own ResourceQuota, names the policy that it was written from.
const AnnotationPolicy = api.Domain + "/written-from"

// ReasonNotWritten is the reason of the Events on a ResourceQuota that has the name of gpuslice's own.
const ReasonNotWritten = "GPUSliceQuotaNotWritten"

const (
	syncPeriod  = 5 * time.Second // between two comparisons with policies
	callTimeout = 5 * time.Second
)

// Writer writes ResourceQuotas as policies want them. Run it in one replica at a time.
type Writer struct {
	Client   kubernetes.Interface
	Quotas   *Quotas
	Governed governed.Source
	Log      logr.Logger

	logged map[string]string // by namespace, the last reason that was logged
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) error {
	w.logged = map[string]string{}
	leader.Every(ctx, syncPeriod, w.sync)
	return nil
}

// sync writes and removes ResourceQuotas until each namespace has those of its policy.
func (w *Writer) sync(ctx context.Context) {
	all, err := w.Governed()
	if err != nil || !w.Quotas.informer.HasSynced() {
		return
	}
	wanted, unread := map[string]*corev1.ResourceQuota{}, map[string]bool{}
	for _, g := range all {
		if g.Policy == nil {
			unread[g.Name] = true
			continue
		}
		want, ok := accounting.WrittenQuotaOf(g.Policy, g.Pools)
		if ok && want.Why == "" {
			wanted[g.Name] = quota(g, want)
		}
		if ok {
			w.logReason(g.Name, want.Why)
		}
	}
	for namespace, want := range wanted {
		have := w.Quotas.ownQuota(namespace)
		if have != nil && !have.managed() {
			w.reportNotManaged(ctx, namespace, have)
			continue
		}
		w.call(ctx, "write", namespace, func(ctx context.Context) error { return w.write(ctx, have, want) })
	}
	for _, have := range w.Quotas.ownQuotas() {
		if have.managed() && wanted[have.Namespace] == nil && !unread[have.Namespace] {
			w.call(ctx, "remove", have.Namespace, func(ctx context.Context) error { return w.remove(ctx, have) })
		}
	}
}

// reportNotManaged writes an Event on another's ResourceQuota, once, whichever replica leads.
func (w *Writer) reportNotManaged(ctx context.Context, namespace string, have *cachedQuota) {
	if !w.logReason(namespace, reasonNotManaged) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "ResourceQuota", Namespace: namespace, Name: have.Name, UID: have.UID}
	err := events.Once(ctx, w.Client,
		events.Event{Object: about, Type: corev1.EventTypeWarning, Reason: ReasonNotWritten, Message: reasonNotManaged})
	if err != nil {
		w.Log.Error(err, "resource quota not reported", "object", object(namespace))
	}
}

// logReason logs why a namespace has no ResourceQuota of gpuslice's own, once. It reports whether the reason is new; an
// empty reason never is.
func (w *Writer) logReason(namespace, reason string) bool {
	if reason == "" || w.logged[namespace] == reason {
		return false
	}
	w.logged[namespace] = reason
	w.Log.Info("resource quota not written", "object", object(namespace), "reason", reason)
	return true
}

// call makes one call and logs its outcome. The next sync repeats a call that failed.
func (w *Writer) call(ctx context.Context, verb, namespace string, do func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := do(ctx)
	switch {
	case err == nil:
		w.Log.Info("changed resource quota", "verb", verb, "object", object(namespace))
	case !errors.Is(err, errUnchanged):
		w.Log.Error(err, "cannot change resource quota", "verb", verb, "object", object(namespace))
		return
	}
	delete(w.logged, namespace)
}

var errUnchanged = errors.New("the resource quota is as the policy wants it")

// object names a namespace's ResourceQuota for the log.
func object(namespace string) string {
	return "ResourceQuota " + namespace + "/" + accounting.WrittenQuotaName
}

// quota returns the ResourceQuota that the policy wants in a namespace.
func quota(g governed.Namespace, want accounting.WrittenQuota) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{
			Name: accounting.WrittenQuotaName, Namespace: g.Name,
			Labels:      map[string]string{accounting.LabelQuota: "true"},
			Annotations: map[string]string{AnnotationPolicy: g.Policy.Name},
		},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourceName("requests." + want.Resource): *resource.NewQuantity(want.Hard, resource.DecimalSI),
		}},
	}
}

// write creates the ResourceQuota, or updates the one that was read. The update names UID and version, so that it cannot hit
// another's.
func (w *Writer) write(ctx context.Context, have *cachedQuota, want *corev1.ResourceQuota) error {
	client := w.Client.CoreV1().ResourceQuotas(want.Namespace)
	if have == nil {
		if _, err := client.Create(ctx, want, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create resource quota: %w", err)
		}
		return nil
	}
	if equality.Semantic.DeepEqual(have.spec, want.Spec) && have.Annotations[AnnotationPolicy] == want.Annotations[AnnotationPolicy] {
		return errUnchanged
	}
	want.UID, want.ResourceVersion = have.UID, have.ResourceVersion
	want.Labels, want.Annotations = labels.Merge(have.Labels, want.Labels), labels.Merge(have.Annotations, want.Annotations)
	if _, err := client.Update(ctx, want, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update resource quota: %w", err)
	}
	return nil
}

// remove deletes the ResourceQuota that was read, and no other.
func (w *Writer) remove(ctx context.Context, have *cachedQuota) error {
	err := w.Client.CoreV1().ResourceQuotas(have.Namespace).Delete(ctx, have.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete resource quota: %w", err)
	}
	return nil
}
