package podedit

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/shim"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// guardEdit is the guard: its containers, and their needs beside volumes and the runtime class.
type guardEdit struct{}

// Apply writes the check before the first container that can reach a GPU, and the sidecar after the check. If they are
// there already they are rewritten in their place.
func (guardEdit) Apply(pod *corev1.Pod, _, next *promise.Promise) {
	spec, g := &pod.Spec, next.Guard
	dropContainers(spec, next)
	if g == nil {
		return
	}
	if spec.ShareProcessNamespace == nil && g.Shares { // an explicit false stays: the guard was not planned for it, and Undone finds it
		spec.ShareProcessNamespace = new(true)
	}
	ours := []corev1.Container{check(g)}
	if !g.Agent {
		ours = append(ours, sidecar(g))
	}
	for i := range next.Containers {
		if c, _ := podspec.ContainerNamed(spec, next.Containers[i].Name); c != nil && next.Containers[i].Shim == shim.ByFile {
			ours = append(ours, shim.Recorder(guardContainer(g, "", "", nil), c, i))
		}
	}
	dropMisplaced(spec, next, ours)
	at := firstGPUContainer(spec.InitContainers, next)
	for _, c := range ours {
		i := slices.IndexFunc(spec.InitContainers, func(have corev1.Container) bool { return have.Name == c.Name })
		if i < 0 {
			c.VolumeMounts = append(c.VolumeMounts, tokenMount(spec)...)
			spec.InitContainers = slices.Insert(spec.InitContainers, at, c)
			at++
			continue
		}
		spec.InitContainers[i] = refreshed(spec.InitContainers[i], c, spec.Volumes)
		at = i + 1
	}
	if g.PullSecret != "" && !slices.Contains(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: g.PullSecret}) {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: g.PullSecret})
	}
	if len(g.Annotations) > 0 {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		maps.Copy(pod.Annotations, g.Annotations)
	}
}

// Revert removes every container under our names that next does not write, old's too.
func (guardEdit) Revert(pod *corev1.Pod, old, next *promise.Promise) {
	spec := &pod.Spec
	dropContainers(spec, next)
	if old.Guard == nil {
		return
	}
	var keep promise.Guard
	if next.Guard != nil {
		keep = *next.Guard
	}
	s := spec.ShareProcessNamespace
	if needed := next.Guard != nil && !next.Guard.Agent; old.Guard.Shares && !needed && s != nil && *s { // nothing of ours writes false
		spec.ShareProcessNamespace = nil
	}
	if old.Guard.PullSecret != keep.PullSecret {
		spec.ImagePullSecrets = slices.DeleteFunc(spec.ImagePullSecrets, func(r corev1.LocalObjectReference) bool {
			return r.Name == old.Guard.PullSecret
		})
	}
	for k := range old.Guard.Annotations {
		if _, ok := keep.Annotations[k]; !ok {
			delete(pod.Annotations, k)
		}
	}
}

func (guardEdit) Restore(old, updated *corev1.Pod, given *promise.Promise) {
	spec, was := &updated.Spec, &old.Spec
	ours := func(c corev1.Container) bool { return podspec.IsOurs(c.Name) }
	sameName := func(a, b corev1.Container) bool { return a.Name == b.Name }
	spec.InitContainers = podspec.RestoreList(spec.InitContainers, was.InitContainers, ours, sameName)
	spec.Containers = podspec.RestoreList(spec.Containers, was.Containers, ours, sameName)
	g := given.Guard
	if g == nil {
		return
	}
	for name := range g.Annotations {
		restoreEntry(old.Annotations, &updated.Annotations, name)
	}
	if g.Shares && spec.ShareProcessNamespace == nil {
		spec.ShareProcessNamespace = was.ShareProcessNamespace
	}
	if g.PullSecret != "" {
		spec.ImagePullSecrets = podspec.RestoreList(spec.ImagePullSecrets, was.ImagePullSecrets,
			func(r corev1.LocalObjectReference) bool { return r.Name == g.PullSecret },
			func(a, b corev1.LocalObjectReference) bool { return a.Name == b.Name })
	}
}

// dropContainers removes the containers under our names that next does not write. None of the pod's main ones is ours.
func dropContainers(spec *corev1.PodSpec, next *promise.Promise) {
	spec.InitContainers = slices.DeleteFunc(spec.InitContainers, func(c corev1.Container) bool {
		return podspec.IsOurs(c.Name) && !IsGuard(next, c.Name)
	})
	spec.Containers = slices.DeleteFunc(spec.Containers, func(c corev1.Container) bool { return podspec.IsOurs(c.Name) })
}

// dropMisplaced removes the guard's containers if the pod does not bring all of them in their order: the check must run
// before any container that can reach a GPU, and brings the program of the recorders.
func dropMisplaced(spec *corev1.PodSpec, given *promise.Promise, ours []corev1.Container) {
	placed := 0
	for i := range firstGPUContainer(spec.InitContainers, given) {
		if placed < len(ours) && spec.InitContainers[i].Name == ours[placed].Name {
			placed++
		}
	}
	if placed == len(ours) { // in place, mounts that others added to them stay
		return
	}
	spec.InitContainers = slices.DeleteFunc(spec.InitContainers, func(c corev1.Container) bool { return IsGuard(given, c.Name) })
}

// tokenMount is the mount of the pod's token that the server gave to the pod's containers before it called us. It would
// give it to ours too, in a second pass over the pod, and then call us again: every create would cost two reviews.
func tokenMount(spec *corev1.PodSpec) []corev1.VolumeMount {
	for c := range podspec.Containers(spec) {
		for _, m := range c.VolumeMounts {
			if isTokenMount(m) {
				return []corev1.VolumeMount{*m.DeepCopy()}
			}
		}
	}
	return nil
}

const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// firstGPUContainer is the index in the init containers before which the check belongs: their end, where no init
// container has a GPU.
func firstGPUContainer(list []corev1.Container, given *promise.Promise) int {
	i := slices.IndexFunc(list, func(c corev1.Container) bool { return given.Container(c.Name) != nil })
	if i < 0 {
		return len(list)
	}
	return i
}

func isTokenMount(m corev1.VolumeMount) bool {
	return m.MountPath == tokenPath && strings.HasPrefix(m.Name, "kube-api-access-")
}

// IsGuard reports whether the Promise gives the pod a guard of which the init container of that name is a part: check, sidecar, or a
// recorder.
func IsGuard(p *promise.Promise, name string) bool {
	return p != nil && p.Guard != nil && (name == limits.CheckContainer || name == limits.GuardContainer && !p.Guard.Agent ||
		strings.HasPrefix(name, limits.RecordContainer) && records(p, shim.RecorderNumber(name)))
}

func records(p *promise.Promise, n int) bool {
	return n >= 0 && n < len(p.Containers) && p.Containers[n].Shim == shim.ByFile
}
