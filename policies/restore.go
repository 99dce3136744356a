package policies

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Restore answers an UPDATE of a pod that holds a Promise: updated with the fields that are gpuslice's put back as old
// has them, whole lists in their order, so that a bare manifest applied over a live pod changes nothing. It refuses a
// change of our labels on a live pod. Pods without a Promise, or being deleted, come back as they are.
//
// What a newer build gave is put back as far as this one knows it: both are asked while one takes the other's place, and
// after a way back the pods of the newer one live on.
func Restore(old, updated *corev1.Pod) (*corev1.Pod, []Violation) {
	promise, err := decodePromise(old.Annotations[AnnotationPromise], true)
	if old.Annotations[AnnotationPromise] == "" || err != nil || updated.DeletionTimestamp != nil {
		return updated, nil
	}
	out := updated.DeepCopy()
	restoreAnnotations(old, out, promise)
	spec, was := &out.Spec, &old.Spec
	restoreContainers(spec.InitContainers, was.InitContainers, promise)
	restoreContainers(spec.Containers, was.Containers, promise)
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
			out = append(out, changed("label "+reader.label, presence(was, had), presence(is, has)))
		}
	}
	was, had := old.Annotations[AnnotationContainers]
	is, has := updated.Annotations[AnnotationContainers]
	if was != is || had != has {
		out = append(out, changed("annotation "+AnnotationContainers, presence(was, had), presence(is, has)))
	}
	return out
}

func changed(what, was, is string) Violation {
	return Violation{RuleImmutable, "the slice of a live pod cannot change", fmt.Sprintf(
		"%s was %s and would be %s; delete the pod and create it again with the new value", what, was, is)}
}

func presence(value string, there bool) string {
	if !there {
		return "absent"
	}
	return quoteShort(value)
}

