package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGraft(t *testing.T) {
	workload := json.RawMessage(`{"kind":"Job","metadata":{"name":"j"},"spec":{"big":12345678901234567890,"template":{"future":true,
		"metadata":{"name":"kept","labels":{"a":"b"}},"spec":{"containers":[{"name":"c"}]}}}}`)
	all, err := Templates(Object{APIVersion: "batch/v1", Kind: "Job", Raw: workload})
	if err != nil || len(all) != 1 {
		t.Fatalf("found %v, %v", all, err)
	}
	found := all[0]
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

func TestNoTemplates(t *testing.T) {
	for name, raw := range map[string]string{
		"a template that is null":        `{"spec":{"template":null}}`,
		"a template of something else":   `{"spec":{"template":{"spec":{"replicas":1}}}}`,
		"a template without containers":  `{"spec":{"template":{"spec":{"containers":[]}}}}`,
		"containers that are a map":      `{"spec":{"template":{"spec":{"containers":{"a":1}}}}}`,
		"containers that are text":       `{"spec":{"template":{"spec":{"containers":["a"]}}}}`,
		"a spec that is text":            `{"spec":"none"}`,
		"a list instead of a job":        `{"spec":{"jobTemplate":[]}}`,
		"no object at all":               `[]`,
		"nothing that could be a member": `1`,
		"a pattern of devices":           `{"spec":{"rules":[{"validate":{"pattern":{"spec":{"containers":[{"name":"*","resources":{"limits":{"nvidia.com/gpu":"*"}}}]}}}}]}}`,
		"a patch of containers":          `{"spec":{"rules":[{"mutate":{"patch":{"spec":{"containers":[{"(name)":"*","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}}}]}}`,
		"values of a chart":              `{"spec":{"values":{"resources":{"limits":{"nvidia.com/gpu":1}}}}}`,
		"a pattern of containers":        `{"spec":{"rules":[{"validate":{"pattern":{"spec":{"containers":[{"name":"*","image":"*:*"}]}}}}]}}`,
		"overrides of containers":        `{"spec":{"podSpecOverrides":[{"containers":[{"name":"trainer","env":[]}]}]}}`,
		"a schema of containers":         `{"spec":{"schema":{"properties":{"spec":{"properties":{"containers":{"items":{"type":"object"}}}}}}}}`,
		"requests of storage and memory": `{"spec":{"resources":{"requests":{"storage":"1Gi","memory":"1Gi"}}}}`,
		"what a status repeats":          `{"status":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			found, err := Templates(Object{APIVersion: "example.com/v1", Kind: "Any", Raw: json.RawMessage(raw)})
			if err != nil || len(found) > 0 {
				t.Errorf("found %+v, %v", found, err)
			}
		})
	}
}

// TestTemplates finds the templates of kinds that Kubernetes does not have, and grafts each where it was found, whatever the keys
// on its path.
func TestTemplates(t *testing.T) {
	const spec = `{"containers":[{"image":"i","name":"c","resources":{"limits":{"nvidia.com/gpu":12345678901234567890}}}]}`
	for _, c := range []struct {
		name, kind, raw string
		want            []string
	}{
		{"RayCluster", "RayCluster",
			`{"spec":{"headGroupSpec":{"template":{"spec":` + spec + `}},"workerGroupSpecs":[{"template":{"spec":` + spec + `}}]}}`,
			[]string{"spec.headGroupSpec.template", "spec.workerGroupSpecs[0].template"}},
		{"PyTorchJob", "PyTorchJob",
			`{"spec":{"pytorchReplicaSpecs":{"Master":{"template":{"spec":` + spec + `}},"Worker":{"template":{"spec":` + spec + `}}}}}`,
			[]string{"spec.pytorchReplicaSpecs.Master.template", "spec.pytorchReplicaSpecs.Worker.template"}},
		{"a job of jobs", "JobSet", `{"spec":{"replicatedJobs":[{"template":{"spec":{"template":{"spec":` + spec + `}}}}]}}`,
			[]string{"spec.replicatedJobs[0].template.spec.template"}},
		{"Notebook", "Notebook", `{"spec":{"template":{"spec":` + spec + `}}}`, []string{"spec.template"}},
		{"a predictor, which is a pod's spec", "InferenceService", `{"spec":{"predictor":` + spec + `}}`, []string{"spec.predictor"}},
		{"a model, which its controller completes", "InferenceService",
			`{"spec":{"predictor":{"model":{"modelFormat":{"name":"pytorch"},"resources":{"limits":{"nvidia.com/gpu":"1"}}}}}}`,
			[]string{"spec.predictor.model"}},
		{"a trainer", "TrainJob", `{"spec":{"trainer":{"resourcesPerNode":{"limits":{"nvidia.com/gpu":1}}}}}`, []string{"spec.trainer"}},
		{"keys with slashes and tildes", "Groups",
			`{"spec":{"a/b~c":{"podTemplate":{"spec":` + spec + `}},"list":[1,{"spec":` + spec + `}],"none":null}}`,
			[]string{"spec.a/b~c.podTemplate", "spec.list[1]"}},
		{"containers without a name", "Service", `{"spec":{"template":{"spec":{"containers":[{"image":"i"}]}}}}`, []string{"spec.template"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Object{APIVersion: "example.com/v1", Kind: c.kind, Name: "g", Raw: json.RawMessage(c.raw)}
			found, err := Templates(o)
			if err != nil {
				t.Fatal(err)
			}
			var paths []string
			for _, f := range found {
				paths = append(paths, f.Path())
				pod, err := f.Pod(o)
				if err != nil {
					t.Fatal(err)
				}
				same, err := f.Graft(o.Raw, pod)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(canonical(t, o.Raw), canonical(t, same)); diff != "" {
					t.Errorf("a template that did not change changes its workload (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(c.want, paths); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if whole, err := Templates(
		Object{APIVersion: "v1", Kind: "Pod", Raw: json.RawMessage(`{"kind":"Pod","spec":` + spec + `}`)}); err != nil || len(whole) > 0 {
		t.Error("a pod is taken for a template")
	}
}

func TestTemplatesAreBounded(t *testing.T) {
	const template = `{"spec":{"containers":[{"name":"c","image":"i"}]}}`
	many := `{"spec":[` + strings.Repeat(template+",", maxTemplates) + template + `]}`
	if _, err := Templates(Object{APIVersion: "example.com/v1", Kind: "Any", Raw: json.RawMessage(many)}); err == nil {
		t.Error("more templates than the bound are read")
	}
	deep := strings.Repeat(`{"a":`, 5_000) + template + strings.Repeat(`}`, 5_000)
	if found, err := Templates(Object{APIVersion: "example.com/v1", Kind: "Any", Raw: json.RawMessage(deep)}); err != nil || len(found) > 0 {
		t.Errorf("found %d below the bound of depth, %v", len(found), err)
	}
}

// TestInheritedLabels: the controllers of some kinds give their pods the labels of the object, and the template's own win.
func TestInheritedLabels(t *testing.T) {
	const spec = `{"containers":[{"name":"c","image":"i"}]}`
	for _, c := range []struct{ name, kind, raw, want string }{
		{"Notebook", "Notebook",
			`{"metadata":{"labels":{"a":"object","b":"object"}},"spec":{"template":{"metadata":{"labels":{"a":"template"}},"spec":` + spec + `}}}`,
			`{"a":"template","b":"object"}`},
		{"predictor", "InferenceService", `{"metadata":{"labels":{"a":"object","b":"object"}},"spec":{"predictor":{"labels":{"a":"predictor"},"containers":[{"name":"c","image":"i"}]}}}`, `{"a":"predictor","b":"object"}`},
		{"RayCluster", "RayCluster", `{"metadata":{"labels":{"a":"object"}},"spec":{"headGroupSpec":{"template":{"spec":` + spec + `}}}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Object{APIVersion: "example.com/v1", Kind: c.kind, Name: "o", Raw: json.RawMessage(c.raw)}
			found, err := Templates(o)
			if err != nil || len(found) != 1 {
				t.Fatalf("found %v, %v", found, err)
			}
			pod, err := found[0].Pod(o)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(member(member(pod, "metadata"), "labels")); got != c.want {
				t.Errorf("labels %s, want %s", got, c.want)
			}
		})
	}
}

