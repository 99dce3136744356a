package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

func TestTally(t *testing.T) {
	t.Run("its sums are those of a new Tally", func(t *testing.T) {
		// The reservations are random and have few names.
		random := rand.New(rand.NewPCG(3, 4))
		batch := accounting.NativeQuotasOf(batchQuota())[0]
		scopes := []quota.Scope{{}, {Namespace: "a"}, {Pool: "p"}, {Class: "c"}, {Resource: api.ResourceGPU},
			{Namespace: "a", Resource: api.ResourceGPU, Pods: batch.Scope.Pods}}
		for range 200 {
			tally := ledger.NewTally(ledger.State{Base: []quota.Holding{{Namespace: "a", Charge: quota.Charge{Slices: random.Int64N(9)}}}})
			for i := range 30 {
				h := quota.Holding{Namespace: string("ab"[random.IntN(2)]), Charge: quota.Charge{Slices: random.Int64N(5)}}
				if random.IntN(2) == 0 {
					h.Pools, h.Classes = []string{"p"}, map[string]quota.Charge{"c": h.Charge}
				}
				if random.IntN(2) == 0 {
					h.Units, h.Traits.PriorityClass = map[string]int64{api.ResourceGPU: random.Int64N(5)}, []string{"", "batch"}[random.IntN(2)]
				}
				r := ledger.Reservation{PodUID: fmt.Sprint(i), Name: fmt.Sprint(random.IntN(6)), Holding: h}
				for _, scope := range scopes {
					limits := quota.Limits{Slices: new(random.Int64N(40)), GPUs: new(random.Int64N(20))}
					limit := quota.Quota{Limits: []quota.Limit{{Scope: scope, Limits: limits}}}
					if got, want := tally.Excess(limit, r), ledger.NewTally(tally.State()).Excess(limit, r); fmt.Sprint(got) != fmt.Sprint(want) {
						t.Fatalf("scope %+v of %+v: %v, added up anew %v", scope, tally.State(), got, want)
					}
				}
				tally.Reserve(r)
				if !tally.Has(r) {
					t.Fatal("what was reserved is not there")
				}
			}
		}
	})
	t.Run("a reservation that differs in anything is another", func(t *testing.T) {
		same := func() ledger.Reservation {
			return ledger.Reservation{PodUID: "1", Name: "p", Holding: quota.Holding{Namespace: "a", Charge: quota.Charge{Slices: 1},
				Units: map[string]int64{api.ResourceGPU: 1}}}
		}
		tally := ledger.NewTally(ledger.State{})
		tally.Reserve(same())
		for name, change := range map[string]func(*ledger.Reservation){
			"pod":       func(r *ledger.Reservation) { r.PodUID = "2" },
			"name":      func(r *ledger.Reservation) { r.Name = "q" },
			"namespace": func(r *ledger.Reservation) { r.Holding.Namespace = "b" },
			"charge":    func(r *ledger.Reservation) { r.Holding.Charge.Slices = 2 },
			"units":     func(r *ledger.Reservation) { r.Holding.Units[api.ResourceGPU] = 2 },
			"traits":    func(r *ledger.Reservation) { r.Holding.Traits.BestEffort = true },
		} {
			other := same()
			if change(&other); !tally.Has(same()) || tally.Has(other) {
				t.Errorf("%s: the same is there %v, another is there %v", name, tally.Has(same()), tally.Has(other))
			}
		}
	})
	t.Run("reservations of one name count by their maximum", func(t *testing.T) {
		s := ledger.State{Base: []quota.Holding{{Namespace: "a", Charge: quota.Charge{Slices: 1}}}}
		for i, slices := range []int64{2, 5, 3} {
			s.Reservations = append(s.Reservations,
				ledger.Reservation{PodUID: fmt.Sprint(i), Name: "same", Holding: quota.Holding{Namespace: "a", Charge: quota.Charge{Slices: slices}}})
		}
		s.Reservations = append(s.Reservations,
			ledger.Reservation{PodUID: "9", Name: "same", Holding: quota.Holding{Namespace: "b", Charge: quota.Charge{Slices: 10}}})
		if got := s.Used(quota.Scope{}).Slices; got != 1+5+10 {
			t.Errorf("%d slices, want 16", got)
		}
		if got := s.Used(quota.Scope{Namespace: "a"}).Slices; got != 6 {
			t.Errorf("%d slices of namespace a, want 6", got)
		}
	})
	t.Run("the base distinguishes what scopes distinguish", func(t *testing.T) {
		pod := func(uid, priority string) ledger.Pod {
			return ledger.Pod{UID: uid, Name: uid, Holding: quota.Holding{Namespace: "a", Charge: quota.Charge{Slices: 1},
				Units: map[string]int64{api.ResourceGPU: 1}, Traits: quota.Traits{PriorityClass: priority}}}
		}
		s := ledger.State{}.WithList(ledger.Listing{Namespaces: []ledger.Namespace{{Name: "a"}},
			Pods: []ledger.Pod{pod("1", "batch"), pod("2", ""), pod("3", "batch")}})
		batch := quota.Scope{Namespace: "a", Resource: api.ResourceGPU, Pods: accounting.NativeQuotasOf(batchQuota())[0].Scope.Pods}
		if got, all := s.Used(batch).GPUs, s.Used(quota.Scope{Resource: api.ResourceGPU}).GPUs; got != 2 || all != 3 {
			t.Errorf("%d of priority batch and %d in all, want 2 and 3", got, all)
		}
	})
}

// batchQuota is a ResourceQuota for the pods of one priority.
func batchQuota() *corev1.ResourceQuota {
	return &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("2")},
		ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"batch"}}}},
	}}
}