func restoreAnnotations(old, out *corev1.Pod, promise *Promise) {
	names := ownAnnotations()
	if promise.Guard != nil {
		names = slices.AppendSeq(names, maps.Keys(promise.Guard.Annotations))
	}
	for _, name := range names {
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
func restoreContainers(list, was []corev1.Container, promise *Promise) {
	for i := range list {
		c := &list[i]
		j := slices.IndexFunc(was, func(o corev1.Container) bool { return o.Name == c.Name })
		if j < 0 {
			continue
		}
		o, given := &was[j], givenTo(promise, c.Name)
		if p := given.container; p != nil && slices.Equal(c.Args, withoutArgs(o.Args, p.Args)) {
			c.Args = slices.Clone(o.Args)
		}
		c.Env = restoreEnv(c.Env, o.Env, given.variable)
		c.VolumeMounts = restoreList(c.VolumeMounts, o.VolumeMounts, given.mount, func(a, b corev1.VolumeMount) bool { return a.MountPath == b.MountPath })
		restoreGPU(&c.Resources.Limits, o.Resources.Limits, given.resource)
		restoreGPU(&c.Resources.Requests, o.Resources.Requests, given.resource)
	}
}

// given tells what of a container is gpuslice's: by name, or because a Promise gave it.
type given struct {
	container *PromisedContainer // nil: it has no slice
	asked     string             // the GPU resource that its author named
	void      bool
}

func givenTo(promise *Promise, container string) given {
	return given{
		container: promise.container(container), asked: promise.Request.resourceOf(container),
		void: slices.Contains(promise.Void, container),
	}
}

func (g given) variable(e corev1.EnvVar) bool {
	return isOwnVariable(e.Name) || g.container.sets(e.Name) || e.Name == imexChannels || (g.void || g.container != nil) && e.Name == VarVisibleDevices
}

func (g given) mount(m corev1.VolumeMount) bool {
	return isOurVolume(m.Name) || g.container != nil && slices.ContainsFunc(g.container.Mounts, func(own corev1.VolumeMount) bool { return own.MountPath == m.MountPath })
}

func (g given) resource(name corev1.ResourceName) bool {
	return isGPUResource(string(name), nil) || g.container != nil && (string(name) == g.container.Resource || string(name) == g.asked)
}

// restoreGPU makes the GPU entries of a resource list those of the old object: they are immutable on a live pod, and a
// manifest applied again names them as its author wrote them.
func restoreGPU(list *corev1.ResourceList, was corev1.ResourceList, gpu func(corev1.ResourceName) bool) {
	for name := range *list {
		if _, ok := was[name]; !ok && gpu(name) {
			delete(*list, name)
		}
	}
	for name, q := range was {
		if !gpu(name) {
			continue
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = q.DeepCopy()
	}
}

// restoreEnv returns the old list where the new one differs from it by variables of ours and by order alone: variables
// are immutable on a live pod, order included, and applying a manifest reorders them. Otherwise the author changed
// something, and the server's own answer should be about that.
func restoreEnv(env, was []corev1.EnvVar, ours func(corev1.EnvVar) bool) []corev1.EnvVar {
	if theirsWithin(env, was, ours) && theirsWithin(was, env, ours) {
		return slices.Clone(was)
	}
	return env
}

// theirsWithin says that every variable of list that is not ours stands in other too.
func theirsWithin(list, other []corev1.EnvVar, ours func(corev1.EnvVar) bool) bool {
	for _, e := range list {
		if !ours(e) && !slices.ContainsFunc(other, func(o corev1.EnvVar) bool { return o.Name == e.Name && equality.Semantic.DeepEqual(o, e) }) {
			return false
		}
	}
	return true
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

// restorePod puts back what was written into the pod itself where the update says nothing of it. What it does say is
// for the server to judge: a scheduling gate may be lifted together with a narrower affinity.
func restorePod(spec, was *corev1.PodSpec, p *Promise) {
	restoreAffinity(spec, was, p.Affinity)
	if p.Pod.PriorityClassName != "" && (spec.PriorityClassName == "" || spec.PriorityClassName == was.PriorityClassName) {
		spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = was.PriorityClassName, was.Priority, was.PreemptionPolicy
	}
	if p.Pod.SchedulerName != "" && (spec.SchedulerName == "" || spec.SchedulerName == corev1.DefaultSchedulerName) {
		spec.SchedulerName = was.SchedulerName
	}
	if p.Pod.RuntimeClassName != "" && spec.RuntimeClassName == nil {
		spec.RuntimeClassName = was.RuntimeClassName
	}
	if p.Pod.HostIPC {
		spec.HostIPC = was.HostIPC
	}
	if p.Guard != nil {
		restoreGuard(spec, was, p.Guard)
	}
	for _, t := range was.Tolerations { // tolerations may only be added to a live pod
		if hasToleration(p.Tolerations, t) && !hasToleration(spec.Tolerations, t) {
			spec.Tolerations = append(spec.Tolerations, t)
		}
	}
}

// restoreGuard puts back what the guard needs of the pod.
func restoreGuard(spec, was *corev1.PodSpec, g *PromisedGuard) {
	if g.Shares && spec.ShareProcessNamespace == nil {
		spec.ShareProcessNamespace = was.ShareProcessNamespace
	}
	if g.PullSecret != "" {
		spec.ImagePullSecrets = restoreList(spec.ImagePullSecrets, was.ImagePullSecrets, func(r corev1.LocalObjectReference) bool { return r.Name == g.PullSecret },
			func(a, b corev1.LocalObjectReference) bool { return a.Name == b.Name })
	}
}

// restoreAffinity puts our terms back where the update's affinity is the old one without them.
func restoreAffinity(spec, was *corev1.PodSpec, terms []corev1.NodeSelectorTerm) {
	if len(terms) == 0 {
		return
	}
	bare := corev1.PodSpec{Affinity: was.Affinity.DeepCopy()}
	releaseAffinity(&bare, terms)
	if equality.Semantic.DeepEqual(spec.Affinity, bare.Affinity) {
		spec.Affinity = was.Affinity.DeepCopy()
	}
}
