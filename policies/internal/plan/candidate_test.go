package plan

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// newFixture is a pod that requests 3Gi, beside two pools that would give it the very same and one of whole GPUs.
func newFixture(t *testing.T) (*Input, api.Request) {
	t.Helper()
	policy, problems := config.Parse("team", []byte("apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing, exclusive]\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	shared := func(name string, replicas int) pools.Pool {
		return pools.Pool{Name: name, Site: name, Resource: "nvidia.com/gpu.shared",
			Strategy: "time-slicing", DeviceMemory: 24576, Replicas: replicas}
	}
	in := &Input{
		Pod: &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}, Policy: policy,
		Pools: []pools.Pool{shared("four", 4), shared("six", 6),
			{Name: "whole", Site: "whole", Resource: api.ResourceGPU, Strategy: "exclusive", DeviceMemory: 24576, Replicas: 1}},
	}
	return in, api.Request{Containers: []api.ContainerRequest{{Name: "main", GPUs: 1, Size: api.Size{Memory: 3072}}}}
}

// TestCandidatesAreValues has every step that compares candidates leave them as they were placed.
func TestCandidatesAreValues(t *testing.T) {
	t.Parallel()
	in, req := newFixture(t)
	wants, violations := resolveAll(in, req)
	fitting, unfit := candidates(in, req, wants)
	if len(violations) > 0 || len(fitting) != 3 {
		t.Fatalf("%d candidates: %v %v", len(fitting), violations, unfit)
	}
	before := slices.Clone(fitting)
	for i := range before {
		before[i].containers = slices.Clone(fitting[i].containers)
	}
	chosen, _ := choose(in, req, fitting)
	counted, same := equivalent(in, chosen, fitting)
	report(evaluateAll(in, req, fitting), unfit, chosen)
	if !reflect.DeepEqual(fitting, before) {
		t.Errorf("placed %+v\nthen   %+v", before, fitting)
	}
	if chosen.pool().Name != "six" || len(same) != 1 || same[0].pool().Name != "four" {
		t.Fatalf("chosen %s, and %d more", chosen.pool().Name, len(same))
	}
	sixth, quarter := quantity.Device/6, quantity.Device/4
	if chosen.containers[0].share != sixth || counted.containers[0].share != quarter || same[0].containers[0].share != quarter {
		t.Errorf("chosen has %s of a device, counts for %s, and the other has %s", chosen.containers[0].share,
			counted.containers[0].share, same[0].containers[0].share)
	}
}

