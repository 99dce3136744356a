package promise

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// TestWithoutSlice: a pod without a slice takes whole devices, and of a divided one the part that its units are. Together the pods of a
// node take no more than it has.
func TestWithoutSlice(t *testing.T) {
	t.Parallel()
	names := func(limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Limits: limits}}
	}
	units := func(name string, n int64) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceName(name): *resource.NewQuantity(n, resource.DecimalSI)}
	}
	whole := pools.Pool{Name: "a100", Resource: api.ResourceGPU, Strategy: "exclusive", DeviceMemory: 40960, Replicas: 1}
	shared := pools.Pool{Name: "l4", Resource: "nvidia.com/gpu.shared", Strategy: "time-slicing", DeviceMemory: 24000, Replicas: 4}
	mig := pools.Pool{Name: "mig", Resource: "nvidia.com/mig-1g.5gb", Strategy: "mig", DeviceMemory: 40960, InstanceMemory: 4864, MIGProfile: "1g.5gb", Replicas: 1}
	renamed := pools.Pool{Name: "renamed", Resource: "example.com/gpu", Strategy: "exclusive", DeviceMemory: 1000, Replicas: 1}
	all := []pools.Pool{whole, shared, mig, renamed}
	for name, c := range map[string]struct {
		containers []corev1.Container
		inits      []corev1.Container
		pools      []pools.Pool
		want       string
	}{
		"none":               {containers: []corev1.Container{names(units("cpu", 2)), names(units("rdma/hca", 2))}, pools: all, want: "0 0Mi  "},
		"whole devices":      {containers: []corev1.Container{names(units(api.ResourceGPU, 2)), names(units(api.ResourceGPU, 1))}, pools: all, want: "3 122880Mi a100 nvidia.com/gpu"},
		"replicas":           {containers: []corev1.Container{names(units("nvidia.com/gpu.shared", 1))}, pools: all, want: "0.25 6000Mi l4 nvidia.com/gpu.shared"},
		"an instance":        {containers: []corev1.Container{names(units("nvidia.com/mig-1g.5gb", 1))}, pools: all, want: "0.143 4864Mi mig nvidia.com/mig-1g.5gb"},
		"another's name":     {containers: []corev1.Container{names(units("example.com/gpu", 1))}, pools: all, want: "1 1000Mi renamed example.com/gpu"},
		"no pool":            {containers: []corev1.Container{names(units(api.ResourceGPU, 1))}, want: "1 0Mi  nvidia.com/gpu"},
		"before the others":  {inits: []corev1.Container{names(units(api.ResourceGPU, 2))}, containers: []corev1.Container{names(units(api.ResourceGPU, 1))}, pools: all, want: "2 81920Mi a100 nvidia.com/gpu"},
		"more than there is": {containers: []corev1.Container{names(units(api.ResourceGPU, 1<<60))}, pools: all, want: fmt.Sprintf("%s %dMi a100 nvidia.com/gpu", quantity.Devices(quantity.MaxCharge), quantity.MaxMemory)},
	} {
		charge, pool, resource := WithoutSlice(&corev1.Pod{Spec: corev1.PodSpec{InitContainers: c.inits, Containers: c.containers}}, c.pools)
		if got := fmt.Sprintf("%s %dMi %s %s", charge.Devices, charge.Memory, pool, resource); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
