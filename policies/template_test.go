package policies_test

import (
	"encoding/json"
	"testing"

	"github.com/gpuslice/gpuslice/policies"
)

func TestCheckTemplate(t *testing.T) {
	// What a label means, every GPU container of the pod, is held against what the template has for each.
	t.Run("is rewritten only where one label has the whole request", func(t *testing.T) {
		in, _ := brought(t, "templates: rewrite\naccept: [fractional-quantity]\n")
		for name, c := range map[string]struct {
			labels, second string
			rewritten      bool
		}{
			"one container asks":                        {`{}`, `"cpu":"1"`, true},
			"another asks for a whole GPU":              {`{}`, `"nvidia.com/gpu":1`, false},
			"another asks for a shared GPU":             {`{}`, `"nvidia.com/gpu.shared":"1"`, false},
			"the label is there and says the same":      {`{"gpuslice.dev/fraction":"0.25"}`, `"cpu":"1"`, true},
			"the label is there and says another share": {`{"gpuslice.dev/fraction":"0.5"}`, `"cpu":"1"`, false},
			"another label says a size":                 {`{"gpuslice.dev/memory":"4Gi"}`, `"cpu":"1"`, false},
		} {
			t.Run(name, func(t *testing.T) {
				var tree map[string]any
				if err := json.Unmarshal([]byte(`{"spec":{"template":{"metadata":{"labels":`+c.labels+`},"spec":{"containers":[
				{"name":"a","resources":{"limits":{"nvidia.com/gpu":"0.25"}}},
				{"name":"b","resources":{"limits":{`+c.second+`}}}]}}}}`), &tree); err != nil {
					t.Fatal(err)
				}
				violation, ops := policies.CheckTemplate(in.Policy, "Deployment", tree)
				if rewritten := len(ops) > 0; rewritten != c.rewritten || (violation != nil) == rewritten {
					t.Errorf("rewritten is %t, want %t; denied: %v", rewritten, c.rewritten, violation)
				}
			})
		}
	})
}
