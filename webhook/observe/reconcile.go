package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/podcache"
)

// fieldManager is the owner of the annotation in managedFields.
const fieldManager = "gpuslice-observer"

// errReverted is the error of a patch whose annotation an admission webhook restored.
var errReverted = errors.New("the annotation was not stored as written: does a webhook of an older release restore it?")

// lastObservation is the last observation of a pod, as text: pods of a workload and a node have the same.
type lastObservation struct {
	uid  types.UID
	text unique.Handle[string]
}

// reconcile observes one pod and writes what has changed. A panic is an error like others: an odd pod must not stop the
// webhook that serves in the same process.
func (s *session) reconcile(ctx context.Context, key string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	pod, err := s.cached(key)
	if err != nil {
		return err
	}
	promise := s.promiseOf(pod)
	if promise == nil {
		s.forget(key)
		return nil
	}
	if err := s.refreshSignature(ctx, pod); err != nil {
		return err
	}
	before := s.previous(key, pod)
	at := s.place(pod)
	if at.Instances, err = s.instances(ctx, key, pod, promise); err != nil {
		return err
	}
	o := Observe(pod, at, promise, s.notices(pod, before))
	o.Terminations = s.terminations(pod, promise, before)
	s.tally.set(key, o)
	s.recordGuard(key, pod, promise, o.Notices)
	if err := s.report(ctx, key, pod, promise, o.Terminations); err != nil {
		return err
	}
	written, err := s.write(ctx, pod, annotationsOf(pod, promise, o))
	if err != nil || !written {
		return err
	}
	s.remember(key, pod, o)
	s.writer.writeChanges(ctx, pod, before, o)
	s.options.Log.Info("observed", "object", "Pod "+key, "state", o.State, "tier", o.Tier, "reasons", o.Reasons)
	return nil
}

// cached returns the pod as it was last shown; nil: it is gone, or has no promise.
func (s *session) cached(key string) (*corev1.Pod, error) {
	object, _, err := s.pods.GetStore().GetByKey(key)
	if err != nil {
		return nil, fmt.Errorf("read pod from the cache: %w", err)
	}
	if kept, ok := object.(*podcache.Pod); ok && kept.Promised() {
		return kept.Read()
	}
	return nil, nil
}

// promiseOf returns the pod's promise; nil if there is none to observe. A promise from another namespace came with a copy
// of a pod, and one that this build cannot read is observed by a newer build.
func (s *session) promiseOf(pod *corev1.Pod) *promise.Promise {
	if pod == nil {
		return nil
	}
	keys := s.keys()
	return s.promises.of(pod, keys, func(pod *corev1.Pod) *promise.Promise {
		decoded := s.decodePromise(pod, keys)
		if decoded != nil {
			s.relevance.add(decoded)
		}
		return decoded
	})
}

func (s *session) decodePromise(pod *corev1.Pod, keys promise.Keys) *promise.Promise {
	if keys.Signs() {
		if promise := keys.PromiseOf(pod); promise != nil && !promise.Newer() {
			return promise
		}
		s.options.Log.V(1).Info("ignored a promise that is not signed", "object", "Pod "+pod.Namespace+"/"+pod.Name)
		return nil
	}
	promise, err := promise.Decode(pod.Annotations[api.AnnotationPromise])
	if err != nil || promise.Namespace != pod.Namespace {
		s.options.Log.V(1).Info("ignored a promise that is not the pod's own", "object", "Pod "+pod.Namespace+"/"+pod.Name)
		return nil
	}
	return promise
}

// annotationsOf returns the annotations that should change: what is observed, and the summary by what enforces the slice now. A
// pending pod needs none, and a pod that is being deleted is not written any more.
func annotationsOf(pod *corev1.Pod, promise *promise.Promise, o Observation) map[string]string {
	text, written := pod.Annotations[api.AnnotationObserved]
	changed := map[string]string{}
	if pod.DeletionTimestamp != nil || !written && o.State == Pending {
		return changed
	}
	if now := o.Encode(); now != text {
		changed[api.AnnotationObserved] = now
	}
	if now := promise.Summary(o.Tier); o.Tier != "" && now != "" && now != pod.Annotations[api.AnnotationSummary] {
		changed[api.AnnotationSummary] = now
	}
	return changed
}

// previous returns the last observation of the pod: of this session, or from the annotation, which an earlier session or
// anybody may have written. It is a hint: its notices can only lower a tier.
func (s *session) previous(key string, pod *corev1.Pod) Observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.last[key]; ok && known.uid == pod.UID {
		o, _ := decodeObservation(known.text.Value()) // it was encoded here
		return o
	}
	o, err := DecodeObservation(pod.Annotations[api.AnnotationObserved])
	if err != nil {
		return Observation{}
	}
	return o
}

func (s *session) remember(key string, pod *corev1.Pod, o Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[key] = lastObservation{pod.UID, unique.Make(o.Encode())}
}

func (s *session) forget(key string) {
	s.tally.remove(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, key)
	delete(s.reported, key)
	delete(s.guarding, key)
	delete(s.claimed, key)
}

// write patches annotations of the pod, if there are any to patch. It reports whether it did: the UID and the version are part of
// the patch, so that neither a new pod of the same name is written, nor one that another replica has written since.
func (s *session) write(ctx context.Context, pod *corev1.Pod, annotations map[string]string) (bool, error) {
	if len(annotations) == 0 {
		return false, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "annotations": annotations}})
	if err != nil {
		return false, fmt.Errorf("encode patch: %w", err)
	}
	after, err := s.options.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("write annotations %v: %w", slices.Sorted(maps.Keys(annotations)), err)
	}
	for name, text := range annotations {
		if after.Annotations[name] != text {
			return false, errReverted
		}
	}
	return true, nil
}

// keys returns the keys of trusted promises, if any.
func (s *session) keys() promise.Keys {
	if s.options.Keys == nil {
		return promise.Keys{}
	}
	return s.options.Keys()
}

// refreshSignature signs a living pod's promise with the newest key, so that the previous key can be removed.
func (s *session) refreshSignature(ctx context.Context, pod *corev1.Pod) error {
	text, older := s.keys().Resign(pod.Annotations[api.AnnotationPromise])
	if !older || pod.DeletionTimestamp != nil {
		return nil
	}
	_, err := s.write(ctx, pod, map[string]string{api.AnnotationPromise: text})
	return err
}
