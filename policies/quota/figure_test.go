package quota_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/policies/quota"
)

func TestFigures(t *testing.T) {
	t.Parallel()
	q := quota.Quota{Limits: []quota.Limit{
		{Name: "team-a", Scope: quota.Scope{Pool: "p", Namespace: "a"},
			Limits: quota.Limits{Slices: new(int64(4)), Devices: new(quota.Charge{Devices: 2}.Devices)}},
		{Name: "team-a (class c)", Scope: quota.Scope{Class: "c"}, Limits: quota.Limits{Memory: new(quota.Charge{Memory: 2048}.Memory)}},
		{Name: "gpus", Scope: quota.Scope{Resource: "nvidia.com/gpu"}, Limits: quota.Limits{GPUs: new(int64(1))}, Native: true},
	}}
	used := func(quota.Scope) quota.Charge { return quota.Charge{Memory: 1024, Slices: 3, GPUs: 1} }
	taken := func(quota.Scope) quota.Charge { return quota.Charge{Memory: 1536, Slices: 2, GPUs: 1} }
	const gib = 1 << 30
	got := q.Figures(used, taken)
	want := []quota.Figure{
		{Quota: "team-a", Namespace: "a", Part: "pool/p", Dimension: "slices", Limit: 4, Used: 3},
		{Quota: "team-a", Namespace: "a", Part: "pool/p", Dimension: "devices", Limit: got[1].Limit},
		{Quota: "team-a (class c)", Part: "class/c", Dimension: "memory", Limit: 2 * gib, Used: gib, Reserved: gib / 2},
		{Quota: "gpus", Dimension: "requests.nvidia.com/gpu", Limit: 1, Used: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if unit := (quota.Charge{Devices: 2}).Devices; got[1].Limit <= 0 || got[1].Limit >= 1 || got[1].Text(got[1].Limit) != unit.String() {
		t.Errorf("a part of a device is %v, as text %s", got[1].Limit, got[1].Text(got[1].Limit))
	}
	if text := got[2].Text(got[2].Used); text != "1Gi" {
		t.Errorf("memory reads %s", text)
	}
	if text := got[3].Text(7); text != "7" {
		t.Errorf("units read %s", text)
	}
	if !q.Native() || (quota.Quota{Limits: q.Limits[:2]}).Native() {
		t.Error("a ResourceQuota is not known as one, or another limit is")
	}
	within := q.Within(quota.Holding{Namespace: "a", Pools: []string{"p"}, Charge: quota.Charge{Slices: 1}})
	if len(within.Limits) != 1 || within.Limits[0].Name != "team-a" {
		t.Errorf("the pod counts in %v", within)
	}
}

func TestFull(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		figure quota.Figure
		want   bool
	}{
		"all used":             {quota.Figure{Limit: 0.75, Used: 0.75}, true},
		"used and reserved":    {quota.Figure{Limit: 0.75, Used: 0.5, Reserved: 0.25}, true},
		"all but the rounding": {quota.Figure{Limit: 0.75, Used: 0.75 - 1e-12}, true},
		"one part left":        {quota.Figure{Limit: 0.75, Used: 0.5, Reserved: 0.1}, false},
	} {
		if got := tc.figure.Full(); got != tc.want {
			t.Errorf("%s: full is %v", name, got)
		}
	}
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	q := quota.Quota{Limits: []quota.Limit{
		{Name: "other", Limits: quota.Limits{Memory: new(quota.Charge{Memory: 1}.Memory)}},
		{Name: "class", Scope: quota.Scope{Class: "c"},
			Limits: quota.Limits{Slices: new(int64(4)), Memory: new(quota.Charge{Memory: 2048}.Memory)}},
	}}
	h := quota.Holding{Charge: quota.Charge{Memory: 8192, Slices: 9}, Classes: map[string]quota.Charge{"c": {Memory: 1024, Slices: 2}}}
	for dimension, want := range map[string]string{"memory": "1Gi", "slices": "2", "gpus": "0"} {
		amount, text := q.Measure(quota.Excess{Quota: "class", Dimension: dimension})
		if got := text(amount(h)); got != want {
			t.Errorf("%s is %s, want %s", dimension, got, want)
		}
	}
}

func TestDenial(t *testing.T) {
	t.Parallel()
	if d := quota.Denial(nil); d != nil {
		t.Errorf("denied for nothing: %v", d)
	}
	d := quota.Denial([]quota.Excess{
		{Quota: "a", Dimension: "memory", Requested: "unknown", Used: "2Gi", Limited: "4Gi"},
		{Quota: "a", Dimension: "slices", Requested: "2", Used: "3", Limited: "4"},
		{Quota: "b", Dimension: "gpus", Requested: "1", Used: "1", Limited: "1", Note: "team-b holds it"},
	})
	const want = "a, requested: memory=unknown,slices=2, used: memory=2Gi,slices=3, limited: memory=4Gi,slices=4 " +
		"(the memory of the device it would hold is not known; write gpuslice.dev/memory); b, requested: gpus=1, used: gpus=1, limited: gpus=1 (team-b holds it)"
	if d.Detail != want {
		t.Errorf("%s\nwant\n%s", d.Detail, want)
	}
}

func TestLeft(t *testing.T) {
	t.Parallel()
	q := quota.Quota{Limits: []quota.Limit{{Name: "a", Limits: quota.Limits{Slices: new(int64(3))}}}}
	for used, want := range map[int64]string{2: "1", 3: "0", 9: "0"} {
		excess := q.Excess(func(quota.Scope) quota.Charge { return quota.Charge{Slices: used} }, quota.Holding{Charge: quota.Charge{Slices: 2}})
		if len(excess) != 1 || excess[0].Left != want {
			t.Errorf("%d of 3 used: %+v, want %s left", used, excess, want)
		}
	}
}
