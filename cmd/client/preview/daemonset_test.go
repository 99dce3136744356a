package preview

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

func TestDaemonSet(t *testing.T) {
	t.Parallel()
	e := engineFor(t, "apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing]\n")
	nodes, err := scenarios.Nodes("l4-timeslicing-renamed", "a100-timeslicing-three", "a10-timeslicing")
	if err != nil {
		t.Fatal(err)
	}
	e.Cluster.Pools = pools.FromNodes(nodes, e.Cluster.Book.Default().Pools, nil)
	for _, c := range []struct {
		name, spec string
		want       []string
	}{
		{"a pod on each node", "", []string{
			"its pods on nodes of pool a100-pcie-40gb-time-slicing-3-151fdca6: warm 4Gi under time-slicing on a100-pcie-40gb-time-slicing-3-151fdca6, " +
				"enforcement planned: guard",
			"its pods on nodes of pool l4-time-slicing-4-fc4c35b3: warm 4Gi under time-slicing on l4-time-slicing-4-fc4c35b3, enforcement planned: guard"}},
		{"a selector leaves one pool", `"nodeSelector":{"nvidia.com/gpu.product":"NVIDIA-L4"},`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := e.Evaluate(t.Context(), manifest.Object{Kind: "DaemonSet", APIVersion: "apps/v1", Name: "prewarm", Raw: json.RawMessage(
				`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"prewarm"},"spec":{"template":{"metadata":{"labels":{"gpuslice.dev/memory":"4Gi"}},` +
					`"spec":{` + c.spec + `"containers":[{"name":"warm","image":"example.com/warm","resources":{"limits":{"nvidia.com/gpu":1}}}]}}}}`)})
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			if diff := cmp.Diff(c.want, slices.Clone(all[0].Decision.Warnings)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
