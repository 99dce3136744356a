package plan

import (
	"testing"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
)

func TestClassOf(t *testing.T) {
	p := &config.Policy{DefaultSlice: &config.SliceSpec{Class: "small"}}
	for name, c := range map[string]struct {
		req  api.ContainerRequest
		want string
	}{
		"nothing said":          {api.ContainerRequest{}, "small"},
		"a class":               {api.ContainerRequest{Size: api.Size{Class: "large"}}, "large"},
		"a size":                {api.ContainerRequest{Size: api.Size{Memory: 1}}, ""},
		"one shared GPU":        {api.ContainerRequest{Resource: nvidia.SharedGPU}, ""},
		"whatever a replica is": {api.ContainerRequest{Size: api.Size{Class: api.ClassReplica}}, ""},
	} {
		if got := classOf(p, c.req); got != c.want {
			t.Errorf("%s: class %q, want %q", name, got, c.want)
		}
	}
}
