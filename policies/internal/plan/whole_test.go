package plan

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// TestShareInstead: the remedy of a pod that gets a whole device is a share that the pod would get.
func TestShareInstead(t *testing.T) {
	t.Parallel()
	const none = "no pool that policy team allows has shares"
	share := func(change func(*pools.Pool)) pools.Pool {
		p := pools.Pool{Name: "l4", Strategy: "time-slicing", Resource: "nvidia.com/gpu.shared", DeviceMemory: 24576, Replicas: 4}
		if change != nil {
			change(&p)
		}
		return p
	}
	four, two := share(nil), share(func(p *pools.Pool) { p.Replicas = 2 })
	for name, tt := range map[string]struct {
		pools     []pools.Pool
		requested quantity.MiB
		fraction  bool
		want      string
	}{
		"no pool":                        {nil, 8192, false, none},
		"whole devices":                  {[]pools.Pool{share(func(p *pools.Pool) { p.Strategy = "exclusive" })}, 8192, false, none},
		"a strategy that is not allowed": {[]pools.Pool{share(func(p *pools.Pool) { p.Strategy = "mps" })}, 8192, false, none},
		"shares of unknown size":         {[]pools.Pool{share(func(p *pools.Pool) { p.DeviceMemory = 0 })}, 8192, false, none},
		"without a node":                 {[]pools.Pool{share(func(p *pools.Pool) { p.LastSeen = time.Unix(1, 0) })}, 8192, false, none},
		"out of reach": {[]pools.Pool{share(func(p *pools.Pool) {
			p.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
		})}, 8192, false, none},
		"a smaller share":         {[]pools.Pool{four}, 8192, false, `write gpuslice.dev/memory: "6Gi" or less for a share, or write`},
		"the largest of two":      {[]pools.Pool{four, two}, 20480, false, `"12Gi" or less for a share, or write`},
		"the largest comes first": {[]pools.Pool{two, four}, 20480, false, `"12Gi" or less for a share, or write`},
		"one that would fit":      {[]pools.Pool{four}, 6144, false, "gpuslice explain -f shows what is wrong with each share"},
		"a fraction":              {[]pools.Pool{four}, 0, true, "request a fraction of 0.25 or less for a share"},
	} {
		in, _ := newFixture(t)
		in.Pools = tt.pools
		w := &builder{in: in, strategy: strategies.Named("exclusive")}
		if got := w.shareInstead(tt.requested, tt.fraction, 1); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %q", name, got, tt.want)
		}
	}
}
