package apiserver

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/test/cluster"
)

// claimsOfGroups are the gates with which pods keep spec.schedulingGroup, and PodGroups have claims.
const claimsOfGroups = "GenericWorkload=true,DRAWorkloadResourceClaims=true"

// groupVersion is the version of scheduling.k8s.io that has PodGroups.
func groupVersion() string {
	if cluster.Wanted("newest") {
		return "v1beta1" // 1.37 has v1alpha2 no more
	}
	return "v1alpha2"
}

// podGroups is the flag that the gate GenericWorkload needs.
func podGroups() string { return "--runtime-config=scheduling.k8s.io/" + groupVersion() + "=true" }

// makeGroup makes a PodGroup with a claim of the template.
func (s *bare) makeGroup(t *testing.T, name, template string) {
	t.Helper()
	group := fmt.Sprintf(`apiVersion: scheduling.k8s.io/%s
kind: PodGroup
metadata: {name: %s, namespace: %s}
spec:
  schedulingPolicy: {basic: {}}
  resourceClaims: [{name: gpuslice, resourceClaimTemplateName: %s}]
`, groupVersion(), name, governedNamespace, template)
	if err := s.apply.Apply(t.Context(), []byte(group)); err != nil {
		t.Fatal(err)
	}
}

// claimBy makes a pod of the PodGroup that names the template, and returns the name of the claim that it gets.
func (s *bare) claimBy(t *testing.T, pod, group, template string) (claim string) {
	t.Helper()
	pods := s.Client.CoreV1().Pods(governedNamespace)
	made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "example.test/app:1",
			Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpuslice"}}}}},
		SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: new(group)},
		ResourceClaims:  []corev1.PodResourceClaim{{Name: "gpuslice", ResourceClaimTemplateName: new(template)}}}}
	if _, err := pods.Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		have, err := pods.Get(ctx, pod, metav1.GetOptions{})
		if err != nil || len(have.Status.ResourceClaimStatuses) == 0 {
			return false, err
		}
		claim = *have.Status.ResourceClaimStatuses[0].ResourceClaimName
		return true, nil
	})
	if err != nil {
		t.Fatalf("pod %s has no claim: %v", pod, err)
	}
	return claim
}

// testGroup shows why slices by claims are denied to pods of a PodGroup: its author has two of them share one claim.
func (s *bare) testGroup(t *testing.T, template string) {
	s.makeGroup(t, "group", template)
	if first, second := s.claimBy(t, "first", "group", template), s.claimBy(t, "second", "group", template); first != second {
		t.Errorf("two pods of a group have claims %s and %s: policies/internal/strategies denies what Kubernetes does no more", first, second)
	}
}
