package observe

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// maxPromises bounds the promises that are kept decoded, to some 10 MB.
const maxPromises = 1024

// promises are promises as they were decoded under keys. Pods of a workload have the same text, and a node whose labels change
// has many of their pods: to verify and decode it is most of the time that one takes.
type promises struct {
	mu    sync.Mutex
	keys  promise.Keys
	known map[promiseText]*promise.Promise
}

// promiseText is what a promise is decoded from.
type promiseText struct{ namespace, text string }

// of returns the promise of the pod; nil: decode returns none. The caller must not change it.
func (p *promises) of(pod *corev1.Pod, keys promise.Keys, decode func(*corev1.Pod) *promise.Promise) *promise.Promise {
	key := promiseText{pod.Namespace, pod.Annotations[api.AnnotationPromise]}
	if known := p.get(key, keys); known != nil {
		return known
	}
	decoded := decode(pod)
	if decoded != nil {
		p.put(key, keys, decoded)
	}
	return decoded
}

// get drops everything where the keys are others.
func (p *promises) get(key promiseText, keys promise.Keys) *promise.Promise {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || !p.keys.Equal(keys) {
		p.keys, p.known = keys, map[promiseText]*promise.Promise{}
	}
	return p.known[key]
}

func (p *promises) put(key promiseText, keys promise.Keys, decoded *promise.Promise) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.keys.Equal(keys) {
		return
	}
	if len(p.known) >= maxPromises {
		for some := range p.known {
			delete(p.known, some)
			break
		}
	}
	p.known[key] = decoded
}
