package usage

import (
	"sync"
	"unique"

	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
)

// watched are the pods as a watch has shown them, including pods that are gone and not counted to their end yet.
type watched struct {
	now      func() Second
	labelKey string // of the label that has lines of its own

	mu   sync.Mutex
	pods map[types.UID]*watchedPod
}

// watchedPod is a pod as it was last shown.
type watchedPod struct {
	pod   *podcache.Pod
	label string
	// bound is when it was bound to its node; 0: it was not.
	bound Second
	// done is when its last container terminated; 0: that is not known, or it has not.
	done Second
	// gone is when it was seen to be gone, or to have terminated at a time that is not known; 0: neither.
	gone Second
	// missed reports whether it went while the watch was broken.
	missed bool
	// over is when it was first seen to have terminated; 0: it was not.
	over Second
	// resolved is its holding as it was last read: many hold the same. The zero Handle: nothing. settled: it does not
	// change.
	resolved unique.Handle[held]
	settled  bool
}

// handler returns the handler of an informer of pods.
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

// put takes a pod. One that was listed may have terminated long ago.
func (w *watched) put(object any, listed bool) {
	defer utilruntime.HandleCrash() // here: an informer whose handler panics on a listed pod never has it synced
	kept, ok := object.(*podcache.Pod)
	if !ok || !kept.Holds() {
		return
	}
	pod, err := kept.Read()
	if err != nil {
		return // cannot happen: it was written in this process
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pods[pod.UID]
	if p == nil {
		p = &watchedPod{}
		w.pods[pod.UID] = p
	}
	p.pod, p.label, p.bound = kept, labelOf(pod, w.labelKey), boundAt(pod)
	if p.done = 0; !kept.Ended() {
		return
	}
	if p.over == 0 {
		p.over = w.now()
	}
	if at, known := endedAt(pod); known && at > 0 {
		p.done = at
	} else if p.gone == 0 {
		p.gone, p.missed = w.now(), listed
	}
}

// replaced takes the pod before as gone if another one of its name is there after: the watch was broken meanwhile.
func (w *watched) replaced(before, after any) {
	b, ok := before.(*podcache.Pod)
	a, also := after.(*podcache.Pod)
	if ok && also && a.UID != b.UID {
		w.gone(b.UID, true)
	}
}

func (w *watched) remove(object any) {
	last, missed := object.(cache.DeletedFinalStateUnknown)
	if missed {
		object = last.Obj
	} else {
		w.put(object, false)
	}
	if pod, ok := object.(*podcache.Pod); ok {
		w.gone(pod.UID, missed)
	}
}

func (w *watched) gone(uid types.UID, missed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.pods[uid]; p != nil && p.gone == 0 {
		p.gone, p.missed = w.now(), missed
	}
}

// held returns the holdings of pods. resolve reads one pod's, until that is settled; nil: nothing that is to be
// trusted. now adds the facts that may change.
func (w *watched) held(resolve func(*podcache.Pod) (h *held, settled bool), now func(*watchedPod, *held)) []held {
	resolved := w.resolve(resolve)
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]held, 0, len(w.pods))
	for _, p := range w.pods {
		if p.bound == 0 {
			continue
		}
		if _, done := resolved[p]; !done && !p.settled { // bound meanwhile
			p.settle(resolve(p.pod))
		}
		if p.resolved == (unique.Handle[held]{}) {
			continue
		}
		h := p.resolved.Value()
		h.from = p.bound
		h.until, h.lost = p.end()
		if h.until != 0 {
			h.until = max(h.until, h.from)
		}
		now(p, &h)
		out = append(out, h)
	}
	return out
}

// resolve resolves the pods on nodes that are not settled, and returns them. Many never are: any device's name may become a pool's.
// The informer's handlers do not wait for it.
func (w *watched) resolve(resolve func(*podcache.Pod) (h *held, settled bool)) map[*watchedPod]*podcache.Pod {
	open := map[*watchedPod]*podcache.Pod{}
	w.mu.Lock()
	for _, p := range w.pods {
		if p.bound != 0 && !p.settled {
			open[p] = p.pod
		}
	}
	w.mu.Unlock()
	for p, kept := range open {
		h, settled := resolve(kept)
		w.mu.Lock()
		p.settle(h, settled)
		w.mu.Unlock()
	}
	return open
}

func (p *watchedPod) settle(h *held, settled bool) {
	p.resolved, p.settled = unique.Handle[held]{}, settled
	if h != nil {
		p.resolved = unique.Make(*h)
	}
}

// end is when the pod terminated, 0: it has not, and whether that is only when it was noticed. Its node dates the end, by a clock that may
// be ahead: no pod holds anything after it was seen to have terminated.
func (p *watchedPod) end() (until Second, lost bool) {
	if p.done == 0 {
		return p.gone, p.missed
	}
	if until = min(p.done, p.over); p.gone != 0 {
		until = min(until, p.gone)
	}
	return until, false
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
