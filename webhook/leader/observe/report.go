package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/events"
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

// reported are the sentences about a pod that have Events.
type reported struct {
	uid       types.UID
	sentences []string
}

// report writes the changes of a judgment: metrics, results of guards, Events and annotations.
func (s *session) report(ctx context.Context, f *facts, j judgment) error {
	s.gauges.set(f.key, j.observation)
	s.recordGuard(f, j)
	if err := s.writeSentences(ctx, f, j.sentences); err != nil {
		return err
	}
	written, err := s.write(ctx, f.pod, j.annotations)
	if err != nil || !written {
		return err
	}
	s.remember(f.key, f.pod, j.observation)
	s.writer.writeChanges(ctx, f.pod, f.before, j.observation)
	s.options.Log.Info("observed", "object", "Pod "+f.key, "state", j.observation.State,
		"tier", j.observation.Tier, "reasons", j.observation.Reasons)
	return nil
}

// recordGuard records the result of a pod's guard.
func (s *session) recordGuard(f *facts, j judgment) {
	if s.options.Guards == nil {
		return
	}
	if j.wait > 0 {
		s.queue.AddAfter(f.key, min(j.wait, readsAfter))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.guarding, f.key); j.guard.Outcome != "" {
		s.guarding[f.key] = unique.Make(reportOn(f.pod.Spec.NodeName, f.promise.Guard.Resource, j.guard))
	}
}

// writeSentences writes an Event about each sentence on the pod, if it has none yet, and its owners, once: the name of the Event does not
// depend on who leads.
func (s *session) writeSentences(ctx context.Context, f *facts, all []sentence) error {
	for _, n := range all {
		if f.now.Sub(n.at) >= terminationTTL || !s.isDue(f.key, f.pod, n.text) {
			continue
		}
		about := s.writer.owners.Of(ctx, f.pod)
		if !n.ownersOnly {
			about = append([]corev1.ObjectReference{podReference(f.pod)}, about...)
		}
		if err := s.writer.writeOnce(ctx, s.options.Client, about, f.pod, n.reason, n.text); err != nil {
			return err
		}
		s.markReported(f.key, n.text)
	}
	return nil
}

// isDue reports whether no Event was written about the sentence, and the pod may have more.
func (s *session) isDue(key string, pod *corev1.Pod, sentence string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.reported[key]; !ok || r.uid != pod.UID {
		s.reported[key] = reported{uid: pod.UID}
	}
	done := s.reported[key].sentences
	return len(done) < maxTerminations && !slices.Contains(done, sentence)
}

func (s *session) markReported(key, sentence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reported[key]
	r.sentences = append(r.sentences, sentence)
	s.reported[key] = r
}

// writeOnce writes an Event of a pod on it or its owners.
func (w eventWriter) writeOnce(ctx context.Context, client kubernetes.Interface,
	about []corev1.ObjectReference, pod *corev1.Pod, reason, sentence string) error {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(string(pod.UID) + sentence))
	for _, object := range about {
		message := sentence
		if object.UID != pod.UID {
			message = "pod " + pod.Name + ": " + sentence
		}
		err := events.Once(ctx, client, events.Event{Object: object, Type: corev1.EventTypeWarning, Reason: reason, Message: message,
			Name: fmt.Sprintf("%s.%s.%x", strings.ToLower(reason), object.UID, hash.Sum64())})
		if err != nil {
			return err
		}
	}
	return nil
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

// write patches annotations of the pod, if there are any to patch. It reports whether it did: the UID and the version are part of
// the patch, so that neither a new pod of the same name is written, nor one that another replica has written since.
func (s *session) write(ctx context.Context, pod *corev1.Pod, annotations map[string]string) (bool, error) {
	if len(annotations) == 0 {
		return false, nil
	}
	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "annotations": annotations}})
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

func (s *session) remember(key string, pod *corev1.Pod, o Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[key] = lastObservation{pod.UID, unique.Make(o.Encode())}
}

func (s *session) forget(key string) {
	s.gauges.remove(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, key)
	delete(s.reported, key)
	delete(s.guarding, key)
	delete(s.claimed, key)
}

// keys returns the keys of trusted promises, if any.
func (s *session) keys() promise.Keys {
	if s.options.Keys == nil {
		return promise.Keys{}
	}
	return s.options.Keys()
}
