package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies/api"
)

// TestInstances has claims of a pod that might get an instance: only what the scheduler gave this pod counts.
func TestInstances(t *testing.T) {
	for name, tt := range map[string]struct {
		request string
		owner   types.UID
		tier    api.Tier
	}{
		"an instance":                  {"gpu/mig", "uid-1", api.TierHardware},
		"a share":                      {"gpu/share", "uid-1", api.TierGuard},
		"another pod's":                {"gpu/mig", "uid-2", api.TierGuard},
		"a request of somebody else's": {"mig", "uid-1", api.TierGuard},
	} {
		t.Run(name, func(t *testing.T) {
			s := started(t, "claim")
			claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.pod.Namespace, Name: "train-gpuslice-x",
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: s.pod.Name, UID: tt.owner, Controller: new(true)}}}}
			claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Request: tt.request, Driver: "gpu.nvidia.com", Pool: s.node.Name, Device: "gpu-0-mig-19-0-1"}}}}
			s.pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: s.promise.Containers[0].Claim, ResourceClaimName: &claim.Name}}
			inLab(t, func(l *lab) {
				r := l.replica("a")
				defer r.stop()
				o := l.observed()
				if o.State != Enforced || o.Tier != tt.tier || (len(o.Better) > 0) != (tt.tier == api.TierHardware) {
					t.Errorf("observed %+v", o)
				}
				if got := l.pod().Annotations[api.AnnotationSummary]; got != s.promise.Summary(tt.tier) {
					t.Errorf("summary %q", got)
				}
				var want []string
				if tt.tier == api.TierHardware {
					want = []string{"Pod/train GPUSliceBetterThanPlanned"}
				}
				if diff := cmp.Diff(want, l.events()); diff != "" {
					t.Errorf("events (-want +got)\n%s", diff)
				}
			}, s.pod, s.node, claim)
		})
	}
}
