package apiserver

import (
	"context"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

func nodesOf(t *testing.T, names ...string) []*corev1.Node {
	t.Helper()
	nodes, err := scenarios.Nodes(names...)
	if err != nil {
		t.Fatal(err)
	}
	return nodes
}

const workload = `
metadata: {name: w}
spec:
  selector: {matchLabels: {app: w}}
  template:
    metadata: {labels: {app: w}}
    spec:
      restartPolicy: RESTART
      containers:
      - {name: a, image: 'pytorch/pytorch:2.4.0', resources: {limits: {nvidia.com/gpu: "QUANTITY"}}}
`

// workloads are the kinds with a template that is read, and their versions.
var workloads = map[string]string{"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1",
	"ReplicaSet": "apps/v1", "ReplicationController": "v1", "Job": "batch/v1"}

// workloadOf is a workload of the kind.
func workloadOf(t *testing.T, kind, namespace, name, quantity string) *unstructured.Unstructured {
	t.Helper()
	text := strings.ReplaceAll(strings.ReplaceAll(workload, "QUANTITY", quantity), "RESTART",
		map[bool]string{true: "Never", false: "Always"}[kind == "Job"])
	if kind == "Job" {
		text = strings.ReplaceAll(text, "  selector: {matchLabels: {app: w}}\n", "")
	}
	if kind == "ReplicationController" {
		text = strings.ReplaceAll(text, "{matchLabels: {app: w}}", "{app: w}")
	}
	u := podOf(t, name, namespace, "")
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetName(name)
	u.SetNamespace(namespace)
	u.SetKind(kind)
	u.SetAPIVersion(workloads[kind])
	return u
}

func TestFractionInTemplate(t *testing.T) {
	t.Run("the answer says what to write", func(t *testing.T) {
		i := need(t)
		setUpReapply(t, i, "templates")
		for kind := range workloads {
			for quantity, denied := range map[string]bool{"0.25": true, "1": false} {
				u := workloadOf(t, kind, "templates", strings.ToLower(kind)+strings.ReplaceAll(quantity, ".", "-"), quantity)
				_, err := i.Apply.Create(t.Context(), u, metav1.CreateOptions{})
				switch {
				case denied && (err == nil || !strings.Contains(err.Error(), `gpuslice.dev/fraction: "0.25"`)):
					t.Errorf("%s with %s: want the sentence that says what to write, got: %v", kind, quantity, err)
				case !denied && err != nil:
					t.Errorf("%s with %s: %v", kind, quantity, err)
				}
			}
		}
	})
}

func TestLabelOfTemplate(t *testing.T) {
	t.Run("who applies a workload gets a warning about a misspelt one", func(t *testing.T) {
		i := need(t)
		setUpReapply(t, i, "labelled-templates")
		for kind := range workloads {
			for label, want := range map[string]string{"gpuslice.dev/memroy": "did you mean gpuslice.dev/memory?", "gpuslice.dev/memory": ""} {
				u := workloadOf(t, kind, "labelled-templates", strings.ToLower(kind)+"-"+label[len("gpuslice.dev/"):], "1")
				if err := unstructured.SetNestedField(u.Object, "4Gi", "spec", "template", "metadata", "labels", label); err != nil {
					t.Fatal(err)
				}
				_, warnings, err := create(t.Context(), i, u)
				if text := strings.Join(warnings, "\n"); err != nil || !strings.Contains(text, want) || want == "" && text != "" {
					t.Errorf("%s with %s: %v, warnings %q", kind, label, err, warnings)
				}
			}
		}
	})
}

func TestPodsWithoutGPUs(t *testing.T) {
	t.Run("do not need the webhook", func(t *testing.T) {
		i := need(t)
		setUpReapply(t, i, "down")
		if err := i.Server.SetEndpoints(t.Context(), "gpuslice-system", "gpuslice-webhook"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx := context.WithoutCancel(t.Context())
			if err := i.Server.SetEndpoints(ctx, "gpuslice-system", "gpuslice-webhook", i.Webhook.Reviews); err != nil {
				t.Error(err)
			}
		})
		pod := podOf(t, "web", "down", "spec:\n  containers:\n  - {name: web, image: 'nginx:1.27'}\n")
		if _, err := i.Apply.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Errorf("a pod without a GPU while the webhook is down: %v", err)
		}
	})
}

// TestOtherPods sees by the webhook's own count that match conditions keep pods away which touch no GPU.
func TestOtherPods(t *testing.T) {
	t.Run("never reach the webhook", func(t *testing.T) {
		i := need(t)
		setUpReapply(t, i, "others")
		before := reviews(t, i.Webhook.Probes)
		for n, body := range []string{
			"spec:\n  containers:\n  - {name: web, image: 'nginx:1.27'}\n",
			"spec:\n  containers:\n  - {name: amd, image: 'rocm:6', resources: {limits: {amd.com/gpu: 1}}}\n",
			"spec:\n  initContainers:\n  - {name: i, image: 'busybox:1'}\n  containers:\n  - {name: web, image: 'nginx:1.27', env: [{name: PATH, value: /}]}\n",
		} {
			if _, err := i.Apply.Create(t.Context(), podOf(t, "p"+string(rune('0'+n)), "others", body), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if after := reviews(t, i.Webhook.Probes); after != before {
			t.Errorf("%v reviews arrived for pods without a GPU", after-before)
		}
		if _, err := i.Apply.Create(t.Context(), podOf(t, "gpu", "others", manifests["label"]), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if after := reviews(t, i.Webhook.Probes); after == before {
			t.Error("the count does not move for a pod with a GPU either: it proves nothing")
		}
	})
}

func TestTenThousandContainers(t *testing.T) {
	abuse.Report(t, abuse.Attempt{Threat: "A16", Attack: "10,000 containers", Outcome: abuse.Denied, Words: "denied by a bound that is named"})
	t.Run("are denied", func(t *testing.T) {
		i := need(t)
		setUpReapply(t, i, "many")
		pod := podOf(t, "many", "many", manifests["label"])
		var containers []any
		for n := range 10_000 {
			containers = append(containers, map[string]any{"name": "c" + strconv.Itoa(n), "image": "a"})
		}
		pod.Object["spec"].(map[string]any)["containers"] = containers
		_, err := i.Apply.Create(t.Context(), pod, metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "gpuslice.dev\" denied") {
			t.Errorf("want a denial that names the bound, got: %.300v", err)
		}
	})
}
