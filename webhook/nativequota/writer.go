package nativequota

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/events"
)

// AnnotationPolicy on a ResourceQuota of ours names the policy that it was written from.
const AnnotationPolicy = policies.Domain + "/written-from"

// ReasonNotWritten is the reason of the Events on a ResourceQuota that stands in the place of ours.
const ReasonNotWritten = "GPUSliceQuotaNotWritten"

const (
	syncPeriod  = 5 * time.Second // between two looks at what should be there
	callTimeout = 5 * time.Second
)

// Writer writes ResourceQuotas as policies want them. One replica at a time should.
type Writer struct {
	Client   kubernetes.Interface
	Quotas   *Quotas
	Governed func() ([]Governed, error) // all namespaces that policies govern; an error: not known yet
	Log      logr.Logger

	logged map[string]string // what was last logged of a namespace
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) error {
	recorder := events.NewRecorder(klog.NewContext(ctx, w.Log), w.Client)
	defer recorder.Close()
	w.logged = map[string]string{}
	ticker := time.NewTicker(syncPeriod)
	defer ticker.Stop()
	for {
		if w.Quotas.informer.HasSynced() {
			w.sync(ctx, recorder)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// pass brings each namespace to what its policy wants.
func (w *Writer) sync(ctx context.Context, recorder *events.Recorder) {
	governed, err := w.Governed()
	if err != nil {
		return
	}
	wanted, unread := map[string]*corev1.ResourceQuota{}, map[string]bool{}
	for _, g := range governed {
		if g.Policy == nil {
			unread[g.Namespace] = true
			continue
		}
		want, ok := g.Policy.WrittenQuota(g.Pools)
		if ok && want.Why == "" {
			wanted[g.Namespace] = quota(g, want)
		}
		if ok {
			w.logReason(g.Namespace, want.Why)
		}
	}
	for namespace, want := range wanted {
		have := w.Quotas.ownQuota(namespace)
		if have != nil && !have.managed() {
			if w.logReason(namespace, reasonNotManaged) {
				recorder.Write(&corev1.ObjectReference{APIVersion: "v1", Kind: "ResourceQuota", Namespace: namespace, Name: have.Name, UID: have.UID},
					corev1.EventTypeWarning, ReasonNotWritten, reasonNotManaged)
			}
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

// report logs why a namespace has no quota of ours, and says whether that is new. "": it can have one.
func (w *Writer) logReason(namespace, why string) bool {
	if why == "" || w.logged[namespace] == why {
		return false
	}
	w.logged[namespace] = why
	w.Log.Info("resource quota not written", "namespace", namespace, "why", why)
	return true
}

// try does one call and logs what came of it. What failed is tried again with the next pass.
func (w *Writer) call(ctx context.Context, what, namespace string, call func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := call(ctx)
	switch {
	case err == nil:
		w.Log.Info("resource quota kept", "do", what, "namespace", namespace)
	case !errors.Is(err, errNothingToDo):
		w.Log.Error(err, "resource quota not kept", "do", what, "namespace", namespace)
		return
	}
	delete(w.logged, namespace)
}

var errNothingToDo = errors.New("it is as it should be")

// quota is the ResourceQuota that a namespace should have.
func quota(g Governed, want policies.WrittenQuota) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{
			Name: policies.WrittenQuotaName, Namespace: g.Namespace,
			Labels:      map[string]string{policies.LabelQuota: "true"},
			Annotations: map[string]string{AnnotationPolicy: g.Policy.Name},
		},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourceName("requests." + want.Resource): *resource.NewQuantity(want.Hard, resource.DecimalSI),
		}},
	}
}

// write makes the quota, or changes the one that is there. The version that was read is named, so that one that has
// changed hands since is not touched.
func (w *Writer) write(ctx context.Context, have *cachedQuota, want *corev1.ResourceQuota) error {
	client := w.Client.CoreV1().ResourceQuotas(want.Namespace)
	if have == nil {
		_, err := client.Create(ctx, want, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create resource quota: %w", err)
		}
		return nil
	}
	if equality.Semantic.DeepEqual(have.spec, want.Spec) && have.Annotations[AnnotationPolicy] == want.Annotations[AnnotationPolicy] {
		return errNothingToDo
	}
	want.UID, want.ResourceVersion = have.UID, have.ResourceVersion
	labels := maps.Clone(have.Labels)
	maps.Copy(labels, want.Labels)
	annotations := maps.Clone(have.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, want.Annotations)
	want.Labels, want.Annotations = labels, annotations
	if _, err := client.Update(ctx, want, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update resource quota: %w", err)
	}
	return nil
}

// remove deletes the quota that was read, and no other.
func (w *Writer) remove(ctx context.Context, have *cachedQuota) error {
	err := w.Client.CoreV1().ResourceQuotas(have.Namespace).Delete(ctx, have.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete resource quota: %w", err)
	}
	return nil
}
