package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/pools"
)

func TestLint(t *testing.T) {
	t.Parallel()
	t.Run("valid settings that are probably mistakes get a warning", func(t *testing.T) {
		t.Parallel()
		offered := []pools.Pool{
			{Resource: nvidia.SharedGPU, Strategy: "time-slicing", DeviceMemory: 24 << 10, Replicas: 4},
			{Resource: api.ResourceGPU, Strategy: "exclusive", Replicas: 1},
		}
		for _, c := range []struct {
			name, document string
			want           []string
		}{
			{"nothing odd", "{mode: transparent, defaultSlice: {memory: 6Gi}, optOut: true, strategies: [time-slicing]}", nil},
			{"a quota that is off", "{mode: \"off\", quota: {memory: 1Gi}}", []string{
				"quota: mode is off, so nothing is counted and nothing denied; write mode: opt-in to have the quota held"}},
			{"an opt-out of what nobody is in", "{mode: opt-in, optOut: true}", []string{
				"optOut: it means something in mode transparent only; in mode opt-in a pod that requests no slice gets none anyway"}},
			{"idle slices that nobody sees", "{mode: opt-in, idle: {report: 4h}, guard: {mode: sidecar}}", []string{
				"idle.report: only an agent sees what runs in a slice, and guard.mode is sidecar; write guard.mode: auto"}},
			{"idle slices that nobody terminates", "{mode: opt-in, idle: {report: 4h, terminate: 8h}, guard: {mode: sidecar}}", []string{
				"idle.report: only an agent sees what runs in a slice, and guard.mode is sidecar; write guard.mode: auto",
				"idle.terminate: only an agent sees what runs in a slice, and guard.mode is sidecar; write guard.mode: auto"}},
			{"idle slices that an agent sees", "{mode: opt-in, idle: {report: 4h}, guard: {mode: agent}}", nil},
			{"transparent without a size", "{mode: transparent}", []string{
				"defaultSlice: mode is transparent and there is none, so a pod without a size is denied"}},
			{"sizes beyond every pool",
				"{strategies: [time-slicing], mode: opt-in, defaultSlice: {memory: 7Gi}, classes: {huge: {memory: 25Gi}, fine: {memory: 6Gi}}}",
				[]string{
					"classes[huge].memory: 25Gi fits no pool that is known, the largest slice there is has 6Gi",
					"defaultSlice.memory: 7Gi fits no pool that is known, the largest slice there is has 6Gi"}},
			{"sizes beside a pool of unknown size", "{strategies: [time-slicing, exclusive], mode: opt-in, classes: {huge: {memory: 25Gi}}}", nil},
			{"a pool under a name that the webhook is not asked about", "{pools: {declared: [{name: a, selector: {a: b}, resource: example.com/gpu, strategy: exclusive}, {name: b, selector: {a: c}, resource: nvidia.com/gpu, strategy: exclusive}]}}", []string{
				"pools.declared[0].resource: the webhook is called for pods that name a resource of nvidia.com/; one that names only example.com/gpu is seen where it has one of our labels, " +
					"and no quota holds for others; have the nodes offer a name of nvidia.com/, or add this one to the match conditions of the webhook configurations"}},
			{"sizes of a strategy without pools", "{strategies: [mps], mode: opt-in, classes: {huge: {memory: 25Gi}}}", nil},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				if diff := cmp.Diff(c.want, Lint(lintedPolicy(t, c.document), offered)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	})
}

// lintedPolicy reads a document and fills in no defaults.
func lintedPolicy(t *testing.T, text string) *config.Policy {
	t.Helper()
	p := &config.Policy{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}
