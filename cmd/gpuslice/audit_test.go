package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// TestAuditKeepsReports: audit -A deletes the Reports of namespaces that it need not audit any more, and neither that of one whose
// policy cannot be used, nor the reason.
func TestAuditKeepsReports(t *testing.T) {
	live := t.TempDir()
	broken := `apiVersion: v1
kind: ConfigMap
metadata: {name: notebooks, namespace: gpuslice-system, labels: {gpuslice.dev/policy: "true"}}
data: {policy.yaml: "apiVersion: gpuslice.dev/v1\nnamespaces: {names: [team-notebooks]}\nmode: transparentt\n"}
`
	if err := os.WriteFile(filepath.Join(live, "broken.yaml"), []byte(broken), 0o644); err != nil {
		t.Fatal(err)
	}
	server := serve(t, liveWorld{folders: []string{"testdata/live", live}, nodes: "testdata/cluster/nodes.yaml", apis: []string{"openreports.io/v1alpha1"}})
	for _, namespace := range []string{"team-a", "team-notebooks"} {
		r := &unstructured.Unstructured{}
		r.SetAPIVersion("openreports.io/v1alpha1")
		r.SetKind("Report")
		r.SetNamespace(namespace)
		r.SetName("gpuslice-audit")
		r.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "gpuslice-audit"})
		if err := server.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	run(t.Context(), []string{"gpuslice", "audit", "-A", "--reports"}, streamsTo(&out, &errs))
	if want := "namespace team-notebooks: its policy cannot be used: "; !strings.Contains(errs.String(), want) {
		t.Errorf("no %q in %s", want, errs.String())
	}
	client, err := dynamic.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	left, err := client.Resource(schema.GroupVersionResource{Group: "openreports.io", Version: "v1alpha1", Resource: "reports"}).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(left.Items) != 1 || left.Items[0].GetNamespace() != "team-notebooks" {
		t.Errorf("%d reports are left: %v", len(left.Items), left.Items)
	}
}
