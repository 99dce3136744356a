package cluster

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
)

// TestAllocated: of all devices that match, the number counts that was given.
func TestAllocated(t *testing.T) {
	request := func(name string, mode resourcev1.DeviceAllocationMode, count int64) resourcev1.DeviceRequest {
		return resourcev1.DeviceRequest{Name: name,
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", AllocationMode: mode, Count: count}}
	}
	claim := &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		request("all", resourcev1.DeviceAllocationModeAll, 0), request("two", resourcev1.DeviceAllocationModeExactCount, 2),
		request("none", resourcev1.DeviceAllocationModeAll, 0)}}}}
	if Allocated(claim) != &claim.Spec {
		t.Error("a claim without devices does not count as it asks")
	}
	claim.Status.Allocation = &resourcev1.AllocationResult{}
	for _, name := range []string{"all", "two", "two", "all", "all"} {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
			resourcev1.DeviceRequestAllocationResult{Request: name})
	}
	got := Allocated(claim).Devices.Requests
	if got[0].Exactly.Count != 3 || got[0].Exactly.AllocationMode != resourcev1.DeviceAllocationModeExactCount || got[1].Exactly.Count != 2 ||
		got[2].Exactly.AllocationMode != resourcev1.DeviceAllocationModeAll ||
		claim.Spec.Devices.Requests[0].Exactly.AllocationMode != resourcev1.DeviceAllocationModeAll {
		t.Errorf("%+v", got)
	}
}
