package ledger

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// watchedPods are the pods of a namespace as a watch has shown them. A Reflector keeps them. Pods that hold the same are counted
// together: a namespace of thousands of pods is added up for each batch of requests.
type watchedPods struct {
	holdingOf func(*corev1.Pod) (quota.Holding, ChargeBasis)
	gone      *GonePods // to which pods that end or are deleted are added; nil: to none

	mu sync.Mutex
	// current is false while the watch is broken: if etcd is restored meanwhile, resource versions mean something else.
	current  bool
	revision uint64 // up to which all is shown. 0: nothing is shown yet, or versions are no numbers
	pods     map[types.UID]watchedPod
	alike    map[string]*alikePods // by their holding as JSON
	// unmanaged are those of them that are to be reported.
	unmanaged map[types.UID]Pod
	// unpromised counts the pods whose holding may change although they do not, and claiming those whose claims may.
	unpromised, claiming int
}

// watchedPod is a pod as it was last shown.
type watchedPod struct {
	promised uint64 // hash of the promise and of the pod's generation. 0: the holding is read again at each change
	basis    ChargeBasis
	claims   bool
	alike    string
}

// alikePods are n pods that hold the same.
type alikePods struct {
	holding quota.Holding
	n       int
}

// promiseSeed is that of the hashes in watchedPod.
var promiseSeed = maphash.MakeSeed()

// shownPod is the copy of a pod while a list is read: the pod may have a megabyte.
type shownPod struct {
	metav1.ObjectMeta // with names, UID and version alone
	watchedPod
	holding quota.Holding
}

// GetObjectKind implements runtime.Object.
func (p *shownPod) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object: it never changes.
func (p *shownPod) DeepCopyObject() runtime.Object { return p }

// shown is the copy of a pod. The holding of a pod with a promise changes with its spec, which its generation counts,
// and with its claims.
func (w *watchedPods) shown(object runtime.Object) (runtime.Object, int) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, 0
	}
	out := named(pod)
	out.claims = len(pod.Spec.ResourceClaims) > 0
	// A claim may change without its pod, so neither promise nor generation shows it.
	if promise, ok := pod.Annotations[api.AnnotationPromise]; ok && pod.Generation > 0 && !out.claims {
		out.promised = maphash.String(promiseSeed, strconv.FormatInt(pod.Generation, 10)+promise)
	}
	// Checking a signature costs more than all else here, and most updates change only the status.
	if before, holding := w.known(pod.UID); before.basis == BasisPromise && out.promised != 0 && before.promised == out.promised {
		out.watchedPod, out.holding = before, holding
		return out, 0
	}
	out.holding, out.basis = holding(w.holdingOf, pod)
	key, _ := json.Marshal(out.holding) // a Holding can always be encoded
	out.alike = string(key)
	return out, 0
}

// named is the copy of a pod of which only the names are known.
func named(pod *corev1.Pod) *shownPod {
	return &shownPod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace,
		Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion}}
}

// gonePod is the copy of a deleted pod. What it held is not judged once more.
func gonePod(object runtime.Object) runtime.Object {
	if pod, ok := object.(*corev1.Pod); ok {
		return named(pod)
	}
	return object
}

// known is a pod as it was last shown.
func (w *watchedPods) known(uid types.UID) (pod watchedPod, holding quota.Holding) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod, ok := w.pods[uid]
	if ok {
		holding = w.alike[pod.alike].holding
	}
	return pod, holding
}

