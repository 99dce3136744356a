package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/cli"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

// maxDevices bounds the devices whose free memory is shown.
const maxDevices = 3

// deviceRoom is what is free of a device whose memory claims share.
type deviceRoom struct {
	node, device string
	free         api.MiB
}

// devices notes for a pod with slices by claim what is free of each device.
func (g *gatherer) devices() {
	templates := policies.Input{Pod: g.facts.pod}.ClaimTemplates()
	if len(templates) == 0 {
		return
	}
	published, err := g.client.ResourceV1().ResourceSlices().List(g.ctx, metav1.ListOptions{})
	if err != nil {
		g.note("free memory of devices is unknown: %v", err)
		return
	}
	claims, err := g.client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(g.ctx, metav1.ListOptions{})
	if err != nil {
		g.note("free memory of devices is unknown, since claims of other namespaces may not be read: %v", err)
		return
	}
	rooms := roomOfDevices(published.Items, claims.Items)
	for _, t := range templates {
		amount := amountOf(&t.Spec.Spec.Devices.Requests[0])
		g.note("%s of a device requested; free: %s", toMiB(amount).Human(), freeOf(rooms))
	}
}

// amountOf is the memory of a device that a request of gpuslice's takes where it gets a share.
func amountOf(r *resourcev1.DeviceRequest) resource.Quantity {
	capacity := &resourcev1.CapacityRequirements{}
	if n := len(r.FirstAvailable); n > 0 {
		capacity = r.FirstAvailable[n-1].Capacity
	} else if r.Exactly != nil {
		capacity = r.Exactly.Capacity
	}
	return capacity.Requests[capacityMemory]
}

// capacityMemory is the capacity of devices that claims share.
const capacityMemory = "memory"

// device is one of a driver's pool.
type device struct{ driver, pool, name string }

// roomOfDevices lists what is free of the devices that claims share, those with most first.
func roomOfDevices(published []resourcev1.ResourceSlice, claims []resourcev1.ResourceClaim) (rooms []deviceRoom) {
	taken := takenOf(claims)
	for i := range published {
		s := &published[i].Spec
		for _, d := range s.Devices {
			total := memoryOf(s.Driver, d.Capacity)
			if d.AllowMultipleAllocations == nil || !*d.AllowMultipleAllocations || total == 0 || s.NodeName == nil {
				continue
			}
			rooms = append(rooms, deviceRoom{*s.NodeName, d.Name, total - taken[device{s.Driver, s.Pool.Name, d.Name}]})
		}
	}
	slices.SortFunc(rooms, func(a, b deviceRoom) int {
		return cmp.Or(cmp.Compare(b.free, a.free), cmp.Compare(a.node, b.node), cmp.Compare(a.device, b.device))
	})
	return rooms
}

// takenOf adds up what claims have taken of the memory of devices.
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

// toMiB rounds down: of what is free, less than a MiB is nothing.
func toMiB(q resource.Quantity) api.MiB { return api.MiB(q.Value() >> 20) }

// freeOf prints what is free of devices.
func freeOf(rooms []deviceRoom) string {
	var out []string
	for _, r := range rooms[:min(len(rooms), maxDevices)] {
		out = append(out, fmt.Sprintf("%s on %s/%s", max(r.free, 0).Human(), r.node, r.device))
	}
	if len(out) == 0 {
		return "no node has a device that is shared by memory"
	}
	if more := len(rooms) - len(out); more > 0 {
		out = append(out, cli.AndMore(more))
	}
	return strings.Join(out, ", ")
}
