package quota_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/policies/quota"
)

func TestExcess(t *testing.T) {
	t.Parallel()
	limit := func(name string, scope quota.Scope, slices int64) quota.Limit {
		return quota.Limit{Name: name, Scope: scope, Limits: quota.Limits{Slices: &slices}}
	}
	all, pool := limit("all", quota.Scope{}, 3), limit("pool", quota.Scope{Pool: "p"}, 3)
	elsewhere, class := limit("elsewhere", quota.Scope{Namespace: "b"}, 0), limit("class", quota.Scope{Class: "c"}, 0)
	resource := quota.Limit{Name: "resource", Scope: quota.Scope{Resource: "nvidia.com/gpu"}, Limits: quota.Limits{GPUs: new(int64(1))}}
	memory := quota.Limit{Name: "memory", Limits: quota.Limits{Memory: new(quota.Charge{}.Memory)}}
	in := func(slices int64, change func(*quota.Holding)) quota.Holding {
		h := quota.Holding{Namespace: "a", Pools: []string{"p", "q"}, Charge: quota.Charge{Slices: slices}}
		if change != nil {
			change(&h)
		}
		return h
	}
	for name, tc := range map[string]struct {
		limits  []quota.Limit
		used    int64
		holding quota.Holding
		want    []string
	}{
		"up to the limit":               {[]quota.Limit{all}, 1, in(2, nil), nil},
		"one more":                      {[]quota.Limit{all}, 2, in(2, nil), []string{"all"}},
		"nothing, above the limit":      {[]quota.Limit{all}, 9, in(0, func(h *quota.Holding) { h.Charge.GPUs = 1 }), nil},
		"a limit of others comes first": {[]quota.Limit{elsewhere, all}, 2, in(2, nil), []string{"all"}},
		"both limits":                   {[]quota.Limit{pool, all}, 2, in(2, nil), []string{"pool", "all"}},
		"another pool":                  {[]quota.Limit{pool}, 2, in(2, func(h *quota.Holding) { h.Pools = []string{"q"} }), nil},
		"a class": {[]quota.Limit{class},
			0, in(2, func(h *quota.Holding) { h.Classes = map[string]quota.Charge{"c": {Slices: 1}} }), []string{"class"}},
		"no class": {[]quota.Limit{class}, 0, in(2, nil), nil},
		"units of a resource": {[]quota.Limit{resource},
			0, in(0, func(h *quota.Holding) { h.Units = map[string]int64{"nvidia.com/gpu": 2} }), []string{"resource"}},
		"memory that is unknown": {[]quota.Limit{memory},
			0, in(1, func(h *quota.Holding) { h.MemoryUnknown = true }), []string{"memory"}},
		"no memory, though none is allowed": {[]quota.Limit{memory}, 0, in(1, nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			used := func(quota.Scope) quota.Charge { return quota.Charge{Slices: tc.used} }
			for _, e := range (quota.Quota{Limits: tc.limits}).Excess(used, tc.holding) {
				got = append(got, e.Quota)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("exceeded (-want +got):\n%s", diff)
			}
		})
	}
}
