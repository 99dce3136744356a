package controllers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// Names of Kueue's chart.
const (
	system         = "kueue-system"
	webhookService = "kueue-webhook-service"
	webhookSecret  = "kueue-webhook-server-cert"
)

var kueue = cluster.Controller{Name: "kueue", Module: "sigs.k8s.io/kueue", Package: "/cmd/kueue"}

// TestKueue follows the page with Kueue itself and its webhooks, installed by its chart.
func TestKueue(t *testing.T) {
	l := start(t, "deploy/recipes/kueue.md", kueue, cluster.Helm())
	const team, queued, gated = "team-a", "queued", "gated"
	l.govern("apiVersion: gpuslice.dev/v1\nnamespaces: {names: [" + team + "]}\nstrategies: [time-slicing]\nquota: {slices: 10}\n")
	l.govern(l.Block("names: [" + queued + "]"))
	l.startKueue(append(l.transformations(l.Block("input: "+whole)), l.transformations(l.Block("input: nvidia.com/gpumem"))...))
	job := l.Block("kind: Job\n")

	t.Log("Jobs that request the shared resource")
	for n := range 9 {
		l.Must(l.create(team, fmt.Sprint("train-", n), job))
	}
	l.awaitQueue("shares", 8, 1, shared, "8")
	l.awaitBound(team, "trainer: 4Gi of "+shared, 8)
	l.end(l.pods(team)[0])
	l.awaitQueue("shares", 8, 0, shared, "8")
	l.awaitBound(team, "trainer: 4Gi of "+shared, 8)
	l.endAll(team)
	l.awaitQueue("shares", 0, 0, shared, "0")

	t.Log("Jobs that request the device's name")
	ofDevice := strings.Replace(job, shared+": 1", whole+": 1", 1)
	l.Must(l.create(team, "slice", ofDevice))
	l.awaitQueue("shares", 1, 0, shared, "1")
	l.awaitBound(team, "trainer: 4Gi of "+shared, 1)
	l.Must(l.create(team, "whole", strings.Replace(ofDevice, "gpuslice.dev/memory:", "example.com/none:", 1)))
	l.awaitQueue("shares", 2, 0, shared, "2")
	l.endAll(team)
	l.awaitQueue("shares", 0, 0, shared, "0")

	t.Log("GPU memory")
	memory := strings.NewReplacer(`labels: {gpuslice.dev/memory: "4Gi"}`, "labels: {}", shared+": 1", "nvidia.com/gpumem: 5120",
		"queue-name: shares", "queue-name: memory").Replace(job)
	for n := range 13 {
		l.Must(l.create(queued, fmt.Sprint("train-", n), memory))
	}
	l.awaitQueue("memory", 12, 1, "gpuslice.dev/memory", "60Gi")
	l.awaitBound(queued, "trainer: 5Gi of "+shared, 8)
	l.Must(l.create(queued, "both", strings.Replace(memory, "nvidia.com/gpumem: 5120", "nvidia.com/gpumem: 5120, "+whole+": 1", 1)))
	l.awaitQueue("memory", 12, 2, "gpuslice.dev/memory", "60Gi")
	byLabel := strings.NewReplacer("labels: {}", `labels: {gpuslice.dev/memory: "5Gi"}`, "nvidia.com/gpumem: 5120", "").Replace(memory)
	for n := range 4 {
		l.Must(l.create(queued, fmt.Sprint("by-label-", n), byLabel))
	}
	l.awaitQueue("memory", 16, 2, "gpuslice.dev/memory", "60Gi")
	l.await("gpuslice's quota counts the slices by label, too", func() string { return l.exceeded(queued, l.Block("kind: Pod\n")) })
	l.endAll(queued)

	t.Log("pods that Kueue holds")
	l.govern("apiVersion: gpuslice.dev/v1\nnamespaces: {names: [" + gated + "]}\n" +
		"strategies: [time-slicing]\naccept: [hami]\nquota: {slices: 1}\n")
	l.Must(l.create(gated, "held", heldPod))
	l.await("gpuslice's quota counts the pod that Kueue holds", func() string { return l.exceeded(gated, heldPod) })
	if p := l.pods(gated)[0]; len(p.Spec.SchedulingGates) == 0 || slice(p) == "" {
		t.Errorf("the pod has gates %v and slice %q", p.Spec.SchedulingGates, slice(p))
	}
	l.apply(localQueue("shares", gated))
	l.awaitBound(gated, "trainer: 4Gi of "+shared, 1)
	l.awaitQueue("shares", 1, 0, shared, "1")
	l.endAll(gated)

	t.Log("pods of a Deployment, which Kueue counts one by one")
	l.apply(localQueue("memory", gated))
	l.Must(l.create(gated, "serve", served))
	l.awaitHeld(gated, "resource "+shared+" unavailable in ClusterQueue")
}

