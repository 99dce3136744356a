package plan

import (
	"testing"
	"testing/quick"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
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

// TestUnits: parts hold the slice, no part is idle, and a larger slice takes no fewer.
func TestUnits(t *testing.T) {
	t.Parallel()
	units := func(granule, slice quantity.MiB) int64 {
		return (&placed{size: sizeOn{slice: slice, granule: granule, replicas: 4096}}).units()
	}
	holds := func(granule, slice, more uint16) bool {
		g, a := quantity.MiB(granule)+1, quantity.MiB(slice)+1
		n := units(g, a)
		return quantity.MiB(n)*g >= a && quantity.MiB(n-1)*g < a && n <= units(g, a+quantity.MiB(more))
	}
	if err := quick.Check(holds, &quick.Config{MaxCount: 20000}); err != nil {
		t.Error(err)
	}
}
