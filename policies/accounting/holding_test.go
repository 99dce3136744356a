package accounting_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

func testKeys() promise.Keys { return promise.NewKeys([]byte("a key of the tests, 32 bytes long")) }

func gpuPod(promised *promise.Promise, containers ...corev1.Container) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train"}, Spec: corev1.PodSpec{Containers: containers}}
	if promised != nil {
		testKeys().Sign(promised)
		pod.Annotations = map[string]string{api.AnnotationPromise: promised.Encode()}
	}
	return pod
}

func asksFor(name, resourceName, amount string) corev1.Container {
	list := corev1.ResourceList{corev1.ResourceName(resourceName): resource.MustParse(amount)}
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: list, Requests: list}}
}

func quotaPools() []pools.Pool {
	return []pools.Pool{
		{Name: "a100", Resource: api.ResourceGPU, DeviceMemory: 80 * 1024},
		{Name: "h100", Resource: api.ResourceGPU, DeviceMemory: 94 * 1024},
		{Name: "shared", Resource: nvidia.SharedGPU, DeviceMemory: 80 * 1024, Replicas: 4},
		{Name: "slim", Resource: "nvidia.com/mig-1g.10gb", MIGProfile: "1g.10gb", DeviceMemory: 80 * 1024, InstanceMemory: 9728},
		{Name: "dark", Resource: "nvidia.com/gpu.dark"},
	}
}

func promised(namespace string, charge quota.Charge) *promise.Promise {
	return &promise.Promise{Version: promise.Version, Namespace: namespace, Strategy: "mps", Pools: []string{"shared"}, Charge: charge,
		Request:    api.Request{Containers: []api.ContainerRequest{{Name: "main", Resource: api.ResourceGPU, GPUs: 1}}},
		Containers: []promise.Container{{Name: "main", Resource: nvidia.SharedGPU, Count: 1, Slice: 8192, Class: "small"}}}
}

func TestExclusiveHolding(t *testing.T) {
	t.Run("a share under the name of whole devices is a slice as well", func(t *testing.T) {
		mixed := append(quotaPools(),
			pools.Pool{Name: "shares", Resource: api.ResourceGPU, Strategy: "time-slicing", DeviceMemory: 24 * 1024, Replicas: 4})
		want := quota.Charge{Memory: 2 * 94 * 1024, Slices: 2, GPUs: 2, Devices: 2 * quantity.Device}
		if got := accounting.Exclusive(gpuPod(nil, asksFor("main", api.ResourceGPU, "2")), mixed); got.Charge != want {
			t.Errorf("%+v, want %+v", got.Charge, want)
		}
	})
}

// ofParts is p of 8 parts of an L4 in 21.
func ofParts(p *promise.Promise) *promise.Promise {
	c := &p.Containers[0]
	c.Count, c.Granule, c.Replicas = 8, 1063, 21
	return p
}

