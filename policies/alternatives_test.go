package policies_test

import (
	"slices"
	"testing"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// TestAlternativesCountForTheLargest has a pod that gets an instance of 20096Mi, or else a share of 12Gi: it counts for the first, on the
// pools of both, and is as promised whichever it got, but gets neither before it is stored.
func TestAlternativesCountForTheLargest(t *testing.T) {
	t.Parallel()
	in := instanceOrShare(t)
	given := policies.Decide(in).Promise
	in.Pod = podedit.Apply(given, in.Pod)
	h := accounting.Holding(given, in.Pod)
	if h.Charge.Memory != 20096 || given.Charge.Memory != 20096 || h.Charge.Slices != 1 || len(h.Pools) != 2 {
		t.Errorf("holds %+v, charged %+v", h, given.Charge)
	}
	for _, c := range []struct {
		version    string // of a pod that is stored
		tier       api.Tier
		asPromised bool
	}{
		{"", api.TierHardware, false}, {"", api.TierGuard, true}, {"", api.TierNone, true}, {"", api.TierMPS, false},
		{"0", api.TierHardware, false}, {"x", api.TierHardware, false}, {"7", api.TierHardware, true},
		{"7", api.TierGuard, true}, {"7", api.TierMPS, false},
	} {
		in.Pod.ResourceVersion = c.version
		in.Pod.Annotations[api.AnnotationSummary] = given.Summary(c.tier)
		if d := policies.Verify(in, given); (d.Outcome != policies.Denied) != c.asPromised {
			t.Errorf("version %q, with the summary of %s: %s", c.version, c.tier, d.Message())
		}
	}
}

// instanceOrShare is a pod of which a claim gets an instance, or else a share.
func instanceOrShare(t *testing.T) policies.Input {
	t.Helper()
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(s scenarios.Scenario) bool { return s.Name == "claim-of-an-instance-or-a-share" })
	in, err := all[at].Input()
	if err != nil {
		t.Fatal(err)
	}
	return in
}