// Add implements cache.ReflectorStore.
func (w *watchedPods) Add(object any) error {
	if pod, ok := object.(*shownPod); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.put(pod)
		w.shownAt(pod.ResourceVersion)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (w *watchedPods) Update(object any) error { return w.Add(object) }

// Delete implements cache.ReflectorStore. The version of a deleted pod is that of its deletion.
func (w *watchedPods) Delete(object any) error {
	if pod, ok := object.(*shownPod); ok {
		w.gone.Add(string(pod.UID)) // before a view is without it
		w.mu.Lock()
		defer w.mu.Unlock()
		w.remove(pod.UID)
		w.shownAt(pod.ResourceVersion)
	}
	return nil
}

// Replace implements cache.ReflectorStore. The version may be lower than before: another API server may be behind.
func (w *watchedPods) Replace(all []any, version string) error {
	fresh := &watchedPods{pods: make(map[types.UID]watchedPod, len(all)),
		alike: make(map[string]*alikePods), unmanaged: make(map[types.UID]Pod)}
	for _, object := range all {
		if pod, ok := object.(*shownPod); ok {
			fresh.put(pod)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods, w.alike, w.unmanaged, w.unpromised, w.claiming = fresh.pods, fresh.alike, fresh.unmanaged, fresh.unpromised, fresh.claiming
	w.shownAt(version)
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (w *watchedPods) Bookmark(version string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods != nil { // a bookmark before the first list shows nothing
		w.shownAt(version)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (w *watchedPods) Resync() error { return nil }

// dependsOnCluster reports whether a pod's holding may change although the pod does not.
func (w *watchedPods) dependsOnCluster() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unpromised > 0
}

// pending reports whether the pods are to be shown in a moment.
func (w *watchedPods) pending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.current
}

// broken records that the watch has ended. Its pods serve again once the next one shows something.
func (w *watchedPods) broken() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current = false
}

// shownAt records that all is shown up to a resource version. The caller holds w.mu.
func (w *watchedPods) shownAt(version string) {
	w.revision, _ = strconv.ParseUint(version, 10, 64) // 0 where it is no number: unknown
	w.current = true
}

// put adds a pod or replaces it. The caller holds w.mu.
func (w *watchedPods) put(pod *shownPod) {
	if before, ok := w.pods[pod.UID]; ok && before == pod.watchedPod {
		return
	}
	w.remove(pod.UID)
	w.count(pod.watchedPod, 1)
	if pod.basis == BasisUnmanaged && pod.holding.Charge != (quota.Charge{}) {
		w.unmanaged[pod.UID] = Pod{UID: string(pod.UID), Name: pod.Name, Holding: pod.holding, Unmanaged: true}
	}
	same, ok := w.alike[pod.alike]
	if !ok {
		same = &alikePods{holding: pod.holding}
		w.alike[pod.alike] = same
	}
	same.n++
	w.pods[pod.UID] = pod.watchedPod
}

// count adds n to the pod's count. The caller holds w.mu.
func (w *watchedPods) count(pod watchedPod, n int) {
	if pod.basis.ofCluster() {
		w.unpromised += n
	}
	if pod.claims {
		w.claiming += n
	}
}

// remove removes a pod, if it is there. The caller holds w.mu.
func (w *watchedPods) remove(uid types.UID) {
	pod, ok := w.pods[uid]
	if !ok {
		return
	}
	delete(w.pods, uid)
	delete(w.unmanaged, uid)
	w.count(pod, -1)
	same := w.alike[pod.alike]
	if same.n--; same.n == 0 {
		delete(w.alike, pod.alike)
	}
}

// addTo adds the namespace to a view. It reports whether the shown pods can be relied on: claims may change without
// their pods.
func (w *watchedPods) addTo(view *View, namespace string, reservations []Reservation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.current || w.revision == 0 || w.claiming > 0 {
		return false
	}
	view.Namespaces = append(view.Namespaces, Namespace{Name: namespace, Revision: w.revision})
	var sums []Pod
	for _, same := range w.alike {
		sums = append(sums, Pod{Holding: times(same.holding, same.n)})
	}
	view.Base = append(view.Base, baseOf(sums)...)
	for _, r := range reservations {
		if _, ok := w.pods[types.UID(r.PodUID)]; ok {
			view.Shown[r.PodUID] = true
		}
	}
	view.Unmanaged = slices.AppendSeq(view.Unmanaged, maps.Values(w.unmanaged))
	return true
}

// times returns the holding of n pods that hold h each.
func times(h quota.Holding, n int) quota.Holding {
	if n == 1 {
		return h
	}
	half := times(h, n/2)
	sum := half.Plus(half)
	if n%2 == 1 {
		sum = sum.Plus(h)
	}
	return sum
}
