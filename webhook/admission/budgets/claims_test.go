package budgets

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/clustertest"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// TestClaims watches a claim of eight devices that a pod names, whose claim was another when the pod was admitted.
func TestClaims(t *testing.T) {
	for policy, want := range map[string]struct {
		basis  ledger.ChargeBasis
		closed string
	}{
		"claims: count\nquota: {memory: 16Gi}": {ledger.BasisUnmanaged, ""},
		"claims: count\nquota: {gpus: 1}":      {ledger.BasisDevices, ""},
		"quota: {gpus: 1}":                     {ledger.BasisUnmanaged, "gpu.nvidia.com,mig.nvidia.com"},
		"enforcementMode: warn\nclaims: deny":  {ledger.BasisUnmanaged, ""},
		"strategies: [mps]":                    {ledger.BasisDevices, ""},
	} {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "x"},
					Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
						Requests: []resourcev1.DeviceRequest{{Name: "r",
							Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", AllocationMode: resourcev1.DeviceAllocationModeAll}}}}}}
				claim.Status.Allocation = &resourcev1.AllocationResult{}
				for range 8 {
					claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
						resourcev1.DeviceRequestAllocationResult{Request: "r"})
				}
				class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.nvidia.com"}}
				was := clustertest.Namespace("team-b", nil)
				was.Annotations = map[string]string{"gpuslice.dev/closed-classes": "x"}
				open := map[string]string{api.LabelFail: api.FailOpenForClaims}
				client := fake.NewClientset(clustertest.Namespace("team-a", nil), was, clustertest.Namespace("team-c", open),
					clustertest.Namespace("team-d", open), claim, class,
					clustertest.PolicyMap("a", 10, "namespaces: {names: [team-a, team-c]}\n"+policy),
					clustertest.PolicyMap("d", 10, "namespaces: {names: [team-d]}\n"), clustertest.PolicyMap("e", 10, "namespaces: {names: [team-d]}\n"))
				client.Discovery().(*fakediscovery.FakeDiscovery).Resources = []*metav1.APIResourceList{{GroupVersion: "resource.k8s.io/v1"}}
				w, end := start(t, client)
				defer end()
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p"},
					Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: new("x")}}}}
				holding, basis := NewBudgets(w).HoldingOf(promise.Keys{}, pod)
				if basis != want.basis || holding.Charge.GPUs != 8 || !holding.MemoryUnknown {
					t.Errorf("holds %+v on basis %v, want %v", holding, basis, want.basis)
				}
				got, err := w.ClosedClasses()
				if err != nil {
					t.Fatal(err)
				}
				if both := "gpu.nvidia.com,mig.nvidia.com"; got["team-c"] != both || got["team-d"] != both { // two policies name the last
					t.Errorf("closed where pods with claims are admitted in outages: %v", got)
				}
				if _, other := got["team-b"]; !other || got["team-a"] != want.closed || strings.Contains(got["team-b"], "x") {
					t.Errorf("closed: %v, want %q of team-a, and nothing of team-b", got, want.closed)
				}
			})
		})
	}
}
