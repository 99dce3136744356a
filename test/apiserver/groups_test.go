package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/scenarios"
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

// claimBy makes a pod that names the template, of a PodGroup unless it is "", and returns the name of the claim that it gets.
func (s *bare) claimBy(t *testing.T, pod, group, template string) (claim string) {
	t.Helper()
	pods := s.Client.CoreV1().Pods(governedNamespace)
	made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "example.test/app:1",
			Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpuslice"}}}}},
		ResourceClaims: []corev1.PodResourceClaim{{Name: "gpuslice", ResourceClaimTemplateName: new(template)}}}}
	if group != "" {
		made.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new(group)}
	}
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

// TestGroupKeepsDevices shows why claims of GPUs are denied to pods of a PodGroup where a quota counts them: the group keeps the
// devices after its last pod.
func TestGroupKeepsDevices(t *testing.T) {
	s := without(t, cluster.Options{ControllerManager: true, Scheduler: true, Gates: claimsOfGroups, Flags: []string{podGroups()},
		ControllerFlags: []string{"--node-monitor-grace-period=24h"}}) // no kubelet renews the nodes' Leases
	source, err := scenarios.Published([]string{"dra-h100"}, []string{"nvidia-h100-shares-memory"})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range source.Nodes {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Test"}}
	}
	on := &install.Installation{Server: s.APIServer}
	const template = "whole"
	whole := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: template}, Spec: resourcev1.ResourceClaimTemplateSpec{
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com"}}}}}}}
	for _, err := range []error{on.Nodes(t.Context(), source.Nodes...), on.Devices(t.Context(), source),
		s.Namespace(t.Context(), governedNamespace, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = s.Client.ResourceV1().ResourceClaimTemplates(governedNamespace).Create(t.Context(), whole, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := s.Client.CoreV1().Pods(governedNamespace)
	claims := map[string]bool{}
	for _, group := range []string{"one", "two"} { // each device of the node, one pod after the other
		s.makeGroup(t, group, template)
		claim := s.claimBy(t, "train", group, template)
		s.awaitAllocated(t, claim)
		if err := pods.Delete(t.Context(), "train", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
			t.Fatal(err)
		}
		claims[claim] = true
	}
	s.testWaits(t, template)
	for claim := range claims {
		have, err := s.Client.ResourceV1().ResourceClaims(governedNamespace).Get(t.Context(), claim, metav1.GetOptions{})
		if err != nil || have.Status.Allocation == nil {
			t.Errorf("claim %s is let go with the last pod of its group: policies/claims.go denies what Kubernetes does no more: %v", claim, err)
		}
	}
}

// testWaits shows that there is no device for a pod of no group, and returns when Kubernetes has seen it go, and those before it.
func (s *bare) testWaits(t *testing.T, template string) {
	t.Helper()
	claim, pods := s.claimBy(t, "alone", "", template), s.Client.CoreV1().Pods(governedNamespace)
	until := func(what string, reached wait.ConditionWithContextFunc) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, reached); err != nil {
			t.Fatalf("the pod of no group %s: %v", what, err)
		}
	}
	until("is scheduled, or not tried", func(ctx context.Context) (bool, error) {
		have, err := pods.Get(ctx, "alone", metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(have.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, "cannot allocate all claims")
		}), err
	})
	if err := pods.Delete(t.Context(), "alone", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	until("keeps its claim", func(ctx context.Context) (bool, error) {
		_, err := s.Client.ResourceV1().ResourceClaims(governedNamespace).Get(ctx, claim, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

// awaitAllocated waits until the scheduler has given the claim a device.
func (s *bare) awaitAllocated(t *testing.T, claim string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		have, err := s.Client.ResourceV1().ResourceClaims(governedNamespace).Get(ctx, claim, metav1.GetOptions{})
		return err == nil && have.Status.Allocation != nil, err
	})
	if err != nil {
		t.Fatalf("claim %s has no device: %v", claim, err)
	}
}
