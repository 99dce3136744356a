package layout

import (
	"fmt"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
)

// TestManyKinds: nodes that differ by a MiB and pods that differ in everything are planned, with a bound that holds.
func TestManyKinds(t *testing.T) {
	f := &demand.Fleet{}
	for i := range 100 {
		f.Kinds = append(f.Kinds, demand.Kind{Model: "T4", Devices: 8, CPU: 96_000, Memory: int64(393_216 + i)})
		f.Add(fmt.Sprint("node-", i), i)
	}
	for i := range 400 {
		f.Pods = append(f.Pods, demand.Pod{Devices: 1, Share: 1 + 7*i%500, CPU: int64(100 + i), Memory: int64(1000 + i)})
	}
	for name, fam := range map[string]Families{"replicas": {Replicas: AllReplicas(), Shared: TimeSlicing}, "claims": {Claims: true}} {
		start := time.Now()
		planned, bound := Pack(f, fam).Devices(), Bound(f, fam)
		t.Logf("%s: %d devices, at least %d (%v)", name, planned, bound, time.Since(start))
		if bound > planned || bound < planned/2 {
			t.Errorf("%s: %d devices, at least %d", name, planned, bound)
		}
	}
	var all []*weighed
	fam := Families{Claims: true}
	for i := range f.Pods {
		all = append(all, &weighed{pod: &f.Pods[i], parts: fam.parts(f, &f.Pods[i], f.Used()), count: 1})
	}
	if n := len(cuts(all)); n != maxCuts {
		t.Errorf("%d cuts, want %d", n, maxCuts)
	}
}

// TestLargest: kinds are left out of a bound only for a kind that takes all that they take, so the bound stays the same.
func TestLargest(t *testing.T) {
	f := &demand.Fleet{Kinds: []demand.Kind{
		{Model: "T4", Devices: 2, CPU: 10, Memory: 10}, {Model: "T4", Devices: 8, CPU: 20, Memory: 10},
		{Model: "T4", Devices: 2, CPU: 10, Memory: 20},
		{Model: "V100", Devices: 2, CPU: 5, Memory: 5}, {Model: "T4", Devices: 1, CPU: 1, Memory: 1}, {Model: "T4", CPU: 99, Memory: 99},
	}}
	for kind := range f.Kinds {
		f.Add(fmt.Sprint("node-", kind), kind)
	}
	small := []bool{true, true, true, true, false, true}
	f.Pods = []demand.Pod{{Devices: 1, Share: 100, Allowed: small}, {Devices: 1, Share: 100, Allowed: small}, {Devices: 1, Share: 100}}
	if got := largest(f); fmt.Sprint(got) != "[1 2 3 4]" {
		t.Errorf("%v", got)
	}
}
