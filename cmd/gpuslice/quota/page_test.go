package quota

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/cmd/client/budget"
	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/policies/quota"
)

func textOf(t *testing.T, p *page) string {
	t.Helper()
	var b strings.Builder
	if err := p.Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPage(t *testing.T) {
	const gi = 1 << 30
	p := pageOf([]budget.Budget{
		{Budget: "namespace/team-a", Namespaces: []string{"team-a"}, Policy: "gpuslice-system/team-a", Counted: true, Figures: []quota.Figure{
			{Quota: "team-a", Dimension: "memory", Limit: 64 * gi, Used: 12 * gi, Reserved: 2 * gi},
			{Quota: "team-a", Dimension: "slices", Limit: 8, Used: 7},
			{Quota: "team-a", Dimension: "devices", Limit: 2, Used: 1.0 / 3, Reserved: 0.25},
			{Quota: "team-a (pool a100)", Part: "pool/a100", Dimension: "gpus", Limit: 2, Used: 2},
			{Quota: "team-a (class large)", Part: "class/large", Dimension: "slices", Limit: 0},
			{Quota: "gpus (ResourceQuota)", Namespace: "team-a", Dimension: "requests.nvidia.com/gpu", Limit: 4, Used: 5},
		}, More: 3, MemoryUnknown: true, Holders: []budget.Holder{
			{Namespace: "team-a", Pod: "train-0", Memory: 9728 << 20, Slices: 1, Devices: 1.0 / 3, Promised: true},
			{Namespace: "team-a", Pod: "whole", GPUs: 1, Devices: 1},
		}},
		{Budget: "shared/ml", Namespaces: []string{"search", "speech"},
			Policy: "gpuslice-system/ml", Figures: []quota.Figure{{Quota: "ml", Dimension: "slices", Limit: 4}}},
		{Budget: "namespace/loose", Namespaces: []string{"loose"}, Policy: "gpuslice-system/default"},
		{Namespaces: []string{"ungoverned"}},
	}, cli.Plain)
	want := `namespace team-a, policy gpuslice-system/team-a
  QUOTA                 DIMENSION                USED            RESERVED  LIMIT  TAKEN
  team-a                memory                   12Gi + unknown  2Gi       64Gi   [###+................]  22%
  team-a                slices                   7               -         8      [#################...]  88%
  team-a                devices                  0.334           0.25      2      [###++...............]  29%
  team-a (pool a100)    gpus                     2               -         2      [####################] 100%
  team-a (class large)  slices                   0               -         0      [####################] none is allowed
  gpus (ResourceQuota)  requests.nvidia.com/gpu  5               -         4      [####################] 125%
  and 3 more
  HOLDS THE MOST  MEMORY  SLICES  GPUS  DEVICES  NOTE
  team-a/train-0  9.5Gi   1       -     0.334    -
  team-a/whole    -       -       1     1        no slice: counts as whole devices

budget ml, shared by search, speech, policy gpuslice-system/ml
  not counted yet; retry in a few seconds

namespace loose, policy gpuslice-system/default
  no quota

namespace ungoverned: no policy governs it, so its pods have no quota
`
	if diff := cmp.Diff(want, textOf(t, p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPageWithoutQuota(t *testing.T) {
	if got := textOf(t, pageOf(nil, cli.Plain)); got != "no namespace has a quota\n" {
		t.Errorf("%q", got)
	}
}

func TestColourOf(t *testing.T) {
	for used, want := range map[float64]cli.Colour{0: cli.Green, 79: cli.Green, 80: cli.Yellow, 99: cli.Yellow, 100: cli.Red, 130: cli.Red} {
		if got := colourOf(quota.Figure{Limit: 100, Used: used}); got != want {
			t.Errorf("%v of 100: %q, want %q", used, got, want)
		}
	}
}
