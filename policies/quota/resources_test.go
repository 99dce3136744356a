package quota_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// TestAddUnits: names beyond the bound count for every quota, and names within it keep their own count.
func TestAddUnits(t *testing.T) {
	t.Parallel()
	var units map[string]int64
	want := map[string]int64{}
	for i := range quota.MaxUnits {
		name := fmt.Sprintf("nvidia.com/mig-%d", i)
		units, want[name] = quota.AddUnits(units, name, 1), 1
	}
	units = quota.AddUnits(units, "nvidia.com/mig-0", 2)
	want["nvidia.com/mig-0"] = 3
	if diff := cmp.Diff(want, units); diff != "" {
		t.Errorf("up to the bound (-want +got)\n%s", diff)
	}
	h := quota.Holding{Units: quota.AddUnits(units, "nvidia.com/one-more", 4)}
	for resource, want := range map[string]int64{"nvidia.com/mig-0": 7, "nvidia.com/one-more": 4, "nvidia.com/never": 4} {
		if got := h.In(quota.Scope{Resource: resource}).GPUs; got != want {
			t.Errorf("%s counts %d, want %d", resource, got, want)
		}
	}
}

func TestPlus(t *testing.T) {
	t.Parallel()
	a := quota.Holding{Namespace: "a", Charge: quota.Charge{Memory: 1, Slices: 2, GPUs: 3, Devices: 4}, Units: map[string]int64{"x": 1}}
	b := quota.Holding{Namespace: "a", Charge: quota.Charge{Memory: 10, Slices: 20, GPUs: 30, Devices: 40},
		Units: map[string]int64{"x": 2, "y": 3}, MemoryUnknown: true,
		Classes: map[string]quota.Charge{"c": {Slices: 1}}}
	want := quota.Holding{Namespace: "a", Charge: quota.Charge{Memory: 11, Slices: 22, GPUs: 33, Devices: 44},
		Units: map[string]int64{"x": 3, "y": 3}, MemoryUnknown: true,
		Classes: map[string]quota.Charge{"c": {Slices: 1}}}
	if diff := cmp.Diff(want, a.Plus(b)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := b.Plus(b).Classes["c"].Slices; got != 2 || !maps.Equal(a.Units, map[string]int64{"x": 1}) || b.Classes["c"].Slices != 1 {
		t.Errorf("a class counts %d twice, and the summands are %+v and %+v", got, a, b)
	}
	if got := b.Plus(a); !got.MemoryUnknown {
		t.Error("what is unknown is known beside what is")
	}
}

func TestSound(t *testing.T) {
	t.Parallel()
	const most = quantity.MaxCharge
	for name, tc := range map[string]struct {
		holding quota.Holding
		want    bool
	}{
		"nothing": {quota.Holding{}, true},
		"the most": {quota.Holding{Charge: quota.Charge{Memory: quantity.MaxMemory, Slices: most, GPUs: most, Devices: most},
			Units: map[string]int64{"a": most}}, true},
		"too much memory":       {quota.Holding{Charge: quota.Charge{Memory: quantity.MaxMemory + 1}}, false},
		"too many slices":       {quota.Holding{Charge: quota.Charge{Slices: most + 1}}, false},
		"too many GPUs":         {quota.Holding{Charge: quota.Charge{GPUs: most + 1}}, false},
		"too many devices":      {quota.Holding{Charge: quota.Charge{Devices: most + 1}}, false},
		"negative memory":       {quota.Holding{Charge: quota.Charge{Memory: -1}}, false},
		"negative slices":       {quota.Holding{Charge: quota.Charge{Slices: -1}}, false},
		"negative GPUs":         {quota.Holding{Charge: quota.Charge{GPUs: -1}}, false},
		"negative devices":      {quota.Holding{Charge: quota.Charge{Devices: -1}}, false},
		"a class":               {quota.Holding{Classes: map[string]quota.Charge{"c": {Slices: -1}}}, false},
		"a class that is sound": {quota.Holding{Classes: map[string]quota.Charge{"c": {Slices: 1}}, Charge: quota.Charge{Slices: 1}}, true},
		"none of a resource":    {quota.Holding{Units: map[string]int64{"a": 0}}, true},
		"too many units":        {quota.Holding{Units: map[string]int64{"a": most + 1}}, false},
		"negative units":        {quota.Holding{Units: map[string]int64{"a": -1}}, false},
	} {
		if got := tc.holding.Sound(); got != tc.want {
			t.Errorf("%s: sound is %v", name, got)
		}
	}
}
