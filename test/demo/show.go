package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// PlannedOf is the plan in a pod's annotation; nil where there is none.
func PlannedOf(pod *unstructured.Unstructured) (*promise.Planned, error) {
	text, ok := pod.GetAnnotations()[api.AnnotationPlanned]
	if !ok {
		return nil, nil
	}
	var p promise.Planned
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("read %s: %w", api.AnnotationPlanned, err)
	}
	return &p, nil
}

// PrintPlanned prints the plan of a pod.
func PrintPlanned(p promise.Planned, w io.Writer) {
	fmt.Fprintf(w, "    planned: %s on pool %s, enforcement %s\n", p.Strategy, p.Pool, p.Tier)
	for _, c := range p.Containers {
		fmt.Fprintf(w, "      %s: %s, held by %s\n", c.Name, c.Memory, tierList(c.Tiers))
	}
	for _, n := range p.Notes {
		fmt.Fprintf(w, "      note: %s\n", n)
	}
}

func tierList(tiers []api.Tier) string {
	if len(tiers) == 0 {
		return "nothing"
	}
	var names []string
	for _, t := range tiers {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// Diff prints how a pod changed.
func Diff(before, after *unstructured.Unstructured, w io.Writer) error {
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(readable(before)), B: difflib.SplitLines(readable(after)), Context: 1})
	if err != nil {
		return fmt.Errorf("compare pods: %w", err)
	}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "+++") {
			fmt.Fprintln(w, "    "+line)
		}
	}
	return nil
}

// readable is a pod as YAML without what the server adds to every pod.
func readable(u *unstructured.Unstructured) string {
	u = u.DeepCopy()
	for _, path := range [][]string{{"status"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"},
		{"metadata", "managedFields"}, {"metadata", "namespace"}, {"metadata", "generation"}} {
		unstructured.RemoveNestedField(u.Object, path...)
	}
	annotations := u.GetAnnotations()
	if promised, ok := annotations[api.AnnotationPromise]; ok {
		annotations[api.AnnotationPromise] = fmt.Sprintf("(%d bytes: what the pod was given)", len(promised))
		annotations[api.AnnotationPlanned] = "(see below)"
		u.SetAnnotations(annotations)
	}
	withoutToken(u.Object["spec"])
	guardInShort(u)
	b, err := yaml.Marshal(u.Object)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// guardInShort keeps the parts of the guard's containers that distinguish them; kubectl shows the rest.
func guardInShort(u *unstructured.Unstructured) {
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "initContainers")
	for i, e := range list {
		if c, ok := e.(map[string]any); ok && strings.HasPrefix(fmt.Sprint(c["name"]), "gpuslice-") {
			short := map[string]any{"name": c["name"], "image": c["image"], "args": c["args"]}
			if c["restartPolicy"] != nil {
				short["restartPolicy"] = c["restartPolicy"]
			}
			list[i] = short
		}
	}
	if len(list) > 0 {
		_ = unstructured.SetNestedSlice(u.Object, list, "spec", "initContainers")
	}
}

// withoutToken removes the volume of the pod's token and its mounts, whose names differ from pod to pod.
func withoutToken(node any) {
	switch n := node.(type) {
	case map[string]any:
		for key, value := range n {
			if list, ok := value.([]any); ok {
				var kept []any
				for _, e := range list {
					if m, ok := e.(map[string]any); ok && strings.HasPrefix(fmt.Sprint(m["name"]), "kube-api-access-") {
						continue
					}
					kept = append(kept, e)
				}
				if n[key] = kept; len(kept) == 0 {
					delete(n, key)
				}
			}
			withoutToken(n[key])
		}
	case []any:
		for _, e := range n {
			withoutToken(e)
		}
	}
}

// PrintWarnings prints warnings below a pod.
func PrintWarnings(texts []string, w io.Writer) {
	for _, text := range texts {
		fmt.Fprintf(w, "    warning: %s\n", text)
	}
}
