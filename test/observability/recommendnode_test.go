package observability

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/leader/observe"
)

// TestRecommendOnNode goes the whole way: an agent measures a workload, Prometheus reads the agent, recommend names a smaller slice, and
// the pod with its label runs, held to it by the agent. Three days that nobody can wait for are written into Prometheus as the agent
// reported the first minute.
func TestRecommendOnNode(t *testing.T) {
	t.Run("recommends a slice that runs", func(t *testing.T) {
		n := onNode(t)
		serve(t, n)
		program, config := filepath.Join(box.Dir(), prometheusFile), configuration(t, n.Kubeconfig)
		// By container: until the kubelet reports a new container, the agent counts its memory to one without a name.
		const of = `{namespace="sizing",container="tenant"}`
		const used = "gpuslice_agent_memory_used_bytes" + of
		first := startPrometheus(t, program, config, "--storage.tsdb.path=data")
		first.await(used + " >= 3*1024^3")

		var history []metric
		for _, query := range []string{used, "gpuslice_agent_memory_slice_bytes" + of} {
			all, err := first.Now(query)
			if err != nil || len(all) != 1 {
				t.Fatalf("%s: %v, %v", query, all, err)
			}
			var labels []string
			for name, value := range all[0].Labels {
				if name != "__name__" {
					labels = append(labels, fmt.Sprintf("%s=%q", name, value))
				}
			}
			history = append(history, metric{all[0].Labels["__name__"], strings.Join(labels, ","), always(constant(all[0].Points[0].Value))})
		}
		second := startPrometheus(t, program, config,
			"--storage.tsdb.path="+backfill(t, filepath.Join(box.Dir(), promtoolFile), history, time.Now()))
		second.await(used)
		args := []string{"serve", "-n", "sizing", "--prometheus", "http://" + second.address, "--since", "3d", "-o"}
		size := sizeOf(t, args)
		apply(t, n, args)
		pod := awaitPod(t, n, size)
		second.await(fmt.Sprintf("gpuslice_agent_memory_slice_bytes{namespace=%q,pod=%q} == %d", pod.Namespace, pod.Name, size.Bytes()))
		t.Logf("pod %s: %s", pod.Name, pod.Annotations[api.AnnotationSummary])
	})
}

// serve creates the workload: it holds 3 GiB in a slice of 16.
func serve(t *testing.T, n *install.OnNode) {
	t.Helper()
	app := map[string]string{"app": "serve"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "serve", api.LabelMemory: "16Gi"}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(2)), Containers: []corev1.Container{{
			Name: "tenant", Image: install.TenantImage, Args: []string{"node " + agentNode, "device 0", "hold 3GiB"},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}}}}}}
	_, err := n.Client.AppsV1().Deployments("sizing").Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "serve"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: app}, Template: template}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// sizeOf is the size that recommend names for the workload.
func sizeOf(t *testing.T, args []string) api.MiB {
	t.Helper()
	out, err := run(t.Context(), time.Now(), append(args, "json")...)
	var list struct {
		Items []struct {
			Verdict           string
			Hours             float64
			Peak, Slice, Size api.MiB
		}
	}
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("recommend: %v\n%s", err, out)
	}
	i := list.Items[0]
	if i.Verdict != "over-requested" || i.Hours < 70 || i.Peak < 3<<10 || i.Slice != 16<<10 || i.Size <= i.Peak || i.Size >= i.Slice/2 {
		t.Fatalf("recommend: %s", out)
	}
	return i.Size
}

// apply applies the patch that recommend prints, as its page says.
func apply(t *testing.T, n *install.OnNode, args []string) {
	t.Helper()
	patch, err := run(t.Context(), time.Now(), append(args, patchFormat)...)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "patch.yaml")
	if err := os.WriteFile(file, patch, 0o600); err != nil {
		t.Fatal(err)
	}
	command := []string{"apply", "--server-side", "--field-manager=gpuslice-recommend", "-f", file}
	if out, err := n.Kubectl(t.Context(), command...); err == nil || !strings.Contains(out+err.Error(), "conflict") {
		t.Errorf("who wrote the label is not named (%v):\n%s", err, out)
	}
	if out, err := n.Kubectl(t.Context(), append(command, "--force-conflicts")...); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, patch)
	}
}

const patchFormat = "patch"

// awaitPod returns the one pod of the workload that is left, once it runs in a slice of the size and is observed to be enforced.
func awaitPod(t *testing.T, n *install.OnNode, size api.MiB) *corev1.Pod {
	t.Helper()
	var last []corev1.Pod
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := n.Client.CoreV1().Pods("sizing").List(ctx, metav1.ListOptions{LabelSelector: "app=serve"})
		if err != nil {
			return false, err
		}
		if last = list.Items; len(last) != 1 || last[0].Status.Phase != corev1.PodRunning || last[0].Labels[api.LabelMemory] != size.String() {
			return false, nil
		}
		o, err := observe.DecodeObservation(last[0].Annotations[api.AnnotationObserved])
		return err == nil && o.State == observe.Enforced && o.Tier == api.TierGuard, nil
	})
	if err != nil {
		t.Fatalf("wait for a pod in a slice of %s: %v\n%+v", size, err, last)
	}
	return &last[0]
}