// localQueue is a LocalQueue of the ClusterQueue of its name.
func localQueue(name, namespace string) string {
	const queue = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: %s, namespace: %s}, spec: {clusterQueue: %[1]s}}"
	return fmt.Sprintf(queue, name, namespace)
}

// heldPod is a pod that Kueue manages by itself.
const heldPod = `
apiVersion: v1
kind: Pod
metadata: {labels: {kueue.x-k8s.io/queue-name: shares, gpuslice.dev/memory: 4Gi}}
spec:
  restartPolicy: Never
  containers:
  - name: trainer
    image: pytorch/pytorch:2.10.0-cuda13.0-cudnn9-runtime
    resources: {requests: {cpu: "2", memory: 8Gi}, limits: {nvidia.com/gpu: 1}}
`

// served is a Deployment in the queue of GPU memory.
const served = `
apiVersion: apps/v1
kind: Deployment
metadata: {labels: {kueue.x-k8s.io/queue-name: memory}}
spec:
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      containers:
      - name: server
        image: pytorch/pytorch:2.10.0-cuda13.0-cudnn9-runtime
        resources: {requests: {cpu: "2", memory: 8Gi}, limits: {nvidia.com/gpumem: 5120}}
`

// TestKueueTransformations has Kueue do what the page advises against.
func TestKueueTransformations(t *testing.T) {
	l := start(t, "deploy/recipes/kueue.md", kueue, cluster.Helm())
	const queued = "queued"
	l.Must(l.Server.Namespace(t.Context(), "team-a", nil))
	l.govern(l.Block("names: [" + queued + "]"))
	l.startKueue(l.transformations(`
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
resources:
  transformations:
  - {input: nvidia.com/gpu, strategy: Replace}
  - {input: nvidia.com/gpumem, strategy: Replace, multiplyBy: nvidia.com/gpu, outputs: {gpuslice.dev/memory: 1Mi}}
`))
	job := strings.Replace(l.Block("kind: Job\n"), "queue-name: shares", "queue-name: memory", 1)
	l.Must(l.create(queued, "uncounted", strings.Replace(job, shared+": 1", whole+": 1", 1)))
	l.awaitQueue("memory", 1, 0, "gpuslice.dev/memory", "0")
	from := strings.Index(job, "      - name: trainer")
	both := strings.Replace(job[from:], shared+": 1", whole+": 1, nvidia.com/gpumem: 5120", 1)
	l.Must(l.create(queued, "multiplied", job[:from]+both+strings.Replace(both, "trainer", "second", 1)))
	l.awaitQueue("memory", 2, 0, "gpuslice.dev/memory", "20480Mi")
}

// startKueue installs Kueue by its chart, and starts it in the place of its Deployment, with transformations of resources.
func (l *lab) startKueue(transformations []any) {
	l.Helper()
	chart, err := l.controller.Folder(l.Context(), "charts/kueue")
	l.Must(err)
	helm := exec.CommandContext(l.Context(), l.Server.Program("helm"), "template", "kueue", chart, "--namespace="+system)
	helm.Env = []string{"HOME=" + l.TempDir()}
	rendered, err := helm.Output()
	l.Must(err)
	l.Must(l.Server.Namespace(l.Context(), system, nil))
	objects, err := install.Objects(rendered)
	l.Must(err)
	var configuration map[string]any
	for _, u := range objects {
		if u.GetKind() == "ConfigMap" {
			text, _, _ := unstructured.NestedString(u.Object, "data", "controller_manager_config.yaml")
			l.Must(yaml.Unmarshal([]byte(text), &configuration))
		}
	}
	l.Must(l.Apply.Apply(l.Context(), rendered, "Deployment", "APIService"))

	certs, port := l.TempDir(), l.freePort()
	configuration["health"] = map[string]any{"healthProbeBindAddress": "0"}
	configuration["metrics"] = map[string]any{"bindAddress": "0"}
	configuration["webhook"] = map[string]any{"host": "127.0.0.1", "port": port, "certDir": certs}
	configuration["leaderElection"] = map[string]any{"leaderElect": false}
	configuration["featureGates"] = map[string]any{"VisibilityOnDemand": false}
	configuration["resources"] = map[string]any{"transformations": transformations}
	text, err := yaml.Marshal(configuration)
	l.Must(err)
	file := filepath.Join(l.TempDir(), "config.yaml")
	l.Must(os.WriteFile(file, text, 0o600))
	l.Must(l.Server.SetEndpoints(l.Context(), system, webhookService, fmt.Sprintf("127.0.0.1:%d", port)))
	l.Must(l.Server.StartController(l.controller, nil, "--config="+file))
	l.mountCertificate(certs)

	l.await("Kueue's webhooks", func() string { // and its definitions, which are not served at once
		l.renew()
		queues := l.Block("kind: ResourceFlavor") + "\n---\n" + l.Block("metadata: {name: memory}")
		if err := l.Apply.Apply(l.Context(), []byte(queues)); err != nil {
			return err.Error()
		}
		return ""
	})
}

