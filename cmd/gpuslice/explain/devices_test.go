package explain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

// shared is a node's shared devices of 80Gi.
func shared(node string, devices ...string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node}}}
	for _, name := range devices {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: name, AllowMultipleAllocations: new(true),
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}}})
	}
	return s
}

// taking is a claim that has an amount of a device; "": it waits.
func taking(namespace, name, node, device, amount string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if amount != "" {
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Driver: "gpu.nvidia.com", Pool: node, Device: device,
				ConsumedCapacity: map[resourcev1.QualifiedName]resource.Quantity{"gpu.nvidia.com/memory": resource.MustParse(amount)}}}}}
	}
	return c
}

func TestAmountOfAlternatives(t *testing.T) {
	t.Parallel()
	name := "gpuslice-1g.10gb-or-12588mi"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p"},
		Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpuslice", ResourceClaimTemplateName: &name}}}}
	g := gatherer{ctx: t.Context(), client: fake.NewClientset(shared("a", "gpu-0")), facts: &facts{pod: pod}}
	if g.devices(); strings.Join(g.facts.notes, "; ") != "12.3Gi of a device requested; free: 80Gi on a/gpu-0" {
		t.Errorf("notes %q", g.facts.notes)
	}
}

func TestRoomOfDevices(t *testing.T) {
	t.Parallel()
	name := "gpuslice-12588mi"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p"},
		Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpuslice", ResourceClaimTemplateName: &name}}}}
	for want, objects := range map[string][]runtime.Object{
		"12.3Gi of a device requested; free: 9.5Gi on node-1/gpu-1, 4Gi on node-1/gpu-0": {shared("node-1", "gpu-0", "gpu-1"),
			taking("team-b", "a", "node-1", "gpu-0", "60Gi"), taking("team-b", "b", "node-1", "gpu-0", "16Gi"),
			taking("team-c", "a", "node-1", "gpu-1", "72192Mi"), taking("team-a", "p", "", "", "")},
		"12.3Gi of a device requested; free: no node has a device that is shared by memory": nil,
		"12.3Gi of a device requested; free: 80Gi on a/gpu-0, 80Gi on b/gpu-0, 80Gi on c/gpu-0, and 1 more": {shared("a", "gpu-0"),
			shared("b", "gpu-0"), shared("c", "gpu-0"), shared("d", "gpu-0")},
	} {
		g := gatherer{ctx: t.Context(), client: fake.NewClientset(objects...), facts: &facts{pod: pod}}
		if g.devices(); strings.Join(g.facts.notes, "; ") != want {
			t.Errorf("notes %q, want %q", g.facts.notes, want)
		}
	}
}
