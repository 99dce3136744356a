package podcache

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/webhook/bounded"
)

// ByNode is the index of pods with a promise, by the name of their node.
const ByNode = "node"

// maxPods bounds the copies of all pods, in bytes: tenants choose how large their pods are. A pod that finds no room is
// kept with little more than its name.
const maxPods = 160 << 20

// maxNames bounds the names of claim templates that are kept of pods without room, in bytes: pods whose templates are not written
// cannot start.
const maxNames = 32 << 20

// Names by which Options.Full is called.
const (
	FullPods      = "pods"
	FullTemplates = "claim templates of pods"
)

// Options configure the watch of pods.
type Options struct {
	Client kubernetes.Interface
	// Label is the key of the one label that is kept of pods; "": none is.
	Label string
	// Templates returns the claim templates of a pod that are kept. Optional.
	Templates func(*corev1.Pod) Templates
	// Full is called when a first pod of a namespace finds no room, with FullPods, and when the names of its claim templates find none,
	// with FullTemplates. Optional.
	Full func(kind, namespace string)
}

// NewInformer returns the informer of all pods, as Pods, with the index ByNode. The API server cannot select pods by annotation:
// of those without a promise or devices little more than the name is kept.
func NewInformer(o Options) cache.SharedIndexInformer {
	return o.informer(maxPods, maxNames)
}

func (o Options) informer(podBytes, nameBytes int) cache.SharedIndexInformer {
	names := &bounded.Kept{Name: FullTemplates, Of: o.least, Bytes: nameBytes, Full: o.Full, Least: &bounded.Kept{Of: Options{}.least}}
	return bounded.From(o.Client, o.Client.CoreV1().Pods(metav1.NamespaceAll), nil).Informer(
		bounded.Kept{Name: FullPods, Of: o.Keep, Bytes: podBytes, Full: o.Full, Least: names}, cache.Indexers{ByNode: nodeOf})
}

// Keep returns the Pod of a pod, with its size in bytes.
func (o Options) Keep(object runtime.Object) (runtime.Object, int) {
	return o.keep(object, func(pod *corev1.Pod) *Pod {
		kept, err := Of(pod, o.Label)
		if err != nil {
			return bare(pod)
		}
		return kept
	})
}

// least returns a Pod of which nothing is known but its names, UID, node and claim templates, with its size in bytes.
func (o Options) least(object runtime.Object) (runtime.Object, int) { return o.keep(object, bare) }

func (o Options) keep(object runtime.Object, of func(*corev1.Pod) *Pod) (runtime.Object, int) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, 0
	}
	kept := of(pod)
	if o.Templates != nil {
		kept.templates = o.Templates(pod)
	}
	return kept, kept.size()
}

func nodeOf(object any) ([]string, error) {
	if pod, ok := object.(*Pod); ok && pod.Promised() && pod.Node() != "" {
		return []string{pod.Node()}, nil
	}
	return nil, nil
}

// OnGone calls gone with each pod with a promise or devices that ends, and with each pod that is deleted.
func OnGone(gone func(namespace string, uid types.UID)) cache.ResourceEventHandler {
	call := func(object any, when func(*Pod) bool) {
		if pod, ok := object.(*Pod); ok && when(pod) {
			gone(pod.Namespace(), pod.UID)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, object any) { call(object, (*Pod).Ended) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			call(object, func(*Pod) bool { return true })
		},
	}
}
