package podedit

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// resourceEdit is the GPU resource that a container requests: the pool's, in place of the one that its author named.
type resourceEdit struct {
	pools []pools.Pool // their resources are GPUs too
}

// Apply makes the containers request the pool's resource.
func (resourceEdit) Apply(pod *corev1.Pod, _, next *promise.Promise) {
	for i := range next.Containers {
		p := &next.Containers[i]
		if c, _ := podspec.ContainerNamed(&pod.Spec, p.Name); c != nil {
			requested := next.Request.Of(p.Name)
			setGPU(c, requested.Resource, p.Resource, p.Count)
			for name := range requested.Foreign {
				delete(c.Resources.Limits, corev1.ResourceName(name))
				delete(c.Resources.Requests, corev1.ResourceName(name))
			}
		}
	}
}

// Revert restores the containers' requests from before old renamed them.
func (e resourceEdit) Revert(pod *corev1.Pod, old, next *promise.Promise) {
	for i := range old.Containers {
		was := &old.Containers[i]
		c, _ := podspec.ContainerNamed(&pod.Spec, was.Name)
		if c == nil || !StillRequested(was, c, e.pools) {
			continue
		}
		requested, again := old.Request.Of(was.Name), next.Request.Of(was.Name)
		if name := requested.Resource; name != "" && name != was.Resource && !pools.IsGPU(name, e.pools) {
			continue // forged: no Promise renames a resource that is not a GPU
		}
		if now := next.Container(was.Name); now == nil || now.Resource != was.Resource { // else Apply would rename it to the same again
			setGPU(c, was.Resource, requested.Resource, was.GPUs())
		}
		for name, text := range requested.Foreign {
			if _, removed := again.Foreign[name]; !removed {
				setForeign(c, name, text)
			}
		}
	}
}

// setForeign makes the container request a resource of another system again, in limits and requests alike.
func setForeign(c *corev1.Container, name, text string) {
	q, err := resource.ParseQuantity(text) // checked bounds it
	if err != nil {
		return
	}
	for _, list := range []*corev1.ResourceList{&c.Resources.Limits, &c.Resources.Requests} {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[corev1.ResourceName(name)] = q
	}
}

// Restore puts the old GPU entries back: they are immutable on a live pod, and a manifest that is applied again names
// them as its author wrote them.
func (resourceEdit) Restore(old, updated *corev1.Pod, given *promise.Promise) {
	for was, c := range podspec.ContainerPairs(old, updated) {
		p, requested := given.Container(c.Name), given.Request.Of(c.Name)
		gpu := func(name corev1.ResourceName) bool {
			_, spelled := requested.Foreign[string(name)]
			return spelled || pools.IsGPU(string(name), nil) ||
				p != nil && (string(name) == p.Resource || string(name) == requested.Resource)
		}
		restoreGPU(&c.Resources.Limits, was.Resources.Limits, gpu)
		restoreGPU(&c.Resources.Requests, was.Resources.Requests, gpu)
	}
}

// setGPU makes the container request count of resource and of no other GPU, in limits and requests alike: extended
// resources allow no difference. An empty resource requests none. other is one more name to remove.
func setGPU(c *corev1.Container, other, resourceName string, count int64) {
	want := *resource.NewQuantity(count, resource.DecimalSI)
	for _, list := range []*corev1.ResourceList{&c.Resources.Limits, &c.Resources.Requests} {
		for name := range *list {
			if string(name) != resourceName && (string(name) == other || pools.IsGPU(string(name), nil)) {
				delete(*list, name)
			}
		}
		if resourceName == "" { // a claim gives the device
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

// StillRequested reports whether the container requests its promised resource and no other GPU: nobody changed it
// since.
func StillRequested(c *promise.Container, have *corev1.Container, offered []pools.Pool) bool {
	if c.Claim != "" {
		return podspec.NamesClaim(have, c.Claim) && !request.RequestsGPU(have, offered)
	}
	for name := range have.Resources.Limits {
		if string(name) != c.Resource && pools.IsGPU(string(name), offered) {
			return false
		}
	}
	q, ok := have.Resources.Limits[corev1.ResourceName(c.Resource)]
	return ok && q.CmpInt64(c.Count) == 0
}
