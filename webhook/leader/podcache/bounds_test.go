package podcache

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/boundedtest"
)

func largePod(i int) *corev1.Pod {
	pod := running()
	pod.UID, pod.Spec.NodeName = "", ""
	pod.Name, pod.Annotations = fmt.Sprint("p", i), map[string]string{api.AnnotationPromise: fmt.Sprint("p", i)}
	pod.OwnerReferences[1].Name = fmt.Sprint("job-", i)
	return pod
}

// TestBounds: of the largest pods that the API server takes a bounded part is kept, and counted.
func TestBounds(t *testing.T) {
	keep := Options{Label: "team"}.Keep
	counted := func(object runtime.Object) (runtime.Object, int) {
		kept, size := keep(object)
		_, common := kept.(*Pod).Common()
		return kept, size + common
	}
	for name, c := range map[string]struct {
		most   int
		change func(*corev1.Pod)
	}{
		"nothing": {8 << 10, func(*corev1.Pod) {}},
		"no devices": {2 << 10, func(p *corev1.Pod) {
			p.Annotations, p.Spec.Containers[0].Resources.Limits = map[string]string{"a": strings.Repeat("x", 250<<10)}, nil
		}},
		"images": {8 << 10, func(p *corev1.Pod) {
			p.Spec.InitContainers[0].Image = strings.Repeat("i", 700<<10)
			p.Spec.Containers[0].Image = strings.Repeat("i", 700<<10)
		}},
		"annotations": {260 << 10, func(p *corev1.Pod) {
			for _, name := range []string{api.AnnotationPlanned, api.AnnotationSummary, api.AnnotationObserved} {
				p.Annotations[name] = p.Name + strings.Repeat("a", 60<<10)
			}
		}},
		"a promise that is none": {8 << 10, func(p *corev1.Pod) { p.Annotations[api.AnnotationPromise] = p.Name + strings.Repeat("a", 250<<10) }},
		"containers": {8 << 10, func(p *corev1.Pod) {
			for k := range 10_000 {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", k), Image: "i"})
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: fmt.Sprint("c", k)})
			}
		}},
		"resources": {300 << 10, func(p *corev1.Pod) {
			for range 40 {
				c := *p.Spec.Containers[0].DeepCopy()
				for _, name := range boundedtest.Texts(120, 240) {
					c.Resources.Limits[corev1.ResourceName("a.example.com/"+name)] = resource.MustParse("1")
				}
				p.Spec.Containers = append(p.Spec.Containers, c)
			}
		}},
		"messages": {70 << 10, func(p *corev1.Pod) {
			p.Status.Message = strings.Repeat("m", 300<<10)
			p.Status.InitContainerStatuses[0].LastTerminationState.Terminated.Message = strings.Repeat("m", 300<<10)
			p.Status.ContainerStatuses[0].State.Waiting.Message = strings.Repeat("m", 300<<10)
		}},
		"owners": {8 << 10, func(p *corev1.Pod) { p.OwnerReferences[1].Name = p.Name + strings.Repeat("o", 1<<20) }},
	} {
		got := boundedtest.KeptOf(t, counted, func(i int) runtime.Object {
			pod := largePod(i)
			c.change(pod)
			return pod
		})
		if got > c.most {
			t.Errorf("%s: %d bytes are kept, want at most %d", name, got, c.most)
		}
	}
}

// TestNVIDIAsDevicesStay: of too many resources those of NVIDIA are kept.
func TestNVIDIAsDevicesStay(t *testing.T) {
	t.Parallel()
	c := corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}
	for _, name := range boundedtest.Texts(200, 20) {
		c.Resources.Limits[corev1.ResourceName("a.example.com/"+name)] = resource.MustParse("1")
	}
	got := devicesOf(&c)
	if _, ok := got["nvidia.com/gpu"]; !ok || len(got) != maxDevices {
		t.Errorf("%d resources, nvidia.com/gpu among them: %t", len(got), ok)
	}
}