// TestReport lists each pool once: the chosen one, those that come after it, and those that the pod does not come to.
func TestReport(t *testing.T) {
	t.Parallel()
	in, req := newFixture(t)
	in.Explain = true
	in.Pools = append(in.Pools,
		pools.Pool{Name: "mig", Site: "mig", Resource: "nvidia.com/mig-1g.10gb", Strategy: "mig", DeviceMemory: 24576, Replicas: 1})
	wants, _ := resolveAll(in, req)
	fitting, unfit := candidates(in, req, wants)
	chosen, _ := choose(in, req, fitting)
	all := evaluateAll(in, req, fitting)
	var got []string
	for _, r := range report(all, append(unfit, &FitError{kind: kindReach, pool: all[0].pool()}), chosen) {
		got = append(got, fmt.Sprintf("%s %v %v", r.Pool, r.Chosen, r.Why != ""))
	}
	if want := []string{"six true false", "four false true", "whole false true", "mig false true"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestEquals: pools that differ in anything that the pod would show are not the same to it.
func TestEquals(t *testing.T) {
	t.Parallel()
	of := func() (*candidate, *pools.Pool) {
		pool := &pools.Pool{Name: "four", Resource: "nvidia.com/gpu.shared", Strategy: "time-slicing", DeviceMemory: 24576, Replicas: 4}
		return &candidate{containers: []placed{{pool: pool, size: sizeOn{slice: 3072, limit: 3072}, tiers: []api.Tier{api.TierGuard}}}}, pool
	}
	for name, tt := range map[string]struct {
		change func(*candidate, *pools.Pool)
		want   bool
	}{
		"another name":             {func(_ *candidate, p *pools.Pool) { p.Name = "six" }, true},
		"more replicas":            {func(_ *candidate, p *pools.Pool) { p.Replicas = 6 }, true},
		"another resource":         {func(_ *candidate, p *pools.Pool) { p.Resource = api.ResourceGPU }, false},
		"shares that are claimed":  {func(_ *candidate, p *pools.Pool) { p.ClaimsShares = true }, false},
		"another slice":            {func(c *candidate, _ *pools.Pool) { c.containers[0].size.slice = 1024 }, false},
		"another limit":            {func(c *candidate, _ *pools.Pool) { c.containers[0].size.limit = 4096 }, false},
		"another MPS daemon":       {func(_ *candidate, p *pools.Pool) { p.MPSProvider = "other" }, false},
		"another size of devices":  {func(_ *candidate, p *pools.Pool) { p.DeviceMemory = 49152 }, false},
		"another tier":             {func(c *candidate, _ *pools.Pool) { c.containers[0].tiers = []api.Tier{api.TierDriver} }, false},
		"another guard in the pod": {func(c *candidate, _ *pools.Pool) { c.guard.user = 1 }, false},
	} {
		a, _ := of()
		b, pool := of()
		tt.change(b, pool)
		if a.equals(b) != tt.want || b.equals(a) != tt.want {
			t.Errorf("%s: equal is %v", name, !tt.want)
		}
	}
}

// TestDependsOnPool: a pod may run on any of its pools, unless another than the chosen one would change it or its quotas.
func TestDependsOnPool(t *testing.T) {
	t.Parallel()
	byPool := map[string]quota.Limits{"a": {Slices: new(int64(1))}}
	elsewhere := pools.Pool{Name: "b", Site: "b", Resource: "nvidia.com/gpu.shared", Strategy: "time-slicing", Replicas: 4}
	for name, tt := range map[string]struct {
		change func(*Input, *pools.Pool)
		same   bool // the other pool's candidate is the same
		want   bool
	}{
		"the only pool":   {func(*Input, *pools.Pool) {}, false, false},
		"a quota by pool": {func(in *Input, _ *pools.Pool) { in.Policy.Quota.Pools = byPool }, false, true},
		"a tenant's quota by pool": {func(in *Input, _ *pools.Pool) { in.Policy.TenantQuota = &config.QuotaSpec{Pools: byPool} },
			false, true},
		"a tenant's quota": {func(in *Input, _ *pools.Pool) { in.Policy.TenantQuota = &config.QuotaSpec{Slices: new(int64(1))} },
			false, false},
		"a device of known size":        {func(_ *Input, p *pools.Pool) { p.DeviceMemory = 24576 }, false, true},
		"a driver that holds limits":    {func(_ *Input, p *pools.Pool) { p.DriverLimits = true }, false, true},
		"another pool of its resource":  {func(in *Input, _ *pools.Pool) { in.Pools = append(in.Pools, elsewhere) }, false, true},
		"another pool that is the same": {func(in *Input, _ *pools.Pool) { in.Pools = append(in.Pools, elsewhere) }, true, false},
	} {
		pool := elsewhere
		pool.Name, pool.Site = "a", "a"
		in := &Input{Pod: &corev1.Pod{}, Policy: &config.Policy{}, Pools: []pools.Pool{pool}}
		tt.change(in, &pool)
		chosen := &candidate{containers: []placed{{pool: &pool}}}
		var same []*candidate
		if tt.same {
			same = append(same, &candidate{containers: []placed{{pool: &elsewhere}}})
		}
		if got := dependsOnPool(in, chosen, same); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestMayGet: nodes of any size offer a resource of one name, and a claim names the size of its device where that matters.
func TestMayGet(t *testing.T) {
	t.Parallel()
	claimed := pools.Pool{Strategy: "claim", DeviceClass: "gpu.nvidia.com", DeviceMemory: 24576}
	shared := pools.Pool{Strategy: "time-slicing", Resource: "nvidia.com/gpu.shared", DeviceMemory: 24576, Replicas: 4}
	with := func(p pools.Pool, change func(*pools.Pool)) *pools.Pool { change(&p); return &p }
	larger := func(p *pools.Pool) { p.DeviceMemory = 49152 }
	for name, tt := range map[string]struct {
		of   placed
		pool *pools.Pool
		want bool
	}{
		"the same resource":            {placed{pool: &shared}, with(shared, larger), true},
		"another resource":             {placed{pool: &shared}, with(shared, func(p *pools.Pool) { p.Resource = api.ResourceGPU }), false},
		"an amount, of any device":     {placed{pool: &claimed}, with(claimed, larger), true},
		"a part, of a device as large": {placed{pool: &claimed, size: sizeOn{fromDevice: true}}, with(claimed, func(*pools.Pool) {}), true},
		"a part, of a larger device":   {placed{pool: &claimed, size: sizeOn{fromDevice: true}}, with(claimed, larger), false},
		"another class":                {placed{pool: &claimed}, with(claimed, func(p *pools.Pool) { p.DeviceClass = "other" }), false},
		"the instance that is preferred": {placed{pool: &claimed, preferred: instance{profile: "1g.10gb"}},
			&pools.Pool{ClaimsInstances: true, MIGProfile: "1g.10gb"}, true},
		"another instance": {placed{pool: &claimed, preferred: instance{profile: "1g.10gb"}},
			&pools.Pool{ClaimsInstances: true, MIGProfile: "2g.20gb"}, false},
		"no instance is preferred": {placed{pool: &claimed}, &pools.Pool{ClaimsInstances: true}, false},
	} {
		c := &candidate{containers: []placed{tt.of}}
		if got := c.mayGet(tt.pool); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestMoreSpecific(t *testing.T) {
	t.Parallel()
	small, large := &pools.Pool{Strategy: "exclusive", Replicas: 1, DeviceMemory: 24576},
		&pools.Pool{Strategy: "exclusive", Replicas: 1, DeviceMemory: 81920}
	for name, tt := range map[string]struct {
		e, than FitError
		want    bool
	}{
		"a size rather than a name":        {FitError{kind: kindSize, pool: small}, FitError{kind: kindResource, pool: large}, true},
		"a name after a size":              {FitError{kind: kindResource, pool: large}, FitError{kind: kindSize, pool: small}, false},
		"the larger pool":                  {FitError{kind: kindSize, pool: large}, FitError{kind: kindBurst, pool: small}, true},
		"the smaller pool":                 {FitError{kind: kindSize, pool: small}, FitError{kind: kindSize, pool: large}, false},
		"the first of two pools of a size": {FitError{kind: kindSize, pool: small}, FitError{kind: kindSize, pool: small}, false},
		"the larger pool of two names":     {FitError{kind: kindResource, pool: large}, FitError{kind: kindResource, pool: small}, true},
	} {
		if got := tt.e.moreSpecific(&tt.than); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestUnusedUID: the user of a guard that only observes is nobody's, in whichever order the containers name theirs.
func TestUnusedUID(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		users []int64
		want  int64
	}{
		"nobody names one":             {nil, guardObserverUser},
		"others":                       {[]int64{0, 1000}, guardObserverUser},
		"ours":                         {[]int64{guardObserverUser}, guardObserverUser + 1},
		"ours, and the next before it": {[]int64{guardObserverUser + 1, guardObserverUser}, guardObserverUser + 2},
		"a row of them":                {[]int64{guardObserverUser + 2, guardObserverUser + 1, guardObserverUser}, guardObserverUser + 3},
	} {
		spec := &corev1.PodSpec{}
		for _, user := range tt.users {
			spec.Containers = append(spec.Containers, corev1.Container{SecurityContext: &corev1.SecurityContext{RunAsUser: &user}})
		}
		if got := unusedUID(spec); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
