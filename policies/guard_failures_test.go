package policies_test

import (
	"slices"
	"testing"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// TestGuardFailures: how a guard reaches the driver has one name in the plan and on the pod that comes of it.
func TestGuardFailures(t *testing.T) {
	t.Parallel()
	t.Run("a guard that fails in the way of a pod's is not counted on for the same pod", func(t *testing.T) {
		t.Parallel()
		seen := map[string]bool{}
		for _, s := range allScenarios(t) {
			in, err := s.Input()
			if err != nil || s.Old != nil {
				continue
			}
			d := policies.Decide(in)
			if d.Promise == nil || d.Promise.Guard == nil || d.Promise.Guard.Agent || !plansGuard(d.Promise) {
				continue
			}
			class := ""
			if name := d.Rewrite(in.Pod).Spec.RuntimeClassName; name != nil {
				class = *name
			}
			access := policies.AccessOf(d.Promise.Guard, class)
			seen[access] = true
			in.Pools = slices.Clone(in.Pools)
			for i := range in.Pools {
				in.Pools[i].GuardFailures = map[string]string{access: "they failed"}
			}
			after := policies.Decide(in)
			if after.Promise != nil && (after.Promise.Guard == nil || plansGuard(after.Promise)) {
				t.Errorf("%s: guards failed by %q: planned %+v", s.Name, access, after.Promise.Planned)
			}
		}
		for _, access := range []string{"env", "env, runtime class nvidia", "volume", "cdi"} {
			if !seen[access] {
				t.Errorf("no scenario has a guard that reaches the driver by %q, of %v", access, seen)
			}
		}
	})
}

func plansGuard(p *promise.Promise) bool {
	return slices.ContainsFunc(p.Planned.Containers, func(c promise.PlannedContainer) bool { return slices.Contains(c.Tiers, api.TierGuard) })
}

func TestAccessOf(t *testing.T) {
	t.Parallel()
	devices := []podspec.Variable{{Name: nvidia.EnvVisibleDevices, Value: "all"}}
	for want, g := range map[string]promise.Guard{
		modes.AccessClaim:  {Claims: []string{"gpuslice"}, SidecarEnv: devices},
		modes.AccessCDI:    {Annotations: map[string]string{"cdi.k8s.io/a": "b"}, SidecarEnv: devices},
		modes.AccessEnv:    {SidecarEnv: devices},
		modes.AccessVolume: {SidecarEnv: []podspec.Variable{{Name: "OTHER", Value: "all"}}},
	} {
		if got := policies.AccessOf(&g, "nvidia"); got != modes.DescribeAccess(want, "nvidia") {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
