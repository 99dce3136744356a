package proofs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/prove/proof"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// pool is one that time-slicing shares, under driver 580.95.
func pool(t *testing.T) pools.Pool {
	t.Helper()
	nodes, err := scenarios.Nodes("l4-timeslicing-renamed")
	if err != nil {
		t.Fatal(err)
	}
	all := pools.FromNodes(nodes, config.PoolsSpec{}, nil)
	if len(all) != 1 || all[0].DriverMajor == 0 {
		t.Fatalf("%+v", all)
	}
	return all[0]
}

// recorded is what a run on the pool found, in words WAY=HOLDER.
func recorded(p pools.Pool, words string) Record {
	r := Record{Pool: p.Name, Character: p.Character(), Agents: p.Agents}
	r.Driver, r.Taken = p.Driver()+".05", time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for word := range strings.FieldsSeq(words) {
		way, held, _ := strings.Cut(word, "=")
		r.Attempts = append(r.Attempts, proof.Attempt{Way: proof.Way(way), Held: proof.Holder(held)})
	}
	return r
}

const guarded = "cuMemAlloc=guard cuMemCreate=guard many-small=guard many-processes=guard cuMemAllocManaged=nothing"

func TestApply(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		words   string
		record  func(*Record)
		pool    func(*pools.Pool)
		proven  []api.Tier
		explain string // Proof, or Unproven where nothing is proven
	}{
		{"a guard", guarded, nil, nil, []api.Tier{api.TierFramework, api.TierGuard}, "guard (2026-11-22, driver "},
		{"a leak", strings.Replace(guarded, "cuMemCreate=guard", "cuMemCreate=nothing", 1), nil, nil,
			nil, "nothing held cuMemCreate, cuMemAllocManaged"},
		{"an attempt from which nothing follows", strings.Replace(guarded, "cuMemCreate=guard", "cuMemCreate=", 1),
			nil, nil, nil, "nothing follows from cuMemCreate"},
		{"of another pool", guarded, func(r *Record) { r.Pool = "other" }, nil, nil, ""},
		{"with another driver", guarded, func(r *Record) { r.Driver = "550.90.07" }, nil, nil, "stale: tried with driver 550.90.07"},
		{"with a driver that begins alike", guarded, func(r *Record) { r.Driver += "0"; r.Driver = strings.Replace(r.Driver, ".", "1.", 1) },
			nil, nil, "stale"},
		{"of a pool whose driver is unknown now", guarded, nil, func(p *pools.Pool) { p.DriverMajor = 0 }, nil, "driver version is unknown"},
		{"of a pool with more replicas now", guarded, nil, func(p *pools.Pool) { p.Replicas++ }, nil, "changed since"},
		{"of a pool that is shared otherwise now", guarded, nil, func(p *pools.Pool) { p.Strategy = "mps" }, nil, "changed since"},
		{"of a pool whose replicas are parts of a device now", guarded, nil, func(p *pools.Pool) { p.Granular = true }, nil, "changed since"},
		{"of a pool that keeps less free now", guarded, nil, func(p *pools.Pool) { p.Reserve-- }, nil, "changed since"},
		{"of runs under two drivers", guarded, func(r *Record) {
			earlier := proof.Report{Taken: r.Taken, Driver: "590.44.01"}
			r.Report = earlier.Merge(r.Report)
		}, nil, nil, "stale: tried with drivers 590.44.01 and 580.95.05"},
		{"of a pool that has agents now", guarded, nil, func(p *pools.Pool) { p.Agents = true }, nil, "agents"},
		{"of a pool without nodes now", guarded, func(r *Record) { r.Agents = true }, func(p *pools.Pool) { p.Nodes = nil },
			[]api.Tier{api.TierFramework, api.TierGuard}, "guard ("},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			all := []pools.Pool{pool(t)}
			r := recorded(all[0], tt.words)
			if tt.record != nil {
				tt.record(&r)
			}
			if tt.pool != nil {
				tt.pool(&all[0])
			}
			Apply([]Record{r}, all)
			if diff := cmp.Diff(tt.proven, all[0].Proven); diff != "" {
				t.Errorf("proven (-want +got):\n%s", diff)
			}
			if text := all[0].Proof + all[0].Unproven; !strings.Contains(text, tt.explain) {
				t.Errorf("%q and %q lack %q", all[0].Proof, all[0].Unproven, tt.explain)
			}
		})
	}
}

// TestApplyAfterUpgrade updates the driver of one node of a pool on which a proof was taken.
func TestApplyAfterUpgrade(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]config.PoolsSpec{
		"derived": {},
		"declared": {Declared: []config.PoolSpec{{Name: "l4", Selector: map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4"},
			Resource: "nvidia.com/gpu.shared", Strategy: "time-slicing"}}},
		"declared with a driver": {Declared: []config.PoolSpec{{Name: "l4", Selector: map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4"},
			Resource: "nvidia.com/gpu.shared", Strategy: "time-slicing", Driver: "580.95.05"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes, err := scenarios.Nodes("l4-timeslicing-renamed")
			if err != nil || len(nodes) < 2 {
				t.Fatal(len(nodes), err)
			}
			before := pools.FromNodes(nodes, spec, nil)
			r := recorded(before[0], guarded)
			if Apply([]Record{r}, before); len(before) != 1 || len(before[0].Proven) == 0 {
				t.Fatalf("not proven: %+v", before)
			}
			for _, upgraded := range nodes[:2] {
				upgraded.Labels["nvidia.com/cuda.driver-version.major"], upgraded.Labels["nvidia.com/cuda.driver-version.minor"] = "590", "44"
				after := pools.FromNodes(nodes, spec, nil)
				Apply([]Record{r}, after)
				if len(after) != 1 || len(after[0].Proven) > 0 || !strings.Contains(after[0].Unproven, "590.44") {
					t.Errorf("%d pools, proven %v, %q", len(after), after[0].Proven, after[0].Unproven)
				}
			}
		})
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	p := pool(t)
	first, other, second := recorded(p, guarded), recorded(p, guarded), recorded(p, "cuMemAlloc=nothing")
	other.Pool = "a"
	text, err := Encode(With(With(With(nil, first), other), second))
	if err != nil {
		t.Fatal(err)
	}
	got := Of(&corev1.ConfigMap{Data: map[string]string{Key: text}})
	if diff := cmp.Diff([]Record{other, second}, got); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	for name, broken := range map[string]*corev1.ConfigMap{
		"none": nil, "empty": {}, "no list": {Data: map[string]string{Key: "{}"}}, "cut off": {Data: map[string]string{Key: text[:len(text)/2]}},
		"too long": {Data: map[string]string{Key: text + strings.Repeat(" ", maxText)}},
	} {
		if got := Of(broken); len(got) > 0 {
			t.Errorf("%s: read %+v", name, got)
		}
	}
}
