package scenarios

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
)

func TestPodDiff(t *testing.T) {
	t.Parallel()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(s Scenario) bool { _, ok := s.Want["pod.diff"]; return !ok })

	t.Run("determines the pod of every case", func(t *testing.T) {
		t.Parallel()
		for _, s := range all {
			diff, err := PodDiff(s.Pod, mutated(t, s))
			if err != nil {
				t.Fatal(err)
			}
			if diff != s.Want["pod.diff"] {
				t.Errorf("%s: the pod that want/pod.diff makes differs from pod.yaml by\n%s\nwant\n%s", s.Name, diff, s.Want["pod.diff"])
			}
		}
	})

	t.Run("changes with every field of the pod", func(t *testing.T) {
		t.Parallel()
		if len(all) == 0 {
			t.Fatal("no case wants a diff")
		}
		for n := 0; n < len(all); n += 24 { // each has some 150 changes to try, in a quarter of a second
			s := all[n]
			tree := mutated(t, s)
			eachChange(tree, s.Name, func(what string) {
				if diff, err := PodDiff(s.Pod, tree); err != nil || diff == s.Want["pod.diff"] {
					t.Errorf("%s leaves the diff as it is (%v)", what, err)
				}
			})
		}
	})

	t.Run("leaves out annotations for machines and the guard's own fields", func(t *testing.T) {
		t.Parallel()
		pod := []byte(`{"metadata":{"name":"a"},"spec":{"initContainers":[{"name":"` + limits.GuardContainer + `","image":"old"}]}}`)
		after := map[string]any{
			"metadata": map[string]any{"name": "a", "annotations": map[string]any{api.AnnotationPromise: "p", api.AnnotationPlanned: "q"}},
			"spec":     map[string]any{"initContainers": []any{map[string]any{"name": limits.GuardContainer, "image": "new"}}},
		}
		if diff, err := PodDiff(pod, after); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

func mutated(t *testing.T, s Scenario) map[string]any {
	t.Helper()
	text, err := s.MutatedPod()
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	return tree
}

// eachChange calls try after each single change of a tree that is possible: a value other, a key more, an entry less.
// Afterwards the tree is as it was. Of the guard's containers nothing but the name is compared.
func eachChange(node any, path string, try func(what string)) {
	switch n := node.(type) {
	case map[string]any:
		if n["name"] != limits.CheckContainer && n["name"] != limits.GuardContainer {
			n["added"] = "x"
			try("a key more in " + path)
			delete(n, "added")
		}
		for key, value := range n {
			at := path + "." + key
			delete(n, key)
			try("no " + at)
			if _, nested := children(value); !nested {
				n[key] = fmt.Sprint(value, "x")
				try("another " + at)
			}
			n[key] = value
			eachChange(value, at, try)
		}
	case []any:
		for i, value := range n {
			at := fmt.Sprintf("%s[%d]", path, i)
			n[i] = "x"
			try("another " + at)
			n[i] = value
			eachChange(value, at, try)
		}
	}
}

func children(node any) (n int, nested bool) {
	switch v := node.(type) {
	case map[string]any:
		return len(v), true
	case []any:
		return len(v), true
	}
	return 0, false
}

func TestMutatedPod(t *testing.T) {
	t.Parallel()
	const pod = "metadata:\n  name: a\nspec:\n  nodeName: node\n"
	for _, c := range []struct {
		name, diff, want, problem string
	}{
		{name: "an empty diff leaves the pod", want: pod},
		{name: "a line is added", diff: "@@ -3,2 +3,3 @@\n spec:\n+  hostIPC: true\n   nodeName: node\n",
			want: "metadata:\n  name: a\nspec:\n  hostIPC: true\n  nodeName: node\n"},
		{name: "a hunk without context", diff: "@@ -4,0 +5 @@\n+status: {}\n", want: pod + "status: {}\n"},
		{name: "a line is removed", diff: "@@ -4 +3,0 @@\n-  nodeName: node\n", want: "metadata:\n  name: a\nspec:\n"},
		{name: "another pod", diff: "@@ -3 +3 @@\n-status:\n+spec:\n", problem: "line 3 is not"},
		{name: "a hunk at another line", diff: "@@ -2 +2 @@\n-spec:\n+status:\n", problem: "line 2 is not"},
		{name: "a hunk past the end", diff: "@@ -9 +9 @@\n+status: {}\n", problem: "begins at line 9"},
		{name: "no hunk", diff: "@@ nothing @@\n", problem: "hunk header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			object, err := yaml.YAMLToJSON([]byte(pod))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Scenario{Pod: object, Want: map[string]string{"pod.diff": c.diff}}.MutatedPod()
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("error %v, want %q", err, c.problem)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, c.want)
			}
		})
	}
}

func TestPodYAML(t *testing.T) {
	t.Parallel()
	tree := map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{
			"args": []any{"a\nb"}, "name": "train",
			"env":       []any{map[string]any{"value": "1", "name": "A"}},
			"resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "1"}}}}}}
	const want = `spec:
  containers:
  - name: train
    args:
    - |-
      a
      b
    env:
    - {name: A, value: "1"}
    resources:
      limits: {nvidia.com/gpu: "1"}
`
	got, err := PodYAML(tree)
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	var back map[string]any
	if err := yaml.Unmarshal([]byte(got), &back); err != nil {
		t.Fatal(err)
	}
	if a, b := asJSON(t, tree), asJSON(t, back); a != b {
		t.Errorf("read again it is %s, want %s", b, a)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
