// Package freememory computes the free memory of devices whose memory claims share, and a claim's part of one.
package freememory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/policies/api"
)

// maxDevices bounds the devices that are printed.
const maxDevices = 3

// Device is the free memory of a device.
type Device struct {
	Node, Name string
	Free       api.MiB
}

// Devices are the devices that claims share, the ones with most free memory first.
type Devices []Device

// Requested is the memory that a claim of a template of gpuslice's takes of a device, where it gets a share.
func Requested(t *resourcev1.ResourceClaimTemplate) api.MiB {
	r := &t.Spec.Spec.Devices.Requests[0]
	capacity := &resourcev1.CapacityRequirements{}
	if n := len(r.FirstAvailable); n > 0 {
		capacity = r.FirstAvailable[n-1].Capacity
	} else if r.Exactly != nil {
		capacity = r.Exactly.Capacity
	}
	return toMiB(capacity.Requests[capacityMemory])
}

// capacityMemory is the capacity of devices that claims share.
const capacityMemory = "memory"

// device is one of a driver's pool.
type device struct{ driver, pool, name string }

// Of lists the free memory of published devices, if claims have the rest.
func Of(published []*resourcev1.ResourceSlice, claims []resourcev1.ResourceClaim) (all Devices) {
	taken := takenOf(claims)
	for i := range published {
		s := &published[i].Spec
		for _, d := range s.Devices {
			total := memoryOf(s.Driver, d.Capacity)
			if d.AllowMultipleAllocations == nil || !*d.AllowMultipleAllocations || total == 0 || s.NodeName == nil {
				continue
			}
			all = append(all, Device{*s.NodeName, d.Name, total - taken[device{s.Driver, s.Pool.Name, d.Name}]})
		}
	}
	slices.SortFunc(all, func(a, b Device) int {
		return cmp.Or(cmp.Compare(b.Free, a.Free), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// takenOf adds up the claims' parts of the memory of devices.
func takenOf(claims []resourcev1.ResourceClaim) map[device]api.MiB {
	taken := map[device]api.MiB{}
	for i := range claims {
		if claims[i].Status.Allocation == nil {
			continue
		}
		for _, r := range claims[i].Status.Allocation.Devices.Results {
			for name, amount := range r.ConsumedCapacity {
				if strings.TrimPrefix(string(name), r.Driver+"/") == capacityMemory {
					taken[device{r.Driver, r.Pool, r.Device}] += toMiB(amount)
				}
			}
		}
	}
	return taken
}

// memoryOf is a device's memory.
func memoryOf(driver string, capacity map[resourcev1.QualifiedName]resourcev1.DeviceCapacity) api.MiB {
	for name, c := range capacity {
		if strings.TrimPrefix(string(name), driver+"/") == capacityMemory {
			return toMiB(c.Value)
		}
	}
	return 0
}

// toMiB rounds down: a free amount below a MiB is nothing.
func toMiB(q resource.Quantity) api.MiB { return api.MiB(q.Value() >> 20) }

// Largest is the most that is free of one device.
func (all Devices) Largest() api.MiB {
	if len(all) == 0 {
		return 0
	}
	return max(all[0].Free, 0)
}

// String prints the devices with most free: "9.5Gi on node-1/gpu-1".
func (all Devices) String() string {
	var out []string
	for _, d := range all[:min(len(all), maxDevices)] {
		out = append(out, fmt.Sprintf("%s on %s/%s", max(d.Free, 0).Human(), d.Node, d.Name))
	}
	if len(out) == 0 {
		return "no node has a device that is shared by memory"
	}
	if more := len(all) - len(out); more > 0 {
		out = append(out, cli.AndMore(more))
	}
	return strings.Join(out, ", ")
}
