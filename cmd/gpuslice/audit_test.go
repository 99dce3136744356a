package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/program"
	"github.com/gpuslice/gpuslice/test/commandline"
)

// sharedBudget are namespaces under audit that share a budget of one GPU.
const sharedBudget = `apiVersion: v1
kind: Namespace
metadata: {name: team-a}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-b}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-c}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: teams, namespace: gpuslice-system, labels: {gpuslice.dev/policy: "true"}}
data:
  policy.yaml: |
    apiVersion: gpuslice.dev/v1
    enforcementMode: audit
    strategies: [exclusive]
    quota: {gpus: 1, budget: all}
    namespaces: {names: [team-a, team-b, team-c]}
`

// auditOf serves namespaces that share a budget, with pods, and returns how many of each namespace's pods enforce would deny, by rule.
// requested is called for each request.
func auditOf(t *testing.T, requested func(*url.URL), pods ...map[string]any) map[string]map[string]int {
	t.Helper()
	live := t.TempDir()
	if err := os.WriteFile(filepath.Join(live, "system.yaml"), []byte(sharedBudget), 0o644); err != nil {
		t.Fatal(err)
	}
	server := commandline.Serve(t, commandline.World{Folders: []string{live}, Nodes: "testdata/cluster/nodes.yaml", Requested: requested})
	for _, pod := range pods {
		if err := server.Put(&unstructured.Unstructured{Object: pod}); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	program.Run(t.Context(), []string{"gpuslice", "audit", "-A", "-o", "json"}, commandline.StreamsTo(&out, &errs))
	var printed struct {
		Items []struct {
			Namespace string
			Groups    []struct {
				IfEnforced, Rule string
				Count            int
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &printed); err != nil {
		t.Fatalf("%v: %s%s", err, out.String(), errs.String())
	}
	denied := map[string]map[string]int{}
	for _, item := range printed.Items {
		denied[item.Namespace] = map[string]int{}
		for _, g := range item.Groups {
			if g.IfEnforced == "denied" {
				denied[item.Namespace][g.Rule] = g.Count
			}
		}
	}
	return denied
}

// livingPod is a pod that requests a whole GPU.
func livingPod(namespace, name string, second int) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"namespace": namespace, "name": name, "uid": namespace + name,
			"creationTimestamp": fmt.Sprintf("2026-01-01T00:00:%02dZ", second)},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "busybox", "env": []any{},
			"resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "1"}}}}}}
}

// TestAuditOfSharedBudget: namespaces that share a budget are judged together, and the pods of each are read once.
func TestAuditOfSharedBudget(t *testing.T) {
	var mu sync.Mutex
	lists := map[string]int{}
	denied := auditOf(t, func(u *url.URL) {
		if namespace, ok := strings.CutSuffix(strings.TrimPrefix(u.Path, "/api/v1/namespaces/"), "/pods"); ok {
			mu.Lock()
			defer mu.Unlock()
			lists[namespace]++
		}
	}, livingPod("team-a", "young", 2), livingPod("team-c", "old", 1))
	if diff := cmp.Diff(map[string]map[string]int{"team-a": {"quota": 1}, "team-b": {}, "team-c": {}}, denied); diff != "" {
		t.Errorf("of two pods of which the budget has room for the older (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"team-a": 1, "team-b": 1, "team-c": 1}, lists); diff != "" {
		t.Errorf("how often pods are listed (-want +got)\n%s", diff)
	}
}

// TestAuditOfLargePod: a pod that the webhook denies by its size alone is denied here too, and takes no room. Without a GPU, the webhook is
// not asked.
func TestAuditOfLargePod(t *testing.T) {
	large, without := livingPod("team-a", "large", 1), livingPod("team-b", "without", 1)
	for _, pod := range []map[string]any{large, without} {
		container := pod["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		for i := range 20_001 {
			container["env"] = append(container["env"].([]any), map[string]any{"name": fmt.Sprint("V", i)})
		}
	}
	delete(without["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any), "resources")
	denied := auditOf(t, nil, large, without, livingPod("team-b", "young", 2))
	if diff := cmp.Diff(map[string]map[string]int{"team-a": {"size": 1}, "team-b": {}, "team-c": {}}, denied); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
