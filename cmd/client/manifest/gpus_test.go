package manifest

import (
	"encoding/json"
	"testing"
)

func TestNamesGPU(t *testing.T) {
	for name, c := range map[string]struct {
		kind, raw string
		want      bool
	}{
		"a step of a task": {"Task", `{"spec":{"steps":[{"computeResources":{"limits":{"nvidia.com/gpu":"1"}}}]}}`, true},
		"a device of a machine": {"VirtualMachine",
			`{"spec":{"template":{"spec":{"domain":{"devices":{"gpus":[{"deviceName":"nvidia.com/GP102"}]}}}}}}`, true},
		"an instance":                  {"Engine", `{"spec":{"resources":{"requests":{"nvidia.com/mig-1g.10gb":"1"}}}}`, true},
		"another system's":             {"Engine", `{"spec":{"resources":{"limits":{"k8s.amazonaws.com/vgpu":"1"}}}}`, true},
		"memory alone":                 {"Task", `{"spec":{"steps":[{"computeResources":{"limits":{"memory":"1Gi"}}}]}}`, false},
		"a network card":               {"Engine", `{"spec":{"resources":{"limits":{"nvidia.com/hostdev":"1"}}}}`, false},
		"a quota":                      {"ResourceQuota", `{"spec":{"hard":{"limits":{"nvidia.com/gpu":"1"}}}}`, false},
		"a word that is no resource's": {"Dashboard", `{"spec":{"gpus":["all"],"limits":["nvidia.com/gpu"]}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NamesGPU(Object{Kind: c.kind, Raw: json.RawMessage(c.raw)}); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestTemplateReadable(t *testing.T) {
	for spec, want := range map[string]bool{
		`{"containers":[{"name":"a","image":{"repository":"x"}}]}`:                           false,
		`{"containers":[{"name":"a","image":"x","env":{"A":"b"}}]}`:                          false,
		`{"containers":[{"name":"a","image":"x","resources":{"limits":{"memory":"8GB?"}}}]}`: true,
		`{"containers":[{"name":"a","image":"x","other":{"field":1}}]}`:                      true,
	} {
		if got := (Template{spec: json.RawMessage(spec)}).Readable(); got != want {
			t.Errorf("%s: %t", spec, got)
		}
	}
}
