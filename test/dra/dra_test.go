package dra

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/install"
)

func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, func(ctx context.Context, dir string) error {
		if err := install.Build(ctx, dir); err != nil {
			return err
		}
		programs := []cluster.Target{cluster.DRA()}
		if cluster.Wanted("matrix") {
			programs = append(programs, cluster.NVIDIADRA())
		}
		return cluster.AddPrograms(ctx, os.Stderr, dir, programs...)
	}))
}

const policy = `apiVersion: gpuslice.dev/v1
strategies: [time-slicing]
minimumEnforcement: guard
quota: {memory: 30Gi}
guard: {act: always, grace: 1s, termGrace: 2s}
`

// classes are NVIDIA's, and one of a driver that shares out memory.
const classes = `apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]
  extendedResourceName: nvidia.com/gpu
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: memory.example.com}
spec:
  selectors: [{cel: {expression: "device.driver == 'memory.example.com'"}}]
`

const (
	unmanaged    = "gpu-operator" // a namespace in which gpuslice leaves pods unchanged
	sharedMemory = "memory.example.com"
	device       = "gpu-0=GPU-00000000-0000-4000-8000-000000000000=80Gi"
)

func TestDRA(t *testing.T) {
	if !cluster.Wanted("node") {
		t.Skip("starts a real node: set GPUSLICE_TEST=node to run it, as root")
	}
	if cluster.Wanted("matrix") {
		t.Skip("the one node of the box is that of TestNVIDIADriver: set GPUSLICE_TEST=node alone")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	n, err := install.StartDRANode(ctx, box.Dir(), []byte(classes), "--shares=2", "--device="+device)
	if err != nil {
		t.Fatal(err)
	}
	s := stage{n, ctx}
	if err := n.Policy(ctx, "default", []byte(policy)); err != nil {
		t.Fatal(err)
	}
	if err := n.Settle(ctx, api.ResourceGPU); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"team-a", "team-b", "team-c", unmanaged} {
		if err := n.GPU(namespace, fakegpu.Config{Devices: 1}); err != nil {
			t.Fatal(err)
		}
		if err := n.Namespace(ctx, namespace, nil); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("slices_of_unequal_sizes_share_a_device_and_the_third_waits", s.shares)
	t.Run("the_quota_counts_them", s.quota)
	t.Run("the_guard_terminates_a_hog", s.hog)
	t.Run("claims_of_unequal_sizes_fill_a_device_of_shared_memory", s.claims)
	t.Run("slices_by_claim", s.byClaim)
	t.Run("an_instance_or_else_a_share", s.alternatives)
}

// stage is the node of the test.
type stage struct {
	*install.OnNode
	ctx context.Context
}

func (s stage) shares(t *testing.T) {
	for name, memory := range map[string]string{"small": "2Gi", "large": "20Gi"} {
		made := s.create(t, "team-a", slice(name, memory, "device 0", "hold 1GiB"))
		given, err := promise.Decode(made.Annotations[api.AnnotationPromise])
		if err != nil {
			t.Fatal(err)
		}
		if c := given.Containers[0]; c.Resource != api.ResourceGPU || given.Strategy != "time-slicing" || given.Planned.Tier != api.TierGuard {
			t.Errorf("%s: planned %s of %s by %s", name, given.Planned.Tier, c.Resource, given.Strategy)
		}
		s.await(t, "team-a", name, running)
	}
	s.create(t, "team-a", slice("third", "4Gi", "device 0", "hold 1GiB"))
	s.await(t, "team-a", "third", func(p *corev1.Pod) bool { return strings.Contains(p.Status.String(), "cannot allocate all claims") })
}

func (s stage) quota(t *testing.T) {
	_, err := s.Client.CoreV1().Pods("team-a").Create(s.ctx, slice("fourth", "5Gi", "wait 1h"), metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "26Gi") {
		t.Errorf("5Gi beside 26Gi of 30Gi: %v", err)
	}
}

func (s stage) hog(t *testing.T) {
	for _, name := range []string{"small", "third"} {
		s.delete(t, "team-a", name)
	}
	hog := slice("hog", "2Gi", "device 0", "hold 1GiB", "wait 2s", "hold 9GiB", "wait 1h")
	hog.Spec.RestartPolicy = corev1.RestartPolicyNever
	s.create(t, "team-b", hog)
	s.await(t, "team-b", "hog", func(p *corev1.Pod) bool {
		return strings.Contains(p.Annotations[api.AnnotationObserved], "gpuslice terminated")
	})
	s.await(t, "team-a", "large", running)
}

// claims shows what the scheduler does with amounts, for a driver that shares out memory.
func (s stage) claims(t *testing.T) {
	if _, err := s.StartDRA("memory", "--driver-name="+sharedMemory,
		"--device=gpu-1=GPU-00000000-0000-4000-8000-000000000000=80Gi"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, memory string
		fits         bool
	}{{"a", "4Gi", true}, {"b", "57Gi", true}, {"c", "19Gi", true}, {"d", "1Mi", false}} {
		made, err := s.Client.ResourceV1().ResourceClaimTemplates(unmanaged).Create(s.ctx, template(c.name, c.memory), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if made.Spec.Spec.Devices.Requests[0].Exactly.Capacity == nil {
			t.Fatal("the API server drops amounts: DRAConsumableCapacity is off")
		}
		p := tenant(c.name, "wait 1h")
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new(c.name)}}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		s.create(t, unmanaged, p)
		if !c.fits {
			s.await(t, unmanaged, c.name, func(p *corev1.Pod) bool { return strings.Contains(p.Status.String(), "cannot allocate all claims") })
			continue
		}
		s.await(t, unmanaged, c.name, running)
		if got := s.consumed(t, c.name); got != c.memory {
			t.Errorf("claim of %s consumed %s", c.memory, got)
		}
	}
}

// consumed is the memory that the claim of an unmanaged pod has.
func (s stage) consumed(t *testing.T, pod string) string {
	t.Helper()
	if c := s.claimOf(t, unmanaged, pod); c != nil {
		memory := c.Status.Allocation.Devices.Results[0].ConsumedCapacity["memory"]
		return memory.String()
	}
	return ""
}

func template(name, memory string) *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimTemplateSpec{
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: sharedMemory, Capacity: &resourcev1.CapacityRequirements{
				Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)}}}}}}}}}
}

func tenant(name string, script ...string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(1)),
		Containers: []corev1.Container{
			{Name: "trainer", Image: install.TenantImage, Args: script, ImagePullPolicy: corev1.PullNever},
		},
	}}
}

func slice(name, memory string, script ...string) *corev1.Pod {
	p := tenant(name, script...)
	p.Labels = map[string]string{api.LabelMemory: memory}
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}
	return p
}

func running(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }

func (s stage) create(t *testing.T, namespace string, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	made, err := s.Client.CoreV1().Pods(namespace).Create(s.ctx, p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (s stage) await(t *testing.T, namespace, name string, done func(*corev1.Pod) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(s.ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		p, err := s.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && done(p), err
	})
	if err != nil {
		out, _ := s.Kubectl(context.WithoutCancel(s.ctx), "describe", "pod", name, "--namespace="+namespace)
		t.Fatalf("pod %s: %v\n%s", name, err, out)
	}
}
