package apiserver

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// TestJobFailurePolicy has Kubernetes' Job controller judge the end of gpuslice's check by rules that were written for the program's
// exit codes, and by the one that TROUBLESHOOTING.md adds. There is no kubelet: the test reports how containers end.
func TestJobFailurePolicy(t *testing.T) {
	t.Parallel()
	need(t)
	server := cluster.ForTest(t, cluster.Options{Bin: programs.bin, ControllerManager: true})
	i, err := install.New(t.Context(), server, programs.webhook, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Stop)
	const namespace = "jobs"
	if err := classes(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	setUpReapply(t, i, namespace)
	guard, err := install.Binary(t.Context(), t.TempDir(), "cmd/guard")
	if err != nil {
		t.Fatal(err)
	}

	failJob := batchv1.PodFailurePolicyRule{Action: batchv1.PodFailurePolicyActionFailJob,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn,
			Values: []int32{1, 2, 42}}}
	ignore := batchv1.PodFailurePolicyRule{Action: batchv1.PodFailurePolicyActionIgnore,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{75}}}
	for _, c := range []struct {
		name      string
		rules     []batchv1.PodFailurePolicyRule
		container string
		code      int32  // 0: what the check ends with
		want      string // reason of the Job's failure; "": its pod is made again
		counted   int32
	}{
		{"the-check-fails", []batchv1.PodFailurePolicyRule{failJob}, limits.CheckContainer, 0, "", 1},
		{"the-check-is-ignored", []batchv1.PodFailurePolicyRule{ignore, failJob}, limits.CheckContainer, 0, "", 0},
		{"the-program-fails", []batchv1.PodFailurePolicyRule{ignore, failJob}, "train", 1, batchv1.JobReasonPodFailurePolicy, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: c.name}, Spec: batchv1.JobSpec{
				PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: c.rules}, BackoffLimit: new(int32(3))}}
			job.Spec.Template.Labels = map[string]string{api.LabelMemory: "4Gi"}
			job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
				Name: "train", Image: "pytorch/pytorch:2.4.0", Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}}}}}
			jobs := server.Client.BatchV1().Jobs(namespace)
			if _, err := jobs.Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			first := awaitPodOf(t, server, namespace, c.name, "")
			if c.code == 0 {
				c.code = exitCodeOfCheck(t, guard, &first)
			}
			endPod(t, server, &first, c.container, c.code)
			if c.want == "" {
				awaitPodOf(t, server, namespace, c.name, first.Name)
			}
			awaitJob(t, server, namespace, c.name, func(j *batchv1.Job) bool {
				failure := slices.IndexFunc(j.Status.Conditions, func(o batchv1.JobCondition) bool {
					return o.Type == batchv1.JobFailed && o.Status == corev1.ConditionTrue
				})
				if j.Status.Failed != c.counted || (failure >= 0) != (c.want != "") {
					return false
				}
				return failure < 0 || j.Status.Conditions[failure].Reason == c.want
			})
		})
	}
}

// exitCodeOfCheck is the code with which a pod's check ends on a node without NVIDIA's driver.
func exitCodeOfCheck(t *testing.T, guard string, pod *corev1.Pod) int32 {
	t.Helper()
	at := slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == limits.CheckContainer })
	if at < 0 {
		t.Fatalf("%s has no check", pod.Name)
	}
	dir := t.TempDir()
	check := exec.CommandContext(t.Context(), guard, "check", "--nvml-library", filepath.Join(dir, "none.so"),
		"--termination-message-path", filepath.Join(dir, "message"))
	check.Env = []string{}
	for _, v := range pod.Spec.InitContainers[at].Env {
		check.Env = append(check.Env, v.Name+"="+v.Value)
	}
	text, err := check.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Logf("the check ends with %d: %s", ended.ExitCode(), text)
	return int32(ended.ExitCode())
}

// awaitPodOf returns a pod of a Job that is not the one named.
func awaitPodOf(t *testing.T, s *cluster.APIServer, namespace, job, but string) (found corev1.Pod) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		all, err := s.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job})
		if err != nil {
			return false, err
		}
		at := slices.IndexFunc(all.Items, func(p corev1.Pod) bool { return p.Name != but })
		if at >= 0 {
			found = all.Items[at]
		}
		return at >= 0, nil
	})
	if err != nil {
		t.Fatalf("no pod of %s but %q: %v", job, but, err)
	}
	return found
}

func awaitJob(t *testing.T, s *cluster.APIServer, namespace, name string, reached func(*batchv1.Job) bool) {
	t.Helper()
	var seen *batchv1.Job
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (_ bool, err error) {
		if seen, err = s.Client.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return false, err
		}
		return reached(seen), nil
	})
	if err != nil {
		t.Fatalf("%v: %+v", err, seen.Status)
	}
}

// endPod reports as a kubelet does that a container ended the pod with a code.
func endPod(t *testing.T, s *cluster.APIServer, pod *corev1.Pod, container string, code int32) {
	t.Helper()
	pod.Status.Phase = corev1.PodFailed
	ended := []corev1.ContainerStatus{{Name: container,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}}}}
	if slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == container }) {
		pod.Status.InitContainerStatuses = ended
	} else {
		pod.Status.ContainerStatuses = ended
	}
	if _, err := s.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
