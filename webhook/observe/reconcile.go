package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies"
)

// fieldManager owns the annotation.
const fieldManager = "gpuslice-observer"

// errReverted is what a patch comes to whose annotation somebody on the way put back.
var errReverted = errors.New("the annotation did not stay as written: does a webhook of an older release put it back?")

// remembered is what was last observed of a pod.
type lastObservation struct {
	uid         types.UID
	observation Observation
}

// look observes one pod and writes what is new. A panic is an error like others: the webhook that serves beside it must
// not end of a pod that is odd.
func (t *session) reconcile(ctx context.Context, key string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	object, _, err := t.pods.GetStore().GetByKey(key)
	if err != nil {
		return fmt.Errorf("read pod from the cache: %w", err)
	}
	pod, _ := object.(*corev1.Pod)
	promise := t.promiseOf(pod)
	if promise == nil {
		t.forget(key)
		return nil
	}
	if err := t.refreshSignature(ctx, pod); err != nil {
		return err
	}
	before := t.previous(key, pod)
	o := Observe(pod, t.node(pod.Spec.NodeName), promise, t.notices(pod, before))
	t.tally.set(key, o)
	if !needsWrite(pod, o) {
		return nil
	}
	written, err := t.write(ctx, pod, o)
	if err != nil || !written {
		return err
	}
	t.remember(key, pod, o)
	t.writer.writeChanges(pod, before, o)
	t.options.Log.Info("observed", "pod", key, "state", o.State, "tier", o.Tier, "reasons", o.Reasons)
	return nil
}

// promiseOf is what the pod was given; nil: it is none of ours. A promise that was made in another namespace came with
// a copy of a pod, and one that this build cannot read is a newer build's to observe.
func (t *session) promiseOf(pod *corev1.Pod) *policies.Promise {
	if pod == nil {
		return nil
	}
	if keys := t.keys(); keys.Signs() {
		if promise := keys.PromiseOf(pod); promise != nil && !promise.Newer() {
			return promise
		}
		t.options.Log.V(1).Info("pod without a promise to be trusted", "namespace", pod.Namespace, "pod", pod.Name)
		return nil
	}
	promise, err := policies.DecodePromise(pod.Annotations[policies.AnnotationPromise])
	if err != nil || promise.Namespace != pod.Namespace {
		t.options.Log.V(1).Info("pod without a promise of its own", "namespace", pod.Namespace, "pod", pod.Name)
		return nil
	}
	return promise
}

// worthWriting says that the annotation should change. That a pod is pending is said by there being none. A pod that is
// being deleted is left in peace.
func needsWrite(pod *corev1.Pod, o Observation) bool {
	text, written := pod.Annotations[policies.AnnotationObserved]
	if pod.DeletionTimestamp != nil || !written && o.State == Pending {
		return false
	}
	return text != o.Encode()
}

// before is what was observed of the pod until now: by this term, or as the annotation says, which an earlier term wrote
// or anybody did. It is a hint: what it remembers can only weaken.
func (t *session) previous(key string, pod *corev1.Pod) Observation {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.last[key]; ok && known.uid == pod.UID {
		return known.observation
	}
	o, err := DecodeObservation(pod.Annotations[policies.AnnotationObserved])
	if err != nil {
		return Observation{}
	}
	return o
}

func (t *session) remember(key string, pod *corev1.Pod, o Observation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last[key] = lastObservation{pod.UID, o}
}

func (t *session) forget(key string) {
	t.tally.remove(key)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, key)
}

// write patches the one annotation. It returns false where the pod is gone, or another has its name: the UID is part of
// the patch.
func (t *session) write(ctx context.Context, pod *corev1.Pod, o Observation) (bool, error) {
	return t.annotate(ctx, pod, policies.AnnotationObserved, o.Encode())
}

// annotate patches one annotation.
func (t *session) annotate(ctx context.Context, pod *corev1.Pod, name, text string) (bool, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "annotations": map[string]string{name: text}}})
	if err != nil {
		return false, fmt.Errorf("encode patch: %w", err)
	}
	after, err := t.options.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("write annotation %s: %w", name, err)
	case after.Annotations[name] != text:
		return false, errReverted
	}
	return true, nil
}

// keys are those that are known, if any.
func (t *session) keys() policies.Keys {
	if t.options.Keys == nil {
		return policies.Keys{}
	}
	return t.options.Keys()
}

// resign signs a living pod's promise with the newest key, so that the key before it can be taken away.
func (t *session) refreshSignature(ctx context.Context, pod *corev1.Pod) error {
	text, older := t.keys().Resign(pod.Annotations[policies.AnnotationPromise])
	if !older || pod.DeletionTimestamp != nil {
		return nil
	}
	_, err := t.annotate(ctx, pod, policies.AnnotationPromise, text)
	return err
}
