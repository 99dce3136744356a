package cdi

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/install"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m, install.Build)) }

const policy = "apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing]\n"

func TestCDI(t *testing.T) {
	if !cluster.Wanted("node") {
		t.Skip("starts a real node: set GPUSLICE_TEST=node to run it, as root")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	n, err := install.StartCDINode(ctx, box.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Policy(ctx, "default", []byte(policy)); err != nil {
		t.Fatal(err)
	}
	if err := n.Settle(ctx, install.SharedResource); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"team-a", "team-b", "team-c", unmanaged} {
		if err := n.Namespace(ctx, namespace, nil); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("the toolkit's hook does not let a container start that carries the driver's limit", func(t *testing.T) {
		p := pod()
		p.Labels, p.Spec.Containers[0].Env = nil, limited()
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{install.SharedResource: resource.MustParse("1")}
		if _, err := n.Client.CoreV1().Pods(unmanaged).Create(ctx, p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		await(ctx, t, n, unmanaged, func(p *corev1.Pod) bool { return strings.Contains(p.Status.String(), denial(t)) })
		if err := n.Client.CoreV1().Pods(unmanaged).Delete(ctx, "train", metav1.DeleteOptions{}); err != nil { // the GPU has four shares
			t.Fatal(err)
		}
	})
	t.Run("a slice starts, though its author wrote the limit, and what is observed names the guard that reads nothing", func(t *testing.T) {
		for _, namespace := range []string{"team-a", "team-b"} {
			p := pod()
			p.Spec.Containers[0].Env = limited()
			if _, err := n.Client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, namespace := range []string{"team-a", "team-b"} {
			await(ctx, t, n, namespace, func(p *corev1.Pod) bool {
				observed := p.Annotations[api.AnnotationObserved]
				return p.Status.Phase == corev1.PodRunning && strings.Contains(observed, "gpuslice cannot enforce this pod's slice: initialise NVML")
			})
		}
	})
	t.Run("the next pod is planned without a guard", func(t *testing.T) {
		planned := ""
		err := wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
			made, err := n.Client.CoreV1().Pods("team-c").Create(ctx, pod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				return false, err
			}
			planned = made.Annotations[api.AnnotationPlanned]
			return strings.Contains(planned, "no guard is counted on: the last guards there, of pods in 2 namespaces"), nil
		})
		if err != nil {
			t.Errorf("planned %s", planned)
		}
	})
	t.Run("an agent reads the GPU that the node's device plugin gives it, and terminates a hog", func(t *testing.T) {
		// No pod outside of NVIDIA's runtime gets a device but by a resource. The node has one GPU.
		if err := n.StartAgent(ctx, fakegpu.Config{},
			[2]string{"limits: {memory: 128Mi}", "limits: {memory: 128Mi, " + install.SharedResource + ": 1}"}); err != nil {
			t.Fatal(err)
		}
		if err := n.Policy(ctx, "team-d",
			[]byte(policy+"namespaces: {names: [team-d]}\nguard: {mode: agent, act: always, grace: 1s, termGrace: 2s}\n")); err != nil {
			t.Fatal(err)
		}
		if err := n.Settle(ctx, install.SharedResource); err != nil {
			t.Fatal(err)
		}
		if err := n.Namespace(ctx, "team-d", nil); err != nil {
			t.Fatal(err)
		}
		hog := pod()
		hog.Spec.RestartPolicy = corev1.RestartPolicyNever
		hog.Spec.Containers[0].Args = []string{"device 0", "hold 2GiB", "wait 2s", "hold 9GiB"}
		if _, err := n.Client.CoreV1().Pods("team-d").Create(ctx, hog, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		await(ctx, t, n, "team-d", func(p *corev1.Pod) bool {
			return strings.Contains(p.Annotations[api.AnnotationObserved], "gpuslice terminated tenant")
		})
	})
}

func pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "train", Labels: map[string]string{api.LabelMemory: "8Gi"}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(1)), Containers: []corev1.Container{{
			Name: "trainer", Image: install.TenantImage, Args: []string{"wait 1h"}, ImagePullPolicy: corev1.PullNever,
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}},
		}}},
	}
}

// unmanaged is a namespace in which gpuslice leaves pods unchanged.
const unmanaged = "gpu-operator"

// limited are the variables from which the toolkit's hook sets the driver's own limit.
func limited() []corev1.EnvVar {
	return []corev1.EnvVar{{Name: "NVIDIA_GPU_MEMORY_LIMIT", Value: "8192"}, {Name: "NVIDIA_GPU_MEMORY_REQUEST", Value: "8192"}}
}

// denial returns what the hook writes where it cannot set the limit: the simulated driver knows none.
func denial(t *testing.T) string {
	t.Helper()
	var root unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &root); err != nil {
		t.Fatal(err)
	}
	if root.Type == unix.CGROUP2_SUPER_MAGIC {
		return "failed to set memory limits for gpu"
	}
	return "setting GPU memory limits is only supported in cgroup v2"
}

// await waits for the namespace's pod.
func await(ctx context.Context, t *testing.T, n *install.OnNode, namespace string, done func(*corev1.Pod) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, time.Second, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		p, err := n.Client.CoreV1().Pods(namespace).Get(ctx, "train", metav1.GetOptions{})
		return err == nil && done(p), err
	})
	if err != nil {
		out, _ := n.Kubectl(context.WithoutCancel(ctx), "describe", "pods", "--namespace="+namespace)
		t.Fatalf("%v\n%s", err, out)
	}
}
