package podcache

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// Bounds on copies of a pod: its author chooses how large it is, if no policy governs it.
const (
	maxText       = 64 << 10 // bytes of an annotation: a longer one is none of gpuslice's
	maxName       = 512      // bytes of a name or an image
	maxMessage    = 4 << 10  // bytes of a message: kubelets keep no more of a container's
	maxContainers = 128      // of more only those with devices are kept: pods with a slice may have 64
	maxDevices    = 32       // extended resources of a container
	maxGiven      = 256 << 10
)

// promised reports whether the pod has the annotation of a promise.
func promised(pod *corev1.Pod) bool {
	text := pod.Annotations[api.AnnotationPromise]
	return text != "" && len(text) <= maxText
}

// givenOf has a pod's promise, and the fields of its containers that the leader reads.
func givenOf(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{Spec: corev1.PodSpec{
		RuntimeClassName: pod.Spec.RuntimeClassName,
		InitContainers:   containersOf(pod.Spec.InitContainers), Containers: containersOf(pod.Spec.Containers),
	}}
	out.Annotations = map[string]string{}
	for _, name := range []string{api.AnnotationPromise, api.AnnotationPlanned, api.AnnotationSummary} {
		if text, ok := pod.Annotations[name]; ok && len(text) <= maxText {
			out.Annotations[name] = text
		}
	}
	return out
}

// ownerOf has the controller of a pod, the name of its workload, and one label. They are apart from the promise: each pod may have
// another Job.
func ownerOf(pod *corev1.Pod, label string) *metav1.ObjectMeta {
	out := &metav1.ObjectMeta{}
	for _, key := range []string{label, appsv1.DefaultDeploymentUniqueLabelKey} {
		if value, ok := pod.Labels[key]; ok {
			metav1.SetMetaDataLabel(out, key, value)
		}
	}
	switch owner := metav1.GetControllerOf(pod); {
	case owner == nil:
		out.GenerateName = cut(pod.GenerateName, maxName)
	case owner.Size() <= 4*maxName:
		out.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return out
}

func containersOf(list []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for i := range list {
		devices := devicesOf(&list[i])
		if len(list) > maxContainers && (len(devices) == 0 || len(out) == maxContainers) {
			continue
		}
		c := corev1.Container{Name: list[i].Name, Image: cut(list[i].Image, maxName), RestartPolicy: list[i].RestartPolicy}
		c.Resources.Limits = devices
		out = append(out, c)
	}
	return out
}

// cut is the beginning of a text that is too long.
func cut(text string, most int) string { return text[:min(len(text), most)] }

// devicesOf are the extended resources that a container names, NVIDIA's first where there are too many. Which of them are GPUs depends
// on the pools.
func devicesOf(c *corev1.Container) (out corev1.ResourceList) {
	for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		for name, q := range list {
			if strings.Contains(string(name), "/") && !q.IsZero() {
				if out == nil {
					out = corev1.ResourceList{}
				}
				out[name] = q
			}
		}
	}
	if len(out) > maxDevices {
		names := slices.SortedFunc(maps.Keys(out), func(a, b corev1.ResourceName) int {
			return cmp.Or(strings.Compare(others(a), others(b)), cmp.Compare(a, b))
		})
		for _, name := range names[maxDevices:] {
			delete(out, name)
		}
	}
	return out
}

// others sorts resources that are not NVIDIA's behind those that are.
func others(name corev1.ResourceName) string {
	if strings.HasPrefix(string(name), "nvidia.com/") {
		return ""
	}
	return string(name)
}

func namesDevices(pod *corev1.Pod) bool {
	names := func(c corev1.Container) bool { return len(devicesOf(&c)) > 0 }
	return slices.ContainsFunc(pod.Spec.Containers, names) || slices.ContainsFunc(pod.Spec.InitContainers, names)
}

// statusOf has the fields of a status that the leader reads.
func statusOf(s *corev1.PodStatus) *corev1.PodStatus {
	return &corev1.PodStatus{
		Phase: s.Phase, Reason: cut(s.Reason, maxName), Message: cut(s.Message, maxMessage),
		StartTime: s.StartTime, Conditions: conditionsOf(s.Conditions),
		ResourceClaimStatuses: s.ResourceClaimStatuses[:min(len(s.ResourceClaimStatuses), maxContainers)],
		InitContainerStatuses: statusesOf(s.InitContainerStatuses), ContainerStatuses: statusesOf(s.ContainerStatuses),
	}
}

// conditionsOf keeps when the pod was scheduled.
func conditionsOf(list []corev1.PodCondition) (out []corev1.PodCondition) {
	for i := range list {
		if c := &list[i]; c.Type == corev1.PodScheduled {
			out = append(out, corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return out
}

func statusesOf(list []corev1.ContainerStatus) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, min(len(list), maxContainers))
	for i := range out {
		s := &list[i]
		out[i] = corev1.ContainerStatus{Name: s.Name, State: stateOf(s.State),
			LastTerminationState: stateOf(s.LastTerminationState), RestartCount: s.RestartCount, Started: s.Started}
	}
	return out
}

// stateOf drops the container's ID, the longest text of most.
func stateOf(s corev1.ContainerState) corev1.ContainerState {
	if s.Waiting != nil {
		s.Waiting = &corev1.ContainerStateWaiting{Reason: cut(s.Waiting.Reason, maxName), Message: cut(s.Waiting.Message, maxMessage)}
	}
	if s.Terminated != nil {
		end := *s.Terminated
		end.ContainerID, end.Reason, end.Message, s.Terminated = "", cut(end.Reason, maxName), cut(end.Message, maxMessage), &end
	}
	return s
}

// observed is the annotation gpuslice.dev/observed. Where it names the pod's node, pods of a workload have the rest in common.
type observed struct {
	written       bool
	named         bool // the node's name stands between before and after
	before, after unique.Handle[string]
}

func observedOn(pod *corev1.Pod) (o observed) {
	text, written := pod.Annotations[api.AnnotationObserved]
	if len(text) > maxText {
		return o
	}
	before, after, named := strings.Cut(text, nodeIn(pod.Spec.NodeName))
	return observed{written, named, unique.Make(before), unique.Make(after)}
}

func (o observed) write(pod *corev1.Pod, node string) {
	if !o.written {
		return
	}
	text := o.before.Value()
	if o.named {
		text += nodeIn(node) + o.after.Value()
	}
	pod.Annotations[api.AnnotationObserved] = text
}

func nodeIn(name string) string { return `"node":"` + name + `"` }
