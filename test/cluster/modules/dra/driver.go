package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// gpu is a device of the node, or with a profile a MIG instance.
type gpu struct {
	name, uuid, profile string
	memory              resource.Quantity
}

// driver answers the kubelet. All that it keeps of a claim is the claim's CDI specification.
type driver struct {
	name, node, specs, product, release string
	shares                              int64
	devices                             []gpu
}

// resources are one pool with one slice.
func (d *driver) resources() resourceslice.DriverResources {
	var devices []resourcev1.Device
	for _, g := range d.devices {
		if g.profile != "" {
			devices = append(devices, d.instance(g))
			continue
		}
		devices = append(devices, d.published(g))
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.node: {Slices: []resourceslice.Slice{{Devices: devices}}}}}
}

// instance is a MIG instance in the form in which NVIDIA's driver publishes it: for one claim as a whole.
func (d *driver) instance(g gpu) resourcev1.Device {
	kind := "mig"
	return resourcev1.Device{
		Name: g.name,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type":          {StringValue: &kind},
			"uuid":          {StringValue: &g.uuid},
			"profile":       {StringValue: &g.profile},
			"productName":   {StringValue: &d.product},
			"driverVersion": {VersionValue: &d.release},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: g.memory}},
	}
}

// published is a device in the form in which NVIDIA's driver publishes it with --consumable-shares.
func (d *driver) published(g gpu) resourcev1.Device {
	shared, kind := true, "gpu"
	least, byDefault := resource.MustParse("1Mi"), g.memory
	if d.shares > 0 {
		least, byDefault = resource.Quantity{}, resource.Quantity{}
	}
	step := resource.MustParse("1Mi")
	out := resourcev1.Device{
		Name:                     g.name,
		AllowMultipleAllocations: &shared,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type":          {StringValue: &kind},
			"uuid":          {StringValue: &g.uuid},
			"productName":   {StringValue: &d.product},
			"driverVersion": {VersionValue: &d.release},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
			"memory": {Value: g.memory, RequestPolicy: &resourcev1.CapacityRequestPolicy{
				Default: &byDefault, ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: &least, Max: &g.memory, Step: &step},
			}},
		},
	}
	if all, one := resource.NewQuantity(d.shares, resource.DecimalSI), resource.NewQuantity(1, resource.DecimalSI); d.shares > 0 {
		out.Capacity["shares"] = resourcev1.DeviceCapacity{Value: *all, RequestPolicy: &resourcev1.CapacityRequestPolicy{
			Default: one, ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: one, Max: all, Step: one},
		}}
	}
	return out
}

// PrepareResourceClaims writes the devices of these claims' containers. Called twice, it writes the same twice.
func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resourcev1.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		devices, err := d.prepare(claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
		fmt.Printf("prepare %s/%s: %d devices, %v\n", claim.Namespace, claim.Name, len(devices), err)
	}
	return results, nil
}

func (d *driver) prepare(claim *resourcev1.ResourceClaim) ([]kubeletplugin.Device, error) {
	var parts []part
	var devices []kubeletplugin.Device
	for _, given := range claim.Status.Allocation.Devices.Results {
		if given.Driver != d.name {
			continue
		}
		i := slices.IndexFunc(d.devices, func(g gpu) bool { return g.name == given.Device })
		if i < 0 {
			return nil, fmt.Errorf("device %s is not on this node", given.Device)
		}
		memory := given.ConsumedCapacity["memory"]
		p := part{name: fmt.Sprintf("%s-%d", claim.UID, len(parts)), uuid: d.devices[i].uuid, memory: memory.Value()}
		parts = append(parts, p)
		devices = append(devices, kubeletplugin.Device{Requests: []string{given.Request}, PoolName: given.Pool, DeviceName: given.Device,
			ShareID: given.ShareID, CDIDeviceIDs: []string{d.kind() + "=" + p.name}})
	}
	return devices, d.write(claim.UID, parts)
}

// UnprepareResourceClaims forgets claims, known or not.
func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = d.remove(claim.UID)
	}
	return results, nil
}

// HandleError prints what goes wrong in the background.
func (d *driver) HandleError(_ context.Context, err error, message string) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", message, err)
}
