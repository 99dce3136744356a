package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gpuslice/gpuslice/test/cluster"
)

// TestArgoWorkflows follows the page with Argo's workflow controller. Nothing runs in the pods, and nothing reports what steps wrote,
// so no workflow ends.
func TestArgoWorkflows(t *testing.T) {
	l := start(t, "deploy/recipes/argo-workflows.md",
		cluster.Controller{Name: "argo-workflows", Module: "github.com/argoproj/argo-workflows/v4", Package: "/cmd/workflow-controller"})
	const team, given = "workflows", "main: 5Gi of " + shared
	l.govern(l.Block("names: [" + team + "]"))
	l.define("manifests/base/crds/minimal")
	l.Must(l.Server.Namespace(t.Context(), "argo", nil))
	l.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: workflow-controller-configmap, namespace: argo}, " +
		`data: {metricsConfig: "{enabled: false}"}}`)
	page := l.Block("kind: Workflow\n")
	l.Must(l.Server.StartController(l.controller, []string{"LEADER_ELECTION_DISABLE=true"},
		"--namespace=argo", "--executor-image=quay.io/argoproj/argoexec:v4.0.5"))

	for n := range 12 {
		l.Must(l.create(team, fmt.Sprint("train-", n), page))
	}
	l.awaitBound(team, given, 8)
	l.await("the steps beyond the nodes", func() string { return other(len(l.pods(team)), 12) })
	l.Must(l.create(team, "beyond", page))
	l.awaitStep(team, "beyond", "Pending", "exceeded quota")
	l.end(l.pods(team)[0])
	l.await("the denied step's pod, once another step has ended", func() string {
		ofBeyond := func(p corev1.Pod) bool { return p.Labels["workflows.argoproj.io/workflow"] == "beyond" }
		if !slices.ContainsFunc(l.pods(team), ofBeyond) {
			return "it is not tried again"
		}
		return ""
	})

	l.Must(l.create(team, "large", strings.Replace(page, `"5Gi"`, `"500Gi"`, 1)))
	l.awaitStep(team, "large", "Error", "500Gi")
	all := strings.NewReplacer("    metadata: {labels: {gpuslice.dev/memory: \"5Gi\"}}\n", "",
		"resources: {limits: {"+whole+": 1}}", "resources: {}",
		"  entrypoint:", "  podMetadata: {labels: {gpuslice.dev/memory: \"5Gi\"}}\n  entrypoint:").Replace(page)
	l.Must(l.create(team, "labeled", all))
	l.awaitStep(team, "labeled", "Error", "which of its containers")
}

// awaitStep returns once the one step of a workflow is in the phase, for a reason that holds the text.
func (l *lab) awaitStep(namespace, workflow, phase, reason string) {
	l.Helper()
	l.await(fmt.Sprintf("workflow %s: %s %s", workflow, phase, reason), func() string {
		const manifest = "{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: %s, namespace: %s}}"
		u := l.object(fmt.Sprintf(manifest, workflow, namespace))
		steps, _, _ := unstructured.NestedMap(u.Object, "status", "nodes")
		for _, step := range steps {
			s := step.(map[string]any)
			text := fmt.Sprint(s["message"])
			if s["phase"] != phase || !strings.Contains(text, reason) {
				return fmt.Sprintf("%s: %s", s["phase"], text)
			}
			l.Logf("%s: %s", phase, text)
			return ""
		}
		return "no step"
	})
}

func other(got, want int) string {
	if got == want {
		return ""
	}
	return fmt.Sprintf("%d, want %d", got, want)
}
