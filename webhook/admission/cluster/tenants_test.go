package cluster

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/clustertest"
)

// BenchmarkFiveThousandTenants is what one tenant's write costs a replica that knows 5,000 documents, and what a request
// costs that meets one of them.
func BenchmarkFiveThousandTenants(b *testing.B) {
	var maps []*corev1.ConfigMap
	for n := range 5000 {
		maps = append(maps, clustertest.TenantMap(fmt.Sprintf("team-%d", n), "limits: {perContainer: {memory: 4Gi}}\nquota: {memory: 16Gi}"))
	}
	tenants, _ := readTenants(maps, nil)
	b.Run("all for the first time", func(b *testing.B) {
		for b.Loop() {
			readTenants(maps, nil)
		}
	})
	b.Run("one of them written", func(b *testing.B) {
		for b.Loop() {
			maps[7] = maps[7].DeepCopy()
			readTenants(maps, tenants)
		}
	})
	b.Run("a request", func(b *testing.B) {
		s := ReadSnapshot(Objects{Tenants: maps,
			Policies: []*corev1.ConfigMap{clustertest.PolicyMap("default", 10, "limits: {perContainer: {memory: 8Gi}}")}})
		for b.Loop() {
			if s.Input(api.Namespace{Name: "team-7"}).Policy.Limits.PerContainer.Memory != 4<<10 {
				b.Fatal("it is not tightened")
			}
		}
	})
}
