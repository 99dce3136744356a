package policies

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Restore answers an UPDATE of a pod that holds a Promise: updated with the fields that are gpuslice's put back as old
// has them, whole lists in their order, so that a bare manifest applied over a live pod changes nothing. It refuses a
// change of our labels on a live pod. Pods without a Promise, or being deleted, come back as they are.
func Restore(old, updated *corev1.Pod) (*corev1.Pod, []Violation) {
	promise, err := DecodePromise(old.Annotations[AnnotationPromise])
	if old.Annotations[AnnotationPromise] == "" || err != nil || updated.DeletionTimestamp != nil {
		return updated, nil
	}
	out := updated.DeepCopy()
	restoreAnnotations(old, out)
	spec, was := &out.Spec, &old.Spec
	restoreContainers(spec.InitContainers, was.InitContainers)
	restoreContainers(spec.Containers, was.Containers)
	spec.InitContainers = restoreList(spec.InitContainers, was.InitContainers, func(c corev1.Container) bool { return isOurContainer(c.Name) }, sameContainer)
	spec.Containers = restoreList(spec.Containers, was.Containers, func(c corev1.Container) bool { return isOurContainer(c.Name) }, sameContainer)
	spec.Volumes = restoreList(spec.Volumes, was.Volumes, func(v corev1.Volume) bool { return isOurVolume(v.Name) },
		func(a, b corev1.Volume) bool { return a.Name == b.Name })
	restorePod(spec, was, promise)
	return out, changedLabels(old, updated)
}

// changedLabels refuses what would make the pod say something else than what it was given.
func changedLabels(old, updated *corev1.Pod) (out []Violation) {
	for _, reader := range labelReaders() {
		was, had := old.Labels[reader.label]
		is, has := updated.Labels[reader.label]
		if was != is || had != has {
			out = append(out, Violation{RuleImmutable, "the slice of a live pod cannot change", fmt.Sprintf(
				"label %s was %s and would be %s; delete the pod and create it again with the new value", reader.label, presence(was, had), presence(is, has))})
		}
	}
	return out
}

func presence(value string, there bool) string {
	if !there {
		return "absent"
	}
	return quoteShort(value)
}

func restoreAnnotations(old, out *corev1.Pod) {
	for _, name := range ownAnnotations() {
		value, ok := old.Annotations[name]
		if !ok {
			delete(out.Annotations, name)
			continue
		}
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		out.Annotations[name] = value
	}
}

// restoreContainers puts back, in each container that both have, the lists that hold something of ours.
func restoreContainers(list, was []corev1.Container) {
	for i := range list {
		c := &list[i]
		j := slices.IndexFunc(was, func(o corev1.Container) bool { return o.Name == c.Name })
		if j < 0 {
			continue
		}
		o := &was[j]
		c.Env = restoreEnv(c.Env, o.Env)
		c.VolumeMounts = restoreList(c.VolumeMounts, o.VolumeMounts, func(m corev1.VolumeMount) bool { return isOurVolume(m.Name) },
			func(a, b corev1.VolumeMount) bool { return a.MountPath == b.MountPath })
		restoreGPU(&c.Resources.Limits, o.Resources.Limits)
		restoreGPU(&c.Resources.Requests, o.Resources.Requests)
	}
}

// restoreGPU makes the GPU entries of a resource list those of the old object: they are immutable on a live pod, and a
// manifest applied again names them as its author wrote them.
func restoreGPU(list *corev1.ResourceList, was corev1.ResourceList) {
	for name := range *list {
		if _, ok := was[name]; !ok && isGPUResource(string(name), nil) {
			delete(*list, name)
		}
	}
	for name, q := range was {
		if !isGPUResource(string(name), nil) {
			continue
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = q.DeepCopy()
	}
}

// restoreEnv returns the old list where the new one holds nothing that the old one does not: variables are immutable on
// a live pod, order included, and applying a manifest reorders them. Otherwise the author changed something, and the
// server's own answer should be about that.
func restoreEnv(env, was []corev1.EnvVar) []corev1.EnvVar {
	for _, e := range env {
		if !slices.ContainsFunc(was, func(o corev1.EnvVar) bool { return o.Name == e.Name && equality.Semantic.DeepEqual(o, e) }) {
			return env
		}
	}
	return slices.Clone(was)
}

// restoreList returns the old list where the new one differs from it by elements of ours and by order alone; else the
// new one with those of ours that it lacks.
func restoreList[T any](list, was []T, ours func(T) bool, same func(a, b T) bool) []T {
	inOld := func(e T) int { return slices.IndexFunc(was, func(o T) bool { return same(e, o) }) }
	theirs := 0
	for _, e := range list {
		if ours(e) {
			continue
		}
		if inOld(e) < 0 {
			return list
		}
		theirs++
	}
	oldTheirs := 0
	for _, o := range was {
		if !ours(o) {
			oldTheirs++
		}
	}
	if theirs != oldTheirs {
		return list
	}
	out := make([]T, len(was))
	for i, o := range was {
		out[i] = o
		if j := slices.IndexFunc(list, func(e T) bool { return same(e, o) }); j >= 0 && !ours(o) {
			out[i] = list[j] // the author's own change of it stays
		}
	}
	return out
}

func sameContainer(a, b corev1.Container) bool { return a.Name == b.Name }

// restorePod puts back what was written into the pod itself.
func restorePod(spec, was *corev1.PodSpec, p *Promise) {
	if len(p.Affinity) > 0 {
		spec.Affinity = was.Affinity.DeepCopy()
	}
	if p.Pod.PriorityClassName != "" {
		spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = was.PriorityClassName, was.Priority, was.PreemptionPolicy
	}
	if p.Pod.SchedulerName != "" {
		spec.SchedulerName = was.SchedulerName
	}
	if p.Pod.RuntimeClassName != "" {
		spec.RuntimeClassName = was.RuntimeClassName
	}
	for _, t := range was.Tolerations { // tolerations may only be added to a live pod
		if hasToleration(p.Tolerations, t) && !hasToleration(spec.Tolerations, t) {
			spec.Tolerations = append(spec.Tolerations, t)
		}
	}
}
