package promise

import (
	"testing"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

func TestParts(t *testing.T) {
	t.Parallel()
	t.Run("what no build writes is not read", func(t *testing.T) {
		t.Parallel()
		good := Container{Count: 8, Granule: 1063, Replicas: 21, Slice: 8192}
		if !good.holdsSlice() {
			t.Fatal("8 parts of 1063Mi do not hold 8Gi")
		}
		largest := Container{Count: 1, Granule: quantity.MaxMemory, Replicas: quantity.MaxReplicas, Slice: quantity.MaxMemory}
		whole := Container{Count: 21, Granule: 1063, Replicas: 21, Slice: 21 * 1063}
		if !largest.holdsSlice() || !whole.holdsSlice() {
			t.Fatal("the largest part, or all parts of a device, hold no slice")
		}
		for name, bad := range map[string]Container{
			"fewer than the slice takes": {Count: 7, Granule: 1063, Replicas: 21, Slice: 8192},
			"none":                       {Count: 0, Granule: 1063, Replicas: 21},
			"more than the device has":   {Count: 22, Granule: 1063, Replicas: 21, Slice: 8192},
			"of nothing":                 {Count: 1, Replicas: 21},
			"of a device in one part":    {Count: 1, Granule: 8192, Replicas: 1, Slice: 8192},
			"of one replica too many":    {Count: 8, Granule: 1063, Replicas: quantity.MaxReplicas + 1, Slice: 8192},
			"of too much memory":         {Count: 1, Granule: quantity.MaxMemory + 1, Replicas: 21, Slice: 8192},
			"of an unknown device":       {Count: 8, Granule: 1063, Slice: 8192},
			"of an endless device":       {Count: 1 << 20, Granule: 1063, Replicas: 1 << 30, Slice: 8192},
			"whose sum overflows":        {Count: 8, Granule: 1 << 62, Replicas: 21, Slice: 8192},
			"that take memory back":      {Count: 8, Granule: -1063, Replicas: 21, Slice: -9000},
		} {
			p := Promise{Version: Version, Request: api.Request{Explicit: true, Containers: []api.ContainerRequest{{Name: "a", GPUs: 1}}}}
			bad.Name = "a"
			p.Containers = []Container{bad}
			if _, err := Decode(p.Encode()); err == nil {
				t.Errorf("parts %s are read", name)
			}
		}
	})
}
