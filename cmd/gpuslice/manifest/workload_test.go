package manifest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGraft(t *testing.T) {
	workload := json.RawMessage(`{"kind":"Job","metadata":{"name":"j"},"spec":{"big":12345678901234567890,"template":{"future":true,
		"metadata":{"name":"kept","labels":{"a":"b"}},"spec":{"containers":[{"name":"c"}]}}}}`)
	found, ok := TemplateOf(workload)
	if !ok {
		t.Fatal("no template found")
	}
	pod, err := found.Pod(Object{Name: "j"})
	if err != nil {
		t.Fatal(err)
	}
	var metadata struct{ Name, GenerateName string }
	if err := json.Unmarshal(member(pod, "metadata"), &metadata); err != nil {
		t.Fatal(err)
	}
	if metadata.Name != "" || metadata.GenerateName != "j-" {
		t.Errorf("the pod's names: %+v", metadata)
	}
	same, err := found.Graft(workload, pod)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(canonical(t, workload), canonical(t, same)); diff != "" {
		t.Errorf("a pod that did not change changes its workload (-want +got):\n%s", diff)
	}
}

// canonical is raw with sorted keys, its numbers as they are written.
func canonical(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return string(raw)
	}
	for key, value := range fields {
		fields[key] = json.RawMessage(canonical(t, value))
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTemplateOfOtherObjects(t *testing.T) {
	for name, raw := range map[string]string{
		"a template that is null":        `{"spec":{"template":null}}`,
		"a template of something else":   `{"spec":{"template":{"spec":{"replicas":1}}}}`,
		"a template without containers":  `{"spec":{"template":{"spec":{"containers":[]}}}}`,
		"containers that are a map":      `{"spec":{"template":{"spec":{"containers":{"a":1}}}}}`,
		"a spec that is text":            `{"spec":"none"}`,
		"a list instead of a job":        `{"spec":{"jobTemplate":[]}}`,
		"no object at all":               `[]`,
		"nothing that could be a member": `1`,
	} {
		t.Run(name, func(t *testing.T) {
			if found, ok := TemplateOf(json.RawMessage(raw)); ok {
				t.Errorf("found %+v", found)
			}
		})
	}
}

// TestTemplatesIn grafts each template where it was found, whatever the keys on its path.
func TestTemplatesIn(t *testing.T) {
	workload := json.RawMessage(`{"kind":"Groups","spec":{"a/b~c":{"template":{"spec":{"containers":[{"name":"one"}]}}},"list":[1,{"spec":{"containers":[{"name":"two"}]}}],"none":null}}`)
	found := TemplatesIn(workload)
	if len(found) != 2 {
		t.Fatalf("found %d templates", len(found))
	}
	for _, f := range found {
		pod, err := f.Pod(Object{Name: "g"})
		if err != nil {
			t.Fatal(err)
		}
		same, err := f.Graft(workload, pod)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(canonical(t, workload), canonical(t, same)); diff != "" {
			t.Errorf("a template that did not change changes its workload (-want +got):\n%s", diff)
		}
	}
	if whole := TemplatesIn(json.RawMessage(`{"kind":"Pod","spec":{"containers":[{"name":"c"}]}}`)); len(whole) > 0 {
		t.Error("a pod is taken for a template")
	}
}
