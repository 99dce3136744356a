package policies

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
)

func isOurVolume(name string) bool { return strings.HasPrefix(name, volumePrefix) }

// ownAnnotations are the annotations that gpuslice alone writes.
func ownAnnotations() []string {
	return []string{AnnotationPromise, AnnotationPlanned, AnnotationObserved}
}

// stripOwned returns the pod as its author wrote it: without what a Promise that it brings along put there, and without
// containers and volumes under our names (copies of live pods, restored backups, a second pass over the same pod).
// Variables under our names stay, so that their author can be told. It returns the pod itself where there is nothing
// to strip.
func stripOwned(pod *corev1.Pod, pools []Pool) (bare *corev1.Pod, recorded *Promise, warnings []string) {
	text, ok := pod.Annotations[AnnotationPromise]
	if ok {
		p, err := DecodePromise(text)
		if err != nil {
			warnings = append(warnings, "the annotation "+AnnotationPromise+" that the pod brings is not used: "+shorten(err.Error()))
		}
		recorded = p
	}
	foreign := foreignOwned(pod, recorded)
	if !ok && len(foreign) == 0 {
		return pod, nil, warnings
	}
	if len(foreign) > 0 {
		warnings = append(warnings, "these names belong to gpuslice and are written anew: "+shortList(foreign))
	}
	bare = pod.DeepCopy()
	if recorded != nil {
		takeBack(bare, recorded, nil)
		restoreRequest(bare, recorded, pools)
	}
	dropOwned(bare, nil)
	for _, name := range ownAnnotations() {
		delete(bare.Annotations, name)
	}
	return bare, recorded, warnings
}

// foreignOwned lists containers and volumes under our names that no Promise on the pod accounts for.
func foreignOwned(pod *corev1.Pod, recorded *Promise) []string {
	var out []string
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if isOurContainer(list[i].Name) && recorded == nil {
				out = append(out, "container "+list[i].Name)
			}
		}
	}
	for i := range pod.Spec.Volumes {
		if name := pod.Spec.Volumes[i].Name; isOurVolume(name) && (recorded == nil || !recorded.hasVolume(name)) {
			out = append(out, "volume "+name)
		}
	}
	return out
}

func (p *Promise) hasGuard(name string) bool {
	return p != nil && p.Guard != nil && (name == limits.CheckContainer || name == limits.GuardContainer)
}

func (p *Promise) hasVolume(name string) bool {
	return p != nil && slices.ContainsFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == name })
}

// takeBack removes what old wrote into the pod and next does not write again. Values that somebody changed since are
// somebody else's, and stay.
func takeBack(pod *corev1.Pod, old, next *Promise) {
	for _, was := range old.Containers {
		c, _ := containerNamed(&pod.Spec, was.Name)
		if c == nil {
			continue
		}
		now := next.container(was.Name)
		if now == nil || !slices.Equal(now.Args, was.Args) {
			c.Args = withoutArgs(c.Args, was.Args)
		}
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool {
			return e.ValueFrom == nil && slices.Contains(was.Env, Variable{e.Name, e.Value}) && !now.sets(e.Name)
		})
	}
	if next == nil || !sameTerms(old.Affinity, next.Affinity) {
		releaseAffinity(&pod.Spec, old.Affinity)
	}
	pod.Spec.Tolerations = slices.DeleteFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return hasToleration(old.Tolerations, t) && (next == nil || !hasToleration(next.Tolerations, t))
	})
	takeBackPod(&pod.Spec, old.Pod, next)
	takeBackGuard(pod, old, next)
	takeBackVoid(&pod.Spec, old, next)
}

func takeBackPod(spec *corev1.PodSpec, was PromisedPod, next *Promise) {
	var now PromisedPod
	if next != nil {
		now = next.Pod
	}
	if was.PriorityClassName != "" && was.PriorityClassName == spec.PriorityClassName && now.PriorityClassName != was.PriorityClassName {
		spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = "", nil, nil
	}
	if was.SchedulerName != "" && was.SchedulerName == spec.SchedulerName && now.SchedulerName != was.SchedulerName {
		spec.SchedulerName = corev1.DefaultSchedulerName
	}
	if was.HostIPC && !now.HostIPC {
		spec.HostIPC = false
	}
	if spec.RuntimeClassName != nil && was.RuntimeClassName == *spec.RuntimeClassName && now.RuntimeClassName != was.RuntimeClassName {
		spec.RuntimeClassName = nil
	}
}

// dropOwned removes volumes, mounts, containers and variables under our names that keep does not hold.
func dropOwned(pod *corev1.Pod, keep *Promise) {
	spec := &pod.Spec
	spec.InitContainers = slices.DeleteFunc(spec.InitContainers, func(c corev1.Container) bool { return isOurContainer(c.Name) && !keep.hasGuard(c.Name) })
	spec.Containers = slices.DeleteFunc(spec.Containers, func(c corev1.Container) bool { return isOurContainer(c.Name) })
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return isOurVolume(v.Name) && !keep.hasVolume(v.Name) })
	for c := range podContainers(spec) {
		promised := keep.container(c.Name)
		c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return isOurVolume(m.Name) && !promised.mounts(m)
		})
		if keep != nil {
			c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return isOwnVariable(e.Name) && !promised.sets(e.Name) })
		}
	}
}

// restoreRequest puts back the resources that the containers asked for before the Promise renamed them.
func restoreRequest(pod *corev1.Pod, old *Promise, pools []Pool) {
	for i := range old.Containers {
		was := &old.Containers[i]
		c, _ := containerNamed(&pod.Spec, was.Name)
		asked := old.Request.resourceOf(was.Name)
		if c == nil || !was.stillAsked(c, pools) || asked != "" && asked != was.Resource && !isGPUResource(asked, pools) {
			continue
		}
		setGPU(c, was.Resource, asked, was.Count)
	}
}

// stillAsked says that the container asks for what it was promised and for no other GPU: nobody changed it since.
func (c *PromisedContainer) stillAsked(have *corev1.Container, pools []Pool) bool {
	for name := range have.Resources.Limits {
		if string(name) != c.Resource && isGPUResource(string(name), pools) {
			return false
		}
	}
	q, ok := have.Resources.Limits[corev1.ResourceName(c.Resource)]
	return ok && q.CmpInt64(c.Count) == 0
}

// container returns what the Promise gives a container; a nil Promise gives nothing.
func (p *Promise) container(name string) *PromisedContainer {
	if p == nil {
		return nil
	}
	for i := range p.Containers {
		if p.Containers[i].Name == name {
			return &p.Containers[i]
		}
	}
	return nil
}

func (c *PromisedContainer) sets(name string) bool {
	return c != nil && slices.ContainsFunc(c.Env, func(v Variable) bool { return v.Name == name })
}

func (c *PromisedContainer) mounts(m corev1.VolumeMount) bool {
	return c != nil && slices.ContainsFunc(c.Mounts, func(have corev1.VolumeMount) bool { return have.Name == m.Name && have.MountPath == m.MountPath })
}

func hasToleration(list []corev1.Toleration, t corev1.Toleration) bool {
	return slices.ContainsFunc(list, func(have corev1.Toleration) bool {
		return have.MatchToleration(&t) && equalSeconds(have.TolerationSeconds, t.TolerationSeconds)
	})
}

func equalSeconds(a, b *int64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode: " + err.Error()) // plain data only
	}
	return string(b)
}