func TestHoldingOf(t *testing.T) {
	slice := quota.Charge{Memory: 8192, Slices: 1, Devices: quantity.Device} // the promise does not tell of devices
	whole := quota.Holding{Namespace: "team-a", Pools: []string{"shared"},
		Charge: quota.Charge{Memory: 80 * 1024, Slices: 1, GPUs: 1, Devices: quantity.Device},
		Units:  map[string]int64{api.ResourceGPU: 1, nvidia.SharedGPU: 1}}
	ask := asksFor("main", nvidia.SharedGPU, "1")
	for name, c := range map[string]struct {
		pod      *corev1.Pod
		want     quota.Holding
		promised bool
	}{
		"no GPU, no holding": {gpuPod(nil, corev1.Container{Name: "main"}), quota.Holding{Namespace: "team-a"}, false},
		"the Promise's charge, and its class's": {gpuPod(promised("team-a", slice), ask),
			quota.Holding{Namespace: "team-a", Pools: []string{"shared"}, Charge: slice, Classes: map[string]quota.Charge{"small": slice},
				Units: map[string]int64{api.ResourceGPU: 1, nvidia.SharedGPU: 1}}, true},
		"parts of a GPU are one slice, and as many units": {gpuPod(ofParts(promised("team-a", slice)), asksFor("main", nvidia.SharedGPU, "8")),
			quota.Holding{Namespace: "team-a", Pools: []string{"shared"}, Charge: slice, Classes: map[string]quota.Charge{"small": slice},
				Units: map[string]int64{api.ResourceGPU: 1, nvidia.SharedGPU: 8}}, true},
		"more parts of a GPU than were promised": {gpuPod(ofParts(promised("team-a", slice)), asksFor("main", nvidia.SharedGPU, "9")),
			quota.Holding{Namespace: "team-a", Pools: []string{"shared"},
				Charge: quota.Charge{Memory: 9 * 80 * 1024, Slices: 9, GPUs: 9, Devices: 9 * quantity.Device},
				Units:  map[string]int64{api.ResourceGPU: 1, nvidia.SharedGPU: 9}}, false},
		"a Promise of another namespace": {gpuPod(promised("team-b", slice), ask), whole, false},
		"a Promise that charges nothing": {gpuPod(promised("team-a", quota.Charge{}), ask), whole, false},
		"a Promise that gives room back": {gpuPod(promised("team-a", quota.Charge{Slices: -5, GPUs: 9}), ask), whole, false},
		"a Promise for fewer GPUs than it asks": {gpuPod(promised("team-a", slice), asksFor("main", nvidia.SharedGPU, "2")),
			quota.Holding{Namespace: "team-a", Pools: []string{"shared"},
				Charge: quota.Charge{Memory: 160 * 1024, Slices: 2, GPUs: 2, Devices: 2 * quantity.Device},
				Units:  map[string]int64{api.ResourceGPU: 1, nvidia.SharedGPU: 2}}, false},
		"a container that was promised nothing": {gpuPod(promised("team-a", slice), ask, asksFor("more", nvidia.SharedGPU, "1")),
			quota.Holding{Namespace: "team-a", Pools: []string{"shared"},
				Charge: quota.Charge{Memory: 160 * 1024, Slices: 2, GPUs: 2, Devices: 2 * quantity.Device},
				Units:  map[string]int64{api.ResourceGPU: 1, nvidia.SharedGPU: 2}}, false},
		"no Promise: the largest device it may get": {gpuPod(nil, asksFor("main", api.ResourceGPU, "2")),
			quota.Holding{Namespace: "team-a", Pools: []string{"a100", "h100"},
				Charge: quota.Charge{Memory: 188 * 1024, GPUs: 2, Devices: 2 * quantity.Device}, Units: map[string]int64{api.ResourceGPU: 2}}, false},
		"no Promise: a MIG instance is a slice and a device": {gpuPod(nil, asksFor("main", "nvidia.com/mig-1g.10gb", "1")),
			quota.Holding{Namespace: "team-a", Pools: []string{"slim"},
				Charge: quota.Charge{Memory: 9728, Slices: 1, GPUs: 1, Devices: quantity.Device}, Units: map[string]int64{"nvidia.com/mig-1g.10gb": 1}},
			false},
		"no Promise, device memory unknown": {gpuPod(nil, asksFor("main", "nvidia.com/gpu.dark", "1")),
			quota.Holding{Namespace: "team-a", Pools: []string{"dark"}, Charge: quota.Charge{Slices: 1, GPUs: 1, Devices: quantity.Device},
				MemoryUnknown: true, Units: map[string]int64{"nvidia.com/gpu.dark": 1}}, false},
		"a container named like ours counts": {gpuPod(nil, asksFor("gpuslice-x", api.ResourceGPU, "1")),
			quota.Holding{Namespace: "team-a", Pools: []string{"a100", "h100"},
				Charge: quota.Charge{Memory: 94 * 1024, GPUs: 1, Devices: quantity.Device}, Units: map[string]int64{api.ResourceGPU: 1}}, false},
		"a quantity that Value() turns into nothing is huge": {gpuPod(nil, asksFor("main", api.ResourceGPU, "1e400")),
			quota.Holding{Namespace: "team-a", Pools: []string{"a100", "h100"},
				Charge: quota.Charge{Memory: quantity.MaxMemory, GPUs: quantity.MaxCharge, Devices: quantity.MaxCharge},
				Units:  map[string]int64{api.ResourceGPU: quantity.MaxCharge}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, promised := accounting.HoldingOf(testKeys(), c.pod, quotaPools())
			if diff := cmp.Diff(c.want, got); diff != "" || promised != c.promised {
				t.Errorf("promised %t, want %t (-want +got)\n%s", promised, c.promised, diff)
			}
			if p := accounting.PromiseThatAccounts(testKeys(), c.pod, quotaPools()); (p != nil) != c.promised {
				t.Errorf("the promise that accounts for the pod: %+v", p)
			}
		})
	}
}