// TestSurroundings: what a custom resource has beside its container, or for all of its pods, is the pod's.
func TestSurroundings(t *testing.T) {
	t.Parallel()
	const container = `{"image":"i","resources":{"limits":{"nvidia.com/gpu":1}}}`
	for _, c := range []struct{ name, kind, raw, labels, spec string }{
		{"KServe's model", "InferenceService", `{"spec":{"predictor":{"nodeSelector":{"a":"b"},"tolerations":[{"key":"t"}],"model":` + container + `}}}`,
			"", `{"nodeSelector":{"a":"b"},"tolerations":[{"key":"t"}]}`},
		{"Argo's template", "Workflow", `{"spec":{"templates":[{"name":"m","nodeSelector":{"a":"b"},"schedulerName":"s","container":` + container + `}]}}`,
			"", `{"nodeSelector":{"a":"b"},"schedulerName":"s"}`},
		{"Argo's workflow, where the template has its own", "Workflow",
			`{"spec":{"nodeSelector":{"w":"w"},"tolerations":[{"key":"w"}],"templates":[{"nodeSelector":{"t":"t"},"container":` + container + `}]}}`,
			"", `{"nodeSelector":{"t":"t"},"tolerations":[{"key":"w"}]}`},
		{"a WorkflowTemplate", "WorkflowTemplate", `{"spec":{"nodeSelector":{"w":"w"},"templates":[{"container":` + container + `}]}}`,
			"", `{"nodeSelector":{"w":"w"}}`},
		{"a workflow in a CronWorkflow", "CronWorkflow",
			`{"spec":{"workflowSpec":{"podMetadata":{"labels":{"a":"w"}},"affinity":{},"templates":[{"script":` + container + `}]}}}`,
			`{"a":"w"}`, `{"affinity":{}}`},
		{"defaults of templates", "Workflow", `{"spec":{"podMetadata":{"labels":{"a":"w","b":"w","c":"w"}},"nodeSelector":{"w":"w"},
			"templateDefaults":{"nodeSelector":{"d":"d"},"metadata":{"labels":{"b":"d","c":"d"}}},
			"templates":[{"metadata":{"labels":{"c":"t"}},"container":` + container + `}]}}`, `{"a":"w","b":"d","c":"t"}`, `{"nodeSelector":{"d":"d"}}`},
		{"containers of a set", "Workflow", `{"spec":{"templates":[{"metadata":{"labels":{"a":"t"}},"nodeSelector":{"a":"b"},
			"containerSet":{"containers":[{"name":"c","image":"i"}]}}]}}`, `{"a":"t"}`, `{"nodeSelector":{"a":"b"}}`},
		{"a field of another shape", "Model", `{"spec":{"nodeSelector":"gpu","tolerations":{"a":"b"},"engine":` + container + `}}`, "", `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := Object{APIVersion: "example.com/v1", Kind: c.kind, Name: "o", Raw: json.RawMessage(c.raw)}
			found, err := Templates(o)
			if err != nil || len(found) != 1 {
				t.Fatalf("found %v, %v", found, err)
			}
			pod, err := found[0].Pod(o)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(member(member(pod, "metadata"), "labels")); got != c.labels {
				t.Errorf("labels %s, want %s", got, c.labels)
			}
			var spec map[string]json.RawMessage
			if err := json.Unmarshal(member(pod, "spec"), &spec); err != nil {
				t.Fatal(err)
			}
			delete(spec, "containers")
			got, err := json.Marshal(spec)
			if err != nil || string(got) != c.spec {
				t.Errorf("beside the containers %s, %v, want %s", got, err, c.spec)
			}
			same, err := found[0].Graft(o.Raw, pod)
			if diff := cmp.Diff(canonical(t, o.Raw), canonical(t, same)); diff != "" || err != nil {
				t.Errorf("the object changes: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
