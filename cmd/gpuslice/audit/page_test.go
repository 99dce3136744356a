package audit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

func TestPage(t *testing.T) {
	denied := func(rule api.Rule, reason, detail string) policies.Decision {
		return policies.Decision{IfEnforced: policies.Denied, Violations: []api.Violation{{Rule: rule, Reason: reason, Detail: detail}}}
	}
	item := audited{Namespace: "team-a", Policy: "gpuslice-system/team-a", Mode: api.EnforceAudit}
	for _, name := range []string{"a", "b", "c", "d"} {
		item.add(outcomeOf("Pod", name,
			denied("quota", "exceeded quota", "team-a, requested: slices=1, used: slices=4, limited: slices=4")))
	}
	item.add(outcomeOf("Deployment", "host", denied("tamper", "hostPID", "remove hostPID")))
	item.add(outcomeOf("Pod", "plain",
		policies.Decision{IfEnforced: policies.Unchanged, Outcome: policies.Unchanged, UnchangedReason: "no GPU requested"}))
	item.add(outcomeOf("Pod", "sliced",
		policies.Decision{IfEnforced: policies.Mutated, Planned: &promise.Planned{Strategy: "mps", Pool: "l4", Tier: "mps",
			Containers: []promise.PlannedContainer{{Name: "main", Memory: "4Gi"}}}}))
	item.Claims = members(map[string]string{"c": "takes devices of class gpu.nvidia.com, which no slice bounds"},
		map[string]string{"gpuslice-1mi": "requests something else than its name"})
	var got strings.Builder
	if err := pageOf([]audited{item, {Namespace: "empty", Policy: "gpuslice-system/default", Mode: api.EnforceWarn}}).Print(&got); err != nil {
		t.Fatal(err)
	}
	want := `namespace team-a, policy gpuslice-system/team-a (audit)
  claims that are no slices of gpuslice's: 2
    ResourceClaim c takes devices of class gpu.nvidia.com, which no slice bounds
    ResourceClaimTemplate gpuslice-1mi requests something else than its name
  7 evaluated: enforce would deny 5, mutate 1, hide devices from 0 and leave 1 unchanged
  denied (quota, exceeded quota): 4
    Pod a: exceeded quota: team-a, requested: slices=1, used: slices=4, limited: slices=4
    Pod b: exceeded quota: team-a, requested: slices=1, used: slices=4, limited: slices=4
    Pod c: exceeded quota: team-a, requested: slices=1, used: slices=4, limited: slices=4
    and 1 more
  denied (tamper, hostPID): 1
    Deployment host: hostPID: remove hostPID
  unchanged (no GPU requested): 1
  mutated (sliced): 1
    Pod sliced: main 4Gi under mps on l4, enforcement planned: mps

namespace empty, policy gpuslice-system/default (warn)
  nothing runs there
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	a := auditor{items: []audited{item}}
	if err := a.exit(); err != cli.ExitError(cli.ExitDenied) {
		t.Errorf("%v", err)
	}
}