func TestHoldingOfInitContainers(t *testing.T) {
	// The promise of a pod whose first container ends before the second starts is put onto one where both run: while
	// the mutating webhook is not answered, nobody plans that pod anew.
	t.Run("a promise of one after the other is none of both at once", func(t *testing.T) {
		p := promised("team-a", quota.Charge{Memory: 8192, Slices: 1})
		p.Request.Containers = append(p.Request.Containers, api.ContainerRequest{Name: "prepare", Resource: api.ResourceGPU, GPUs: 1})
		p.Containers = append(p.Containers, promise.Container{Name: "prepare", Resource: nvidia.SharedGPU, Count: 1, Slice: 8192})
		prepare, main := asksFor("prepare", nvidia.SharedGPU, "1"), asksFor("main", nvidia.SharedGPU, "1")
		beside := prepare
		beside.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		for name, c := range map[string]struct {
			init, main []corev1.Container
			slices     int64
		}{
			"one after the other":  {[]corev1.Container{prepare}, []corev1.Container{main}, 1},
			"both at once":         {nil, []corev1.Container{prepare, main}, 2},
			"a sidecar beside one": {[]corev1.Container{beside}, []corev1.Container{main}, 2},
		} {
			pod := gpuPod(p, c.main...)
			pod.Spec.InitContainers = c.init
			want := quota.Charge{Memory: quantity.MiB(8192 * c.slices), Slices: c.slices, Devices: quantity.Device.Times(c.slices)}
			if got, promised := accounting.HoldingOf(testKeys(), pod, quotaPools()); got.Charge != want || !promised {
				t.Errorf("%s: %+v, promised %t, want %+v", name, got.Charge, promised, want)
			}
		}
	})
	t.Run("count by their peak", func(t *testing.T) {
		sidecar := asksFor("sidecar", api.ResourceGPU, "1")
		sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		pod := gpuPod(nil, asksFor("a", api.ResourceGPU, "1"), asksFor("b", api.ResourceGPU, "1"))
		pod.Spec.InitContainers = []corev1.Container{asksFor("before", api.ResourceGPU, "2"), sidecar, asksFor("after", api.ResourceGPU, "3")}
		got := accounting.Exclusive(pod, quotaPools())
		if got.Charge.GPUs != 4 { // after and the sidecar at once; later a, b and the sidecar are three
			t.Errorf("%d GPUs, want 4", got.Charge.GPUs)
		}
	})
}

func TestWholeUnits(t *testing.T) {
	t.Run("hostile quantities are cheap and never too small", func(t *testing.T) {
		for text, want := range map[string]int64{
			"0": 0, "-1": 0, "1": 1, "500m": 1, "1500m": 2, "0.1n": 1, "1e-400": 1, "1Ki": 1024, "1e19": quantity.MaxCharge,
			"1e400": quantity.MaxCharge, "1e10000000": quantity.MaxCharge,
			"1e999999999": quantity.MaxCharge, "9223372036854775807": quantity.MaxCharge, "9223372036854775808": quantity.MaxCharge,
			"36893488147419103232": quantity.MaxCharge, "1Ei": quantity.MaxCharge,
		} {
			begin := time.Now()
			if got := quantity.WholeUnits(resource.MustParse(text)); got != want {
				t.Errorf("%s: %d, want %d", text, got, want)
			}
			if took := time.Since(begin); took > 100*time.Millisecond {
				t.Errorf("%s took %v", text, took)
			}
		}
	})
}
