package dra

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// classesOfInstances are NVIDIA's, and one with the resource name of a profile.
const classesOfInstances = `apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: mig.nvidia.com}
spec:
  selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"}}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: mig-1g-10gb}
spec:
  selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig' && device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"}}]
  extendedResourceName: nvidia.com/mig-1g.10gb
`

const instance = "gpu-1-mig-19-0-1=MIG-00000000-0000-5000-8000-000000010000=9984Mi=1g.10gb"

// alternatives has a device that is shared and one MIG instance: the first slice gets the instance, and the second a share.
func (s stage) alternatives(t *testing.T) {
	for namespace, pods := range map[string][]string{"team-a": {"large"}, "team-b": {"after"}} {
		for _, name := range pods {
			s.delete(t, namespace, name)
		}
	}
	if err := s.Apply.Apply(s.ctx, []byte(classesOfInstances)); err != nil {
		t.Fatal(err)
	}
	if err := s.RestartDRA("--device="+device, "--device="+instance); err != nil {
		t.Fatal(err)
	}
	if err := s.Policy(s.ctx, "default", []byte(strings.Replace(policy, "[time-slicing]", "[mig, claim]", 1))); err != nil {
		t.Fatal(err)
	}
	if err := s.GPU("team-d", fakegpu.Config{Devices: 2, On: map[int]fakegpu.Fault{1: {MIG: []string{"1g.10gb"}}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Namespace(s.ctx, "team-d", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.either(t, "first", "gpu-1-mig-19-0-1", func(p *corev1.Pod) bool {
		return running(p) && strings.Contains(p.Annotations[api.AnnotationObserved], `"tier":"hardware"`) &&
			strings.Contains(p.Annotations[api.AnnotationObserved], `"better":`)
	})
	s.either(t, "second", "gpu-0", func(p *corev1.Pod) bool {
		return running(p) && strings.Contains(p.Annotations[api.AnnotationObserved], `"tier":"guard"`)
	})
}

// either creates a slice of an instance or a share, and waits until it is as it should be on the device.
func (s stage) either(t *testing.T, name, device string, done func(*corev1.Pod) bool) {
	t.Helper()
	const template = "gpuslice-1g.10gb-or-8492mi"
	s.awaitPlan(t, "team-d", byLabel(name, "8Gi", "device 0", "hold 1GiB"), template)
	made := s.create(t, "team-d", byLabel(name, "8Gi", "device 0", "hold 1GiB"))
	given, err := promise.Decode(made.Annotations[api.AnnotationPromise])
	if err != nil {
		t.Fatal(err)
	}
	if given.Planned.Tier != api.TierGuard {
		t.Errorf("planned %s", given.Planned.Tier)
	}
	s.await(t, "team-d", name, done)
	if got := s.allocated(t, "team-d", name); got != device {
		t.Errorf("%s is on device %q", name, got)
	}
}

// awaitPlan waits until the webhook has seen what the driver publishes: a trial of the pod names the template.
func (s stage) awaitPlan(t *testing.T, namespace string, pod *corev1.Pod, template string) {
	t.Helper()
	said := ""
	err := wait.PollUntilContextTimeout(s.ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		made, err := s.Client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			said = err.Error()
			return false, nil
		}
		said = made.Annotations[api.AnnotationPromise]
		given, err := promise.Decode(said)
		return err == nil && given.Containers[0].Template == template, err
	})
	if err != nil {
		t.Fatalf("no slice by template %s: %v: %s", template, err, said)
	}
}
