package dra

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/leader"
)

// byClaim is the strategy claim from the pod to the guard, on a device of which a claim of somebody else's leaves 23Gi.
func (s stage) byClaim(t *testing.T) {
	for _, name := range []string{"a", "c", "d"} {
		s.delete(t, unmanaged, name)
	}
	if err := s.Policy(s.ctx, "default", []byte(strings.Replace(policy, "time-slicing", "claim", 1))); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(s.ctx); err != nil {
		t.Fatal(err)
	}
	t.Run("nobody_claims_of_a_class_that_is_listed", s.closed)
	t.Run("three_unequal_slices_share_a_device_and_a_fourth_waits_for_room", s.unequal)
	t.Run("the_quota_counts_them", s.quotaOfClaims)
	t.Run("the_guard_terminates_a_hog", s.hogByClaim("of-4gi", "of-10gi", "fourth"))
	t.Run("a_template_comes_when_its_leader_was_killed", s.leaderKilled)
}

// closed lists the class as the chart's value does, and has a tenant claim of it.
func (s stage) closed(t *testing.T) {
	manifest, err := deploy.Files.ReadFile("58-claims.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const open = "''.split(',')"
	if strings.Count(string(manifest), open) != 1 {
		t.Fatal("58-claims.yaml does not list classes in one place")
	}
	if err := s.Apply.Apply(s.ctx, []byte(strings.Replace(string(manifest), open, "'"+sharedMemory+"'.split(',')", 1))); err != nil {
		t.Fatal(err)
	}
	mine := template("mine", "1Gi")
	claim := &resourcev1.ResourceClaim{ObjectMeta: mine.ObjectMeta, Spec: mine.Spec.Spec}
	trial := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for what, create := range map[string]func(context.Context, string) error{
		"template": func(ctx context.Context, namespace string) error {
			_, err := s.Client.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, mine, trial)
			return err
		},
		"claim": func(ctx context.Context, namespace string) error {
			_, err := s.Client.ResourceV1().ResourceClaims(namespace).Create(ctx, claim, trial)
			return err
		},
	} {
		err := wait.PollUntilContextTimeout(s.ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			err := create(ctx, "team-c") // until the API server has read the policy
			return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'gpuslice-claims'") &&
				strings.Contains(err.Error(), sharedMemory), nil
		})
		if err != nil {
			t.Errorf("a tenant's %s of class %s passes: %v", what, sharedMemory, err)
		}
		if err := create(s.ctx, unmanaged); err != nil {
			t.Errorf("%s in a namespace that gpuslice ignores: %v", what, err)
		}
	}
}

func (s stage) unequal(t *testing.T) {
	for _, memory := range []string{"4Gi", "8Gi", "10Gi"} {
		name := "of-" + strings.ToLower(memory)
		made := s.create(t, "team-c", byLabel(name, memory, "device 0", "hold 1GiB"))
		given, err := promise.Decode(made.Annotations[api.AnnotationPromise])
		if err != nil {
			t.Fatal(err)
		}
		if _, requested := made.Spec.Containers[0].Resources.Limits[api.ResourceGPU]; requested ||
			given.Strategy != "claim" || given.Planned.Tier != api.TierGuard {
			t.Errorf("%s: planned %s by %s, %s requested: %t", memory, given.Planned.Tier, given.Strategy, api.ResourceGPU, requested)
		}
		s.await(t, "team-c", name, running)
		s.madeByGPUSlice(t, "team-c", given.Containers[0].Template)
		if got := s.allocated(t, "team-c", name); got != "gpu-1" {
			t.Errorf("%s is on device %q", memory, got)
		}
	}
	s.create(t, "team-c", byLabel("fourth", "2Gi", "device 0", "hold 1GiB"))
	s.await(t, "team-c", "fourth", func(p *corev1.Pod) bool { return strings.Contains(p.Status.String(), "cannot allocate all claims") })
	s.delete(t, "team-c", "of-8gi")
	s.await(t, "team-c", "fourth", running)
}