// transformations are those of a Configuration.
func (l *lab) transformations(configuration string) []any {
	l.Helper()
	objects, err := install.Objects([]byte(configuration))
	l.Must(err)
	list, _, err := unstructured.NestedSlice(objects[0].Object, "resources", "transformations")
	l.Must(err)
	return list
}

// mountCertificate writes the Secret that Kueue fills into the folder from which it reads it, as a kubelet does.
func (l *lab) mountCertificate(dir string) {
	l.Helper()
	l.await("Kueue's certificate", func() string {
		secret, err := l.Server.Client.CoreV1().Secrets(system).Get(l.Context(), webhookSecret, metav1.GetOptions{})
		l.Must(err)
		if len(secret.Data["tls.crt"]) == 0 {
			return "the Secret is empty"
		}
		for _, name := range []string{"ca.crt", "tls.key", "tls.crt"} {
			l.Must(os.WriteFile(filepath.Join(dir, name), secret.Data[name], 0o600))
		}
		return ""
	})
}

// awaitQueue returns once a ClusterQueue has so many workloads, and so much of a resource in use.
func (l *lab) awaitQueue(queue string, admitted, pending int64, resource, used string) {
	l.Helper()
	want := fmt.Sprintf("%d admitted, %d pending, %s of %s", admitted, pending, used, resource)
	l.await(queue+": "+want, func() string {
		u := l.object("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: " + queue + "}}")
		status, _, _ := unstructured.NestedMap(u.Object, "status")
		has, _, _ := unstructured.NestedInt64(status, "admittedWorkloads")
		waits, _, _ := unstructured.NestedInt64(status, "pendingWorkloads")
		flavors, _, _ := unstructured.NestedSlice(status, "flavorsUsage")
		total := "none"
		for _, f := range flavors {
			resources, _, _ := unstructured.NestedSlice(f.(map[string]any), "resources")
			for _, r := range resources {
				if r := r.(map[string]any); r["name"] == resource {
					total = fmt.Sprint(r["total"])
				}
			}
		}
		if has != admitted || waits != pending || total == "none" || quantity(total) != quantity(used) {
			return fmt.Sprintf("%d admitted, %d pending, %s of %s; want %s", has, waits, total, resource, want)
		}
		return ""
	})
}

// awaitHeld returns once Kueue gives the text as a reason why it does not admit a workload.
func (l *lab) awaitHeld(namespace, text string) {
	l.Helper()
	l.await("Kueue's reason: "+text, func() string {
		all, err := l.Server.Kubectl(l.Context(), "get", "workloads.kueue.x-k8s.io", "--namespace="+namespace,
			"--output=jsonpath={.items[*].status.conditions[*].message}")
		l.Must(err)
		if !strings.Contains(all, text) {
			return all
		}
		return ""
	})
}

// endAll ends all pods of a namespace, also those that are made meanwhile.
func (l *lab) endAll(namespace string) {
	l.Helper()
	l.await("the end of the pods", func() string {
		pods := l.pods(namespace)
		for _, p := range pods {
			l.end(p)
		}
		if len(pods) > 0 {
			return fmt.Sprintf("%d pods", len(pods))
		}
		return ""
	})
}

// exceeded tries a pod, and returns "" if gpuslice's quota has no room for it.
func (l *lab) exceeded(namespace, pod string) string {
	l.Helper()
	switch err := l.create(namespace, "beyond", pod); {
	case err == nil:
		l.Must(l.Server.Client.CoreV1().Pods(namespace).Delete(l.Context(), "beyond", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
		return "a further pod is created"
	case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota"):
		return err.Error()
	}
	return ""
}
