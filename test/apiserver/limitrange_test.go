package apiserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// TestLimitRangeOfGPUs has a LimitRange that gives a GPU to each container without one. The plugin runs before the webhooks,
// and again after each that changed the pod.
func TestLimitRangeOfGPUs(t *testing.T) {
	i := need(t)
	const namespace = "default-gpu"
	setUpReapply(t, i, namespace)
	gpu := corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}
	_, err := i.Server.Client.CoreV1().LimitRanges(namespace).Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "gpus"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Default: gpu, DefaultRequest: gpu}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, body, want string }{
		{"label", manifests["label"], "gpuslice-check 1 nvidia.com/gpu.shared, a 1 nvidia.com/gpu.shared"},
		{"silent", "metadata:\n  labels: {gpuslice.dev/memory: 4Gi}\nspec:\n  containers:\n  - {name: a, image: 'pytorch/pytorch:2.4.0'}\n",
			"gpuslice-check 1 nvidia.com/gpu.shared, a 1 nvidia.com/gpu.shared"},
		{"web", "spec:\n  containers:\n  - {name: web, image: 'nginx:1.27'}\n", "web 1 nvidia.com/gpu"},
		{"sidecar", "metadata:\n  labels: {gpuslice.dev/memory: 4Gi}\nspec:\n  containers:\n  - {name: a, image: 'pytorch/pytorch:2.4.0', resources: {limits: {nvidia.com/gpu: 1}}}\n  - {name: b, image: 'busybox:1'}\n",
			"gpuslice-check 1 nvidia.com/gpu.shared, a 1 nvidia.com/gpu.shared, b 1 nvidia.com/gpu.shared"},
		{"share", "metadata:\n  labels: {gpuslice.dev/memory: 4Gi}\nspec:\n  containers:\n  - {name: a, image: 'pytorch/pytorch:2.4.0', resources: {limits: {nvidia.com/gpu.shared: 1}}}\n",
			"gpuslice-check 1 nvidia.com/gpu.shared, a 1 nvidia.com/gpu.shared"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := i.Apply.Create(t.Context(), podOf(t, c.name, namespace, c.body), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			pod, err := i.Server.Client.CoreV1().Pods(namespace).Get(t.Context(), c.name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...) {
				for name, q := range c.Resources.Limits {
					if strings.HasPrefix(string(name), "nvidia.com/") {
						got = append(got, fmt.Sprintf("%s %s %s", c.Name, q.String(), name))
					}
				}
			}
			if strings.Join(got, ", ") != c.want || (pod.Annotations[api.AnnotationPlanned] != "") != strings.HasPrefix(c.want, "gpuslice-check ") {
				t.Errorf("%q, planned %q", got, pod.Annotations[api.AnnotationPlanned])
			}
		})
	}
}
