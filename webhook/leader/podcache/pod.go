// Package podcache is the leader's one watch of pods, in little memory: clusters have a hundred thousand.
//
// NewInformer keeps a Pod of each, for whoever observes pods, counts their usage, writes their claim templates or frees
// their quota. The common parts of a workload's pods, most of all the promise, are kept once; all is kept in
// Kubernetes' binary form, and decoded when somebody reads it.
package podcache

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Pod is the copy of a pod. It never changes.
type Pod struct {
	Name, ResourceVersion string
	UID                   types.UID

	namespace, node unique.Handle[string]
	holder          *holder // nil: it has neither a promise nor devices
	templates       Templates
}

// holder is the copy of a pod that may hold devices. The handles stand for texts of which many pods have the same.
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

// Of is the copy of a pod, with one of its labels. Without a promise and devices that is little more than its name.
func Of(pod *corev1.Pod, label string) (*Pod, error) {
	p := bare(pod)
	promised := promised(pod)
	if !promised && !namesDevices(pod) {
		return p, nil
	}
	given := givenOf(pod)
	if given.Size() > maxGiven { // no pod that was reviewed
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
		given:    unique.Make(text(given)), owner: unique.Make(text(ownerOf(pod, label))), status: text(statusOf(&pod.Status)),
		created: pod.CreationTimestamp, deleted: pod.DeletionTimestamp,
		ended: pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
	}
	if promised { // else its author wrote it
		p.holder.observed = observedOn(pod)
	}
	return p, failed
}

func bare(pod *corev1.Pod) *Pod {
	node := pod.Spec.NodeName[:min(len(pod.Spec.NodeName), maxName)]
	return &Pod{Name: pod.Name, ResourceVersion: pod.ResourceVersion, UID: pod.UID,
		namespace: unique.Make(pod.Namespace), node: unique.Make(node)}
}

// size is the memory of the pod alone; 0: little more than its name. Templates count as its own, though others may
// share them.
func (p *Pod) size() int {
	if p.holder == nil {
		return p.templates.size()
	}
	n := p.templates.size() + len(p.holder.status) + len(p.holder.owner.Value())
	if o := p.holder.observed; o.written {
		n += len(o.before.Value()) + len(o.after.Value())
	}
	return n + n/8 // memory comes in sizes
}

// Common implements bounded.Sharer: pods of a workload have the same promise.
func (p *Pod) Common() (part any, bytes int) {
	if p.holder == nil {
		return nil, 0
	}
	n := len(p.holder.given.Value())
	return p.holder.given, n + n/8
}

// GetObjectKind implements runtime.Object.
func (p *Pod) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object: a Pod never changes.
func (p *Pod) DeepCopyObject() runtime.Object { return p }

// Namespace is that of the pod.
func (p *Pod) Namespace() string { return p.namespace.Value() }

// Node is the name of the pod's node; "": it has none.
func (p *Pod) Node() string { return p.node.Value() }

// Promised reports whether the pod has the annotation of a promise.
func (p *Pod) Promised() bool { return p.holder != nil && p.holder.promised }

// Holds reports whether the pod has a promise, or names devices.
func (p *Pod) Holds() bool { return p.holder != nil }

// Templates are the claim templates that Options.Templates found.
func (p *Pod) Templates() Templates { return p.templates }

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
	err := errors.Join(pod.Unmarshal([]byte(p.given.Value())), pod.ObjectMeta.Unmarshal([]byte(p.owner.Value())),
		pod.Status.Unmarshal([]byte(p.status)))
	pod.CreationTimestamp, pod.DeletionTimestamp = p.created, p.deleted.DeepCopy()
	p.observed.write(pod, node)
	return err
}

// Templates are the names of claim templates, sorted, each once. Pods that name the same share them. The zero value: none.
type Templates struct{ joined unique.Handle[string] }

// separator is in no name of a template.
const separator = " "

// TemplatesOf returns the Templates of that list, which it sorts.
func TemplatesOf(names []string) Templates {
	if len(names) == 0 {
		return Templates{}
	}
	slices.Sort(names)
	return Templates{unique.Make(strings.Join(slices.Compact(names), separator))}
}

// List returns the names.
func (t Templates) List() []string {
	if t == (Templates{}) {
		return nil
	}
	return strings.Split(t.joined.Value(), separator)
}

func (t Templates) size() int {
	if t == (Templates{}) {
		return 0
	}
	return len(t.joined.Value())
}
