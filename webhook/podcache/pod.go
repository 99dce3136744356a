// Package podcache keeps of pods what the leader reads, in little memory: clusters have a hundred thousand.
//
// An informer with Transform has a Pod of each. What pods of a workload have in common, most of all the promise, is kept once;
// all is kept in Kubernetes' binary form, and decoded when somebody reads it.
package podcache

import (
	"errors"
	"fmt"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies/api"
)

// Pod is what is kept of a pod. It never changes.
type Pod struct {
	Name, ResourceVersion string
	UID                   types.UID

	namespace, node unique.Handle[string]
	holder          *holder // nil: it has neither a promise nor devices
}

// holder is what is kept of a pod that may hold devices. The handles stand for texts of which many pods have the same.
type holder struct {
	promised bool
	given    unique.Handle[string] // a corev1.Pod: promise and containers
	owner    unique.Handle[string] // a metav1.ObjectMeta: controller and label
	created  metav1.Time
	deleted  *metav1.Time
	observed observed
	status   string // a corev1.PodStatus
	ended    bool
}

// Of is what is kept of a pod, with one of its labels. Of a pod with neither a promise nor devices that is little more
// than its name.
func Of(pod *corev1.Pod, label string) (*Pod, error) {
	p := &Pod{
		Name: pod.Name, ResourceVersion: pod.ResourceVersion, UID: pod.UID, namespace: unique.Make(pod.Namespace), node: unique.Make(pod.Spec.NodeName),
	}
	promised := pod.Annotations[api.AnnotationPromise] != ""
	if !promised && !namesDevices(pod) {
		return p, nil
	}
	var failed error
	text := func(fields interface{ Marshal() ([]byte, error) }) string {
		b, err := fields.Marshal()
		failed = errors.Join(failed, err)
		return string(b)
	}
	p.holder = &holder{
		promised: promised,
		given:    unique.Make(text(givenOf(pod))), owner: unique.Make(text(ownerOf(pod, label))), status: text(statusOf(&pod.Status)),
		created: pod.CreationTimestamp, deleted: pod.DeletionTimestamp, ended: pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
	}
	if promised { // else its author wrote it
		p.holder.observed = observedOn(pod)
	}
	return p, failed
}

// Transform returns what makes a Pod of each pod that an informer caches.
func Transform(label string) func(any) (any, error) {
	return func(object any) (any, error) {
		if pod, ok := object.(*corev1.Pod); ok {
			return Of(pod, label)
		}
		return object, nil
	}
}

// Namespace is that of the pod.
func (p *Pod) Namespace() string { return p.namespace.Value() }

// Node is the name of the pod's node; "": it has none.
func (p *Pod) Node() string { return p.node.Value() }

// Promised reports whether the pod has the annotation of a promise.
func (p *Pod) Promised() bool { return p.holder != nil && p.holder.promised }

// Holds reports whether the pod has a promise, or names devices.
func (p *Pod) Holds() bool { return p.holder != nil }

// Ended reports whether a pod that may hold devices has succeeded or failed.
func (p *Pod) Ended() bool { return p.holder != nil && p.holder.ended }

// GetObjectMeta implements metav1.ObjectMetaAccessor, by which informers know their objects.
func (p *Pod) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.Namespace(), Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion}
}

// Read returns the pod with all that is kept of it, for the caller to have.
func (p *Pod) Read() (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if p.holder != nil {
		if err := p.holder.read(pod, p.Node()); err != nil {
			return nil, fmt.Errorf("read what is kept of a pod: %w", err)
		}
	}
	pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion = p.Namespace(), p.Name, p.UID, p.ResourceVersion
	pod.Spec.NodeName = p.Node()
	return pod, nil
}

func (p *holder) read(pod *corev1.Pod, node string) error {
	err := errors.Join(pod.Unmarshal([]byte(p.given.Value())), pod.ObjectMeta.Unmarshal([]byte(p.owner.Value())), pod.Status.Unmarshal([]byte(p.status)))
	pod.CreationTimestamp, pod.DeletionTimestamp = p.created, p.deleted.DeepCopy()
	p.observed.write(pod, node)
	return err
}
