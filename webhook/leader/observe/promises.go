package observe

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// maxPromiseBytes bounds the texts of the promises that are kept decoded: texts differ in length, and a decoded one takes some
// times as much.
const maxPromiseBytes = 2 << 20

// promises are promises as they were decoded under keys. Pods of a workload have the same text, and a node whose labels change
// has many of their pods: to verify and decode it is most of the time that one takes.
type promises struct {
	mu    sync.Mutex
	keys  promise.Keys
	known map[promiseText]*promise.Promise
	size  int // of the texts of known
}

// promiseText identifies the text of a promise.
type promiseText struct{ namespace, text string }

func (t promiseText) size() int { return len(t.namespace) + len(t.text) }

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
		p.keys, p.known, p.size = keys, map[promiseText]*promise.Promise{}, 0
	}
	return p.known[key]
}

func (p *promises) put(key promiseText, keys promise.Keys, decoded *promise.Promise) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.known[key]; known || !p.keys.Equal(keys) || key.size() > maxPromiseBytes {
		return
	}
	for some := range p.known {
		if p.size+key.size() <= maxPromiseBytes {
			break
		}
		p.size -= some.size()
		delete(p.known, some)
	}
	p.size += key.size()
	p.known[key] = decoded
}
