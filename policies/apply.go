package policies

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Apply returns pod as the Promise says it should be: a copy, the pod itself is not changed. What an older Promise on
// the pod wrote and this one does not is taken back. Applying twice is applying once.
func Apply(pod *corev1.Pod, promise *Promise) *corev1.Pod {
	out := pod.DeepCopy()
	text := promise.Encode()
	brought, ok := out.Annotations[AnnotationPromise]
	held := ok && brought == text
	if ok && !held {
		if old, err := DecodePromise(brought); err == nil {
			takeBack(out, old, promise)
			restoreRequest(out, old, nil)
			held = sameTerms(old.Affinity, promise.Affinity)
		}
	}
	dropOwned(out, promise)
	for i := range promise.Containers {
		applyContainer(&out.Spec, promise, &promise.Containers[i])
	}
	for _, v := range promise.Volumes {
		out.Spec.Volumes = setVolume(out.Spec.Volumes, v)
	}
	applyVoid(&out.Spec, promise)
	applyGuard(out, promise)
	holdAffinity(&out.Spec, promise.Affinity, held)
	applyPod(&out.Spec, promise)
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[AnnotationPromise] = text
	out.Annotations[AnnotationPlanned] = mustJSON(promise.Planned)
	delete(out.Annotations, AnnotationObserved) // nobody can have observed this pod yet, only the one it was copied from
	return out
}

func applyContainer(spec *corev1.PodSpec, promise *Promise, p *PromisedContainer) {
	c, _ := containerNamed(spec, p.Name)
	if c == nil {
		return
	}
	setGPU(c, promise.Request.resourceOf(p.Name), p.Resource, p.Count)
	for _, v := range p.Env {
		c.Env = setVariable(c.Env, v)
	}
	for _, m := range p.Mounts {
		c.VolumeMounts = setMount(c.VolumeMounts, m)
	}
	c.Args = append(withoutArgs(c.Args, p.Args), p.Args...)
}

// setGPU makes the container ask for count of resource and of no other GPU, in limits and requests alike: extended
// resources allow no difference. An empty resource asks for none. other is one more name to remove.
func setGPU(c *corev1.Container, other, resourceName string, count int64) {
	want := *resource.NewQuantity(count, resource.DecimalSI)
	for _, list := range []*corev1.ResourceList{&c.Resources.Limits, &c.Resources.Requests} {
		for name := range *list {
			if string(name) != resourceName && (string(name) == other || isGPUResource(string(name), nil)) {
				delete(*list, name)
			}
		}
		if resourceName == "" {
			continue
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		if q, ok := (*list)[corev1.ResourceName(resourceName)]; !ok || q.Cmp(want) != 0 {
			(*list)[corev1.ResourceName(resourceName)] = want
		}
	}
}

// setVariable makes v the one entry of its name: in place where there is one, else at the end.
func setVariable(env []corev1.EnvVar, v Variable) []corev1.EnvVar {
	named := func(e corev1.EnvVar) bool { return e.Name == v.Name }
	i := slices.IndexFunc(env, named)
	if i < 0 {
		return append(env, corev1.EnvVar{Name: v.Name, Value: v.Value})
	}
	env[i] = corev1.EnvVar{Name: v.Name, Value: v.Value}
	return append(env[:i+1], slices.DeleteFunc(env[i+1:], named)...)
}

// setMount makes m the one mount at its path.
func setMount(mounts []corev1.VolumeMount, m corev1.VolumeMount) []corev1.VolumeMount {
	for i := range mounts {
		if mounts[i].MountPath == m.MountPath {
			mounts[i] = *m.DeepCopy()
			return mounts
		}
	}
	return append(mounts, *m.DeepCopy())
}

// withoutArgs returns args without own at their end.
func withoutArgs(args, own []string) []string {
	theirs := len(args) - len(own)
	if len(own) == 0 || theirs < 0 || !slices.Equal(args[theirs:], own) {
		return args
	}
	if theirs == 0 {
		return nil
	}
	return args[:theirs:theirs]
}

func setVolume(volumes []corev1.Volume, v corev1.Volume) []corev1.Volume {
	for i := range volumes {
		if volumes[i].Name == v.Name {
			volumes[i] = *v.DeepCopy()
			return volumes
		}
	}
	return append(volumes, *v.DeepCopy())
}

func applyPod(spec *corev1.PodSpec, p *Promise) {
	if name := p.Pod.PriorityClassName; name != "" && spec.PriorityClassName != name {
		// The server computes both from the class in its second pass, and refuses values computed from another.
		spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = name, nil, nil
	}
	if p.Pod.SchedulerName != "" {
		spec.SchedulerName = p.Pod.SchedulerName
	}
	if p.Pod.RuntimeClassName != "" {
		spec.RuntimeClassName = new(p.Pod.RuntimeClassName)
	}
	spec.HostIPC = spec.HostIPC || p.Pod.HostIPC
	for _, t := range p.Tolerations {
		if !hasToleration(spec.Tolerations, t) {
			spec.Tolerations = append(spec.Tolerations, t)
		}
	}
}