// madeByGPUSlice checks that the template which a pod names is the leader's.
func (s stage) madeByGPUSlice(t *testing.T, namespace, name string) *resourcev1.ResourceClaimTemplate {
	t.Helper()
	made, err := s.Client.ResourceV1().ResourceClaimTemplates(namespace).Get(s.ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(made.ManagedFields) != 1 || !strings.Contains(made.ManagedFields[0].Manager, "gpuslice") {
		t.Errorf("template %s was written by %v", name, made.ManagedFields)
	}
	return made
}

// allocated is the device that the claim of a pod has.
func (s stage) allocated(t *testing.T, namespace, pod string) string {
	t.Helper()
	if c := s.claimOf(t, namespace, pod); c != nil {
		return c.Status.Allocation.Devices.Results[0].Device
	}
	return ""
}

// quotaOfClaims asks for more than 30Gi beside slices of 16Gi.
func (s stage) quotaOfClaims(t *testing.T) {
	_, err := s.Client.CoreV1().Pods("team-c").Create(s.ctx, byLabel("fifth", "15Gi", "wait 1h"), metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "exceeded quota") || !strings.Contains(err.Error(), "16Gi") {
		t.Errorf("15Gi beside 16Gi of 30Gi: %v", err)
	}
}

// hogByClaim has a hog terminated beside neighbors of team-c.
func (s stage) hogByClaim(neighbors ...string) func(*testing.T) {
	return func(t *testing.T) {
		hog := byLabel("claimed", "3Gi", "device 0", "hold 1GiB", "wait 2s", "hold 9GiB", "wait 1h")
		hog.Spec.RestartPolicy = corev1.RestartPolicyNever
		s.create(t, "team-b", hog)
		s.await(t, "team-b", "claimed", func(p *corev1.Pod) bool {
			return strings.Contains(p.Annotations[api.AnnotationObserved], "gpuslice terminated")
		})
		for _, name := range neighbors {
			s.await(t, "team-c", name, func(p *corev1.Pod) bool { return running(p) && p.Status.ContainerStatuses[0].RestartCount == 0 })
		}
	}
}

// leaderKilled kills the leader's process before it can write what a pod names.
func (s stage) leaderKilled(t *testing.T) {
	was := s.lease(t)
	name, _, _ := strings.Cut(*was.Spec.HolderIdentity, "_")
	s.kill(t, name)
	var made *corev1.Pod
	err := wait.PollUntilContextTimeout(s.ctx, 200*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		var err error // until the API server no longer asks the replica that is gone
		made, err = s.Client.CoreV1().Pods("team-b").Create(ctx, byLabel("after", "1Gi", "device 0", "hold 512MiB"), metav1.CreateOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.await(t, "team-b", "after", running)
	given, err := promise.Decode(made.Annotations[api.AnnotationPromise])
	if err != nil {
		t.Fatal(err)
	}
	wrote, leads := s.madeByGPUSlice(t, "team-b", given.Containers[0].Template), s.lease(t)
	if *leads.Spec.HolderIdentity == *was.Spec.HolderIdentity ||
		wrote.CreationTimestamp.Time.Before(leads.Spec.AcquireTime.Truncate(time.Second)) {
		t.Errorf("template written at %s; %s leads since %s, %s did before", wrote.CreationTimestamp, *leads.Spec.HolderIdentity,
			leads.Spec.AcquireTime, *was.Spec.HolderIdentity)
	}
}

func (s stage) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	l, err := s.Client.CoordinationV1().Leases(api.SystemNamespace).Get(s.ctx, leader.LeaseName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// kill kills the processes of a pod's one container.
func (s stage) kill(t *testing.T, pod string) {
	t.Helper()
	p, err := s.Client.CoreV1().Pods(api.SystemNamespace).Get(s.ctx, pod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, id, _ := strings.Cut(p.Status.ContainerStatuses[0].ContainerID, "://")
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil || id == "" {
		t.Fatalf("container %q: %v", id, err)
	}
	killed := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(text), id) {
			continue // one that has gone, or is somebody else's
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
		killed++
	}
	if killed == 0 {
		t.Fatalf("pod %s has no process", pod)
	}
}

// byLabel is a pod that requests a slice by its label alone.
func byLabel(name, memory string, script ...string) *corev1.Pod {
	p := slice(name, memory, script...)
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	return p
}

// claimOf is the claim that was made for a pod, if it has devices.
func (s stage) claimOf(t *testing.T, namespace, pod string) *resourcev1.ResourceClaim {
	t.Helper()
	list, err := s.Client.ResourceV1().ResourceClaims(namespace).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		c := &list.Items[i]
		if strings.HasPrefix(c.Name, pod+"-") && c.Status.Allocation != nil {
			return c
		}
	}
	return nil
}

func (s stage) delete(t *testing.T, namespace, pod string) {
	t.Helper()
	if err := s.Client.CoreV1().Pods(namespace).Delete(s.ctx, pod, metav1.DeleteOptions{}); err != nil {
		t.Fatal(fmt.Errorf("delete pod %s: %w", pod, err))
	}
}
