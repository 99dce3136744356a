package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// sharingBudget is a policy that names a namespace and has a quota.
func sharingBudget(t *testing.T, name, limit string) *Policy {
	t.Helper()
	p := naming("sys/"+name, name)
	if err := yaml.UnmarshalStrict([]byte(limit), &p.Quota); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSharedBudget(t *testing.T) {
	t.Parallel()
	t.Run("policies that share a budget agree on its limits", func(t *testing.T) {
		t.Parallel()
		const ml = "budget: ml\nmemory: 64Gi\n"
		for _, c := range []struct {
			name, a, b string
			want       string // the conflict
			holds      string // the quota of both
		}{
			{"the same limits", ml, ml, "", ml},
			{"the same limits, written in another way", ml, "{budget: ml, memory: 65536Mi}", "", ml},
			{"a larger and a smaller", ml, "{budget: ml, memory: 48Gi}",
				`policies sys/a and sys/b share the budget "ml" and limit it differently (quota.memory: 64Gi in sys/a, 48Gi in sys/b); write the same limits in all of them, until then the strictest hold`,
				"{budget: ml, memory: 48Gi}"},
			{"different dimensions", "{budget: ml, memory: 64Gi, pools: {a100: {slices: 3}}}",
				"{budget: ml, gpus: 0, pools: {a100: {slices: 2}, t4: {gpus: 1}}}",
				`policies sys/a and sys/b share the budget "ml" and limit it differently (quota.gpus: none in sys/a, 0 in sys/b; quota.memory: 64Gi in sys/a, none in sys/b; ` +
					`quota.pools[a100].slices: 3 in sys/a, 2 in sys/b); write the same limits in all of them, until then the strictest hold`,
				"{budget: ml, memory: 64Gi, gpus: 0, pools: {a100: {slices: 2}, t4: {gpus: 1}}}"},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				a, b := sharingBudget(t, "a", c.a), sharingBudget(t, "b", c.b)
				book := NewBook([]*Policy{b, a, sharingBudget(t, "c", "{budget: other, memory: 1Gi}"), {Name: "default"}})
				got := ""
				for _, err := range book.BudgetConflicts() {
					got += err.Error()
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				want := sharingBudget(t, "a", c.holds).Quota
				for _, namespace := range []string{"a", "b"} {
					p, err := book.For(api.Namespace{Name: namespace})
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, p.Quota); diff != "" {
						t.Errorf("%s is held to (-want +got)\n%s", namespace, diff)
					}
				}
				if diff := cmp.Diff(sharingBudget(t, "a", c.a), a); diff != "" {
					t.Errorf("the document was changed:\n%s", diff)
				}
			})
		}
	})
	// From the documents to the denial: what the tenant's own document requests holds beside the budget, for its
	// namespace alone.
	t.Run("a tenant's quota holds beside its policy's", func(t *testing.T) {
		t.Parallel()
		authority := sharingBudget(t, "team-a", "{budget: ml, memory: 64Gi}")
		tenant := policyOf(t, "{quota: {budget: mine, memory: 16Gi}}")
		held, clamped := tighten(authority, tenant)
		if len(clamped) != 1 || clamped[0].String() != "quota.budget: not for a tenant's own document" {
			t.Errorf("clamped %v", clamped)
		}
		used := func(s quota.Scope) quota.Charge {
			if s.Namespace != "" {
				return quota.Charge{Memory: 12 << 10}
			}
			return quota.Charge{Memory: 20 << 10}
		}
		limited := held.QuotaFor("team-a")
		eight := quota.Holding{Namespace: "team-a", Charge: quota.Charge{Memory: 8 << 10}}
		want := "exceeded quota: team-a/gpuslice-policy, requested: memory=8Gi, used: memory=12Gi, limited: memory=16Gi"
		if v := quota.Denial(limited.Excess(used, eight)); v == nil || v.String() != want {
			t.Errorf("got %v, want %s", v, want)
		}
		eight.Charge.Memory = 4 << 10
		if excess := limited.Excess(used, eight); len(excess) > 0 {
			t.Errorf("4Gi fit, got %v", excess)
		}
		if other := (&Policy{Quota: authority.Quota}).QuotaFor("team-b"); len(other.Excess(used,
			quota.Holding{Namespace: "team-b", Charge: quota.Charge{Memory: 40 << 10}})) > 0 {
			t.Error("the wish of one namespace holds another that shares its budget")
		}
	})
}
