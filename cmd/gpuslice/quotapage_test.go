package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/standing"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// golden holds a page against a file of testdata/pages.
func golden(t *testing.T, name string, p page) {
	t.Helper()
	var b strings.Builder
	if err := p.print(&b); err != nil {
		t.Fatal(err)
	}
	path := "testdata/pages/" + name + ".txt"
	if *update {
		write(t, path, []byte(b.String()))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got, go test ./cmd/gpuslice -update rewrites it):\n%s", path, diff)
	}
}

func uncoloured(_, text string) string { return text }

func TestQuotasReadLikeThis(t *testing.T) {
	const gi = 1 << 30
	var p page
	p.budgets([]standing.Budget{
		{Budget: "namespace/team-a", Namespaces: []string{"team-a"}, Policy: "gpuslice-system/team-a", Counted: true, Figures: []quota.Figure{
			{Quota: "team-a", Dimension: "memory", Limit: 64 * gi, Used: 12 * gi, Reserved: 2 * gi},
			{Quota: "team-a", Dimension: "slices", Limit: 8, Used: 7},
			{Quota: "team-a (pool a100)", Part: "pool/a100", Dimension: "gpus", Limit: 2, Used: 2},
			{Quota: "team-a (class large)", Part: "class/large", Dimension: "slices", Limit: 0},
			{Quota: "gpus (ResourceQuota)", Namespace: "team-a", Dimension: "requests.nvidia.com/gpu", Limit: 4, Used: 5},
		}, More: 3, Holders: []standing.Holder{
			{Namespace: "team-a", Pod: "train-0", Memory: 9728 << 20, Slices: 1, Promised: true},
			{Namespace: "team-a", Pod: "whole", GPUs: 1},
		}},
		{Budget: "shared/ml", Namespaces: []string{"search", "speech"}, Policy: "gpuslice-system/ml", Figures: []quota.Figure{{Quota: "ml", Dimension: "slices", Limit: 4}}},
		{Budget: "namespace/loose", Namespaces: []string{"loose"}, Policy: "gpuslice-system/default"},
		{Namespaces: []string{"ungoverned"}},
	}, uncoloured)
	golden(t, "quota", p)
}

func TestNoQuotaIsSaid(t *testing.T) {
	var p page
	p.budgets(nil, uncoloured)
	if got := strings.Join(p.blocks, ""); got != "no namespace has a quota\n" {
		t.Errorf("%q", got)
	}
}

func TestAFullerQuotaIsPaintedLouder(t *testing.T) {
	for used, want := range map[int64]string{0: green, 79: green, 80: yellow, 99: yellow, 100: red, 130: red} {
		if got := colourOfFigure(quota.Figure{Limit: 100, Used: used}); got != want {
			t.Errorf("%d of 100: %q, want %q", used, got, want)
		}
	}
}

func TestAnAuditReadsLikeThis(t *testing.T) {
	refused := func(rule api.Rule, reason, detail string) policies.Decision {
		return policies.Decision{Would: policies.Refused, Violations: []api.Violation{{Rule: rule, Reason: reason, Detail: detail}}}
	}
	item := audited{Namespace: "team-a", Policy: "gpuslice-system/team-a", Mode: config.EnforceAudit}
	for _, name := range []string{"a", "b", "c", "d"} {
		item.count("Pod", name, refused(quota.Rule, "exceeded quota", "team-a, requested: slices=1, used: slices=4, limited: slices=4"))
	}
	item.count("Deployment", "host", refused(api.RuleTamper, "hostPID", "remove hostPID"))
	item.count("Pod", "plain", policies.Decision{Would: policies.LeftAlone, Outcome: policies.LeftAlone, Why: "no GPU asked"})
	item.count("Pod", "sliced", policies.Decision{Would: policies.Rewritten, Planned: &promise.Planned{Strategy: "mps", Pool: "l4", Tier: "mps",
		Containers: []promise.PlannedContainer{{Name: "main", Memory: "4Gi"}}}})
	var p page
	p.audited(item)
	p.audited(audited{Namespace: "empty", Policy: "gpuslice-system/default", Mode: config.EnforceWarn})
	golden(t, "audit", p)
	a := auditor{items: []audited{item}}
	if err := a.tally(); err != exitError(exitRefused) {
		t.Errorf("%v", err)
	}
}
