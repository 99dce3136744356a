package observe

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
)

// gather gathers the facts about a pod; nil: it is gone, or there is nothing to observe. An older promise is signed first, whatever
// else cannot be read.
func (s *session) gather(ctx context.Context, key string) (*facts, error) {
	pod, err := s.cached(key)
	if err != nil || pod == nil {
		return nil, err
	}
	given := s.promiseOf(pod)
	if given == nil {
		return nil, nil
	}
	if err := s.refreshSignature(ctx, pod); err != nil {
		return nil, err
	}
	at, err := s.place(ctx, key, pod, given)
	if err != nil {
		return nil, err
	}
	return &facts{key: key, now: time.Now(), pod: pod, promise: given, before: s.previous(key, pod), at: at,
		guard: eventsIn(s.events, pod), agent: agentReports(pod, eventsIn(s.agentEvents, pod))}, nil
}

// cached returns the pod as it was last shown; nil: it is gone, or has no promise.
func (s *session) cached(key string) (*corev1.Pod, error) {
	object, _, err := s.Pods.GetStore().GetByKey(key)
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
		if promised := keys.PromiseOf(pod); promised != nil && !promised.Newer() {
			return promised
		}
		s.options.Log.V(1).Info("ignored a promise that is not signed", "object", "Pod "+pod.Namespace+"/"+pod.Name)
		return nil
	}
	promised, err := promise.Decode(pod.Annotations[api.AnnotationPromise])
	if err != nil || promised.Namespace != pod.Namespace {
		s.options.Log.V(1).Info("ignored a promise that is not the pod's own", "object", "Pod "+pod.Namespace+"/"+pod.Name)
		return nil
	}
	return promised
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

// place returns the facts about the place where a pod runs.
func (s *session) place(ctx context.Context, key string, pod *corev1.Pod, given *promise.Promise) (Place, error) {
	name := pod.Spec.NodeName
	object, _, _ := s.options.Nodes.GetStore().GetByKey(name)
	node, _ := object.(*corev1.Node)
	instances, err := s.instances(ctx, key, pod, given)
	return Place{Node: node, Agent: s.Agents.Enforces(name),
		NotEnforced: s.Agents.NotEnforced(name, string(pod.UID)), Instances: instances}, err
}

// eventsIn returns the Events about the pod that an informer has.
func eventsIn(informer cache.SharedIndexInformer, pod *corev1.Pod) (out []*corev1.Event) {
	objects, _ := informer.GetIndexer().ByIndex(byPod, pod.Namespace+"/"+pod.Name)
	for _, object := range objects {
		if e, ok := object.(*corev1.Event); ok && e.InvolvedObject.UID == pod.UID {
			out = append(out, e)
		}
	}
	return out
}
