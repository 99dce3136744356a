package usage

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// watched are the pods as a watch has shown them, with those that are gone and not counted to their end yet.
type watched struct {
	now func() Second

	mu   sync.Mutex
	pods map[types.UID]*watchedPod
}

// watchedPod is a pod as it was last shown.
type watchedPod struct {
	pod *corev1.Pod
	// gone is when it was seen to be gone, or to have ended at a time that is not known; 0: neither.
	gone Second
	// missed reports whether it went while the watch was broken.
	missed bool
	// over is when it was first seen to have ended; 0: it was not.
	over Second
	// resolved is what it holds as it was last read. settled: it does not change.
	resolved *held
	settled  bool
}

// handler returns what an informer of pods calls.
func (w *watched) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, listed bool) { w.put(object, listed) },
		UpdateFunc: func(before, after any) {
			w.replaced(before, after)
			w.put(after, false)
		},
		DeleteFunc: w.remove,
	}
}

// put takes a pod. One that was listed may have ended long ago.
func (w *watched) put(object any, listed bool) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pods[pod.UID]
	if p == nil {
		p = &watchedPod{}
		w.pods[pod.UID] = p
	}
	p.pod = pod
	if ended(pod) && p.over == 0 {
		p.over = w.now()
	}
	if _, known := endedAt(pod); ended(pod) && !known && p.gone == 0 {
		p.gone, p.missed = w.now(), listed
	}
}

// replaced takes the pod before as gone if another one of its name is there after: the watch was broken meanwhile.
func (w *watched) replaced(before, after any) {
	b, ok := before.(metav1.Object)
	a, also := after.(metav1.Object)
	if ok && also && a.GetUID() != b.GetUID() {
		w.gone(b.GetUID(), true)
	}
}

func (w *watched) remove(object any) {
	last, missed := object.(cache.DeletedFinalStateUnknown)
	if missed {
		object = last.Obj
	} else if pod, ok := object.(*corev1.Pod); ok {
		w.put(pod, false)
	}
	if pod, ok := object.(metav1.Object); ok {
		w.gone(pod.GetUID(), missed)
	}
}

func (w *watched) gone(uid types.UID, missed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.pods[uid]; p != nil && p.gone == 0 {
		p.gone, p.missed = w.now(), missed
	}
}

// held returns what pods hold. resolve reads what one holds, until that is settled; nil: nothing that is to be trusted. now adds what
// may change.
func (w *watched) held(resolve func(*corev1.Pod) (h *held, settled bool), now func(*corev1.Pod, *held)) []held {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]held, 0, len(w.pods))
	for _, p := range w.pods {
		from := boundAt(p.pod)
		if from == 0 {
			continue
		}
		if !p.settled {
			p.resolved, p.settled = resolve(p.pod)
		}
		if p.resolved == nil {
			continue
		}
		h := *p.resolved
		h.from = from
		h.until, h.lost = p.end()
		if h.until != 0 {
			h.until = max(h.until, from)
		}
		now(p.pod, &h)
		out = append(out, h)
	}
	return out
}

// end is when the pod ended, 0: it has not, and whether that is only when it was noticed. Its node dates the end, by a clock that may
// be ahead: no pod holds anything after it was seen to have ended.
func (p *watchedPod) end() (until Second, lost bool) {
	at, known := endedAt(p.pod)
	if !ended(p.pod) || !known {
		return p.gone, p.missed
	}
	if at = min(at, p.over); p.gone != 0 {
		at = min(at, p.gone)
	}
	return at, false
}

// forget drops the pods that are counted to their end.
func (w *watched) forget(counted Second) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, p := range w.pods {
		if until, _ := p.end(); until != 0 && until <= counted {
			delete(w.pods, uid)
		}
	}
}
