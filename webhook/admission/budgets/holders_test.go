package budgets

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

func TestWithHolders(t *testing.T) {
	t.Parallel()
	gi := func(n int64) quota.Holding {
		return quota.Holding{Namespace: "team-a", Charge: quota.Charge{Memory: api.MiB(n << 10), Slices: 1}}
	}
	most := api.MiB(64 << 10)
	limits := quota.Quota{Limits: []quota.Limit{{Name: "team-a", Limits: quota.Limits{Memory: &most}}}}
	request := ledger.Request{Budget: ledger.Budget{Namespaces: []string{"team-a"}}, Quota: limits, Name: "new", Holding: gi(8)}
	excess := limits.Excess(func(quota.Scope) quota.Charge { return quota.Charge{Memory: 60 << 10} }, gi(8))
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pods := []ledger.Pod{{Name: "c", Holding: gi(4)}, {Name: "a", Holding: gi(24)}, {Name: "b", Holding: gi(24)}, {Name: "d", Holding: gi(2)},
		{Name: "none", Holding: quota.Holding{Namespace: "team-a"}}}
	for name, c := range map[string]struct {
		answer ledger.Answer
		shared bool
		want   string
	}{
		"nothing is listed": {ledger.Answer{Excess: excess}, false, "memory left: 4Gi"},
		"the largest three": {ledger.Answer{Excess: excess, Pods: pods},
			false, "memory left: 4Gi; most is held by a 24Gi, b 24Gi, c 4Gi, and 1 more"},
		"three pods and no more": {ledger.Answer{Excess: excess, Pods: pods[:3]},
			false, "memory left: 4Gi; most is held by a 24Gi, b 24Gi, c 4Gi"},
		"a shared budget": {ledger.Answer{Excess: excess, Pods: pods[:1]}, true,
			"memory left: 4Gi; most of team-a's part is held by c 4Gi; the budget is shared with other namespaces"},
		"a second create of one name": {
			ledger.Answer{Excess: excess, Reserved: []ledger.Reservation{
				{Name: "train", CreatedAt: at, Holding: gi(6)}, {Name: "train", CreatedAt: at.Add(time.Second), Holding: gi(8)},
				{Name: "new", CreatedAt: at.Add(time.Hour), Holding: gi(8)}}},
			false, "memory left: 4Gi; 8Gi of what is used is reserved for pods that were admitted and are not listed, train: try again in a few seconds, or at 2026-01-02T03:05:06Z at the latest"},
	} {
		request.Budget.Namespaces = []string{"team-a"}
		if c.shared {
			request.Budget.Namespaces = append(request.Budget.Namespaces, "team-b")
		}
		got := quota.Denial(withHolders(request, c.answer)).Detail
		if want := "team-a, requested: memory=8Gi, used: memory=60Gi, limited: memory=64Gi (" + c.want + ")"; got != want {
			t.Errorf("%s:\n%s, want\n%s", name, got, want)
		}
		if excess[0].Note != "" {
			t.Errorf("%s: the ledger's answer was changed", name)
		}
	}
	var hostile ledger.Answer
	hostile.Excess = excess
	for i := range 5000 {
		name := fmt.Sprintf("%04d%s", i, strings.Repeat("x", 249))
		hostile.Pods = append(hostile.Pods, ledger.Pod{Name: name, Holding: gi(1)})
		hostile.Reserved = append(hostile.Reserved, ledger.Reservation{Name: name, CreatedAt: at, Holding: gi(1)})
	}
	if n := len(quota.Denial(withHolders(request, hostile)).Detail); n > 900 {
		t.Errorf("%d bytes of names that a tenant chose", n)
	}
}

// TestWithHoldersOfResourceQuota: the excess of a ResourceQuota counts units of its resource.
func TestWithHoldersOfResourceQuota(t *testing.T) {
	t.Parallel()
	units := func(n int64) quota.Holding {
		return quota.Holding{Namespace: "team-a", Units: map[string]int64{api.ResourceGPU: n}}
	}
	most := int64(2)
	limits := quota.Quota{
		Limits: []quota.Limit{{Name: "ours", Scope: quota.Scope{Resource: api.ResourceGPU}, Limits: quota.Limits{GPUs: &most}, Native: true}},
	}
	request := ledger.Request{Budget: ledger.Budget{Namespaces: []string{"team-a"}}, Quota: limits, Name: "new", Holding: units(1)}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	got := withHolders(request, ledger.Answer{
		Excess:   limits.Excess(func(quota.Scope) quota.Charge { return quota.Charge{GPUs: 2} }, units(1)),
		Pods:     []ledger.Pod{{Name: "train", Holding: units(2)}, {Name: "web", Holding: quota.Holding{Namespace: "team-a"}}},
		Reserved: []ledger.Reservation{{Name: "next", CreatedAt: at, Holding: units(1)}},
	})
	want := "requests.nvidia.com/gpu left: 0; most is held by train 2; " +
		"1 of what is used is reserved for pods that were admitted and are not listed, next: try again in a few seconds, or at 2026-01-02T03:05:05Z at the latest"
	if len(got) != 1 || got[0].Note != want {
		t.Errorf("%+v, want the note %q", got, want)
	}
}
