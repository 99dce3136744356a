package pools

import (
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/mig"
)

// Attributes and capacities of a GPU in a ResourceSlice. Those of a driver's own stand with or without its name.
const (
	attributeType    = "type"
	attributeProfile = "profile"
	attributeProduct = "productName"
	attributeRelease = "driverVersion"
	capacityMemory   = "memory"
	capacityShares   = "shares"
)

// typeGPU is the type of a GPU as NVIDIA's driver writes it.
const typeGPU = "gpu"

// device is a GPU or MIG instance as its driver publishes it. Drivers write it on nodes: unreadable values are unknown.
type device struct {
	kind, profile, product string
	memory                 quantity.MiB
	units                  int // requests without an amount that it has room for; 0: any number, or more than can be counted
	claims                 claimable
	major, minor           int
}

// readDevice reads a device; ok is false where it is no GPU.
func readDevice(driverName string, in *resourcev1.Device) (d device, ok bool) {
	a := attributes{driverName, in.Attributes}
	d = device{kind: a.text(attributeType), profile: a.text(attributeProfile),
		product: strings.ReplaceAll(a.text(attributeProduct), " ", "-"), units: unitsOf(in)}
	if len(validation.IsValidLabelValue(d.product)) > 0 {
		d.product = ""
	}
	d.claims = claimableOf(driverName, in)
	d.major, d.minor = nvidia.DriverVersion(a.text(attributeRelease))
	for name, c := range in.Capacity {
		if unqualified(driverName, name) != capacityMemory {
			continue
		}
		d.memory = mebibytes(c.Value)
	}
	return d, d.memory > 0 && (d.profile == "" || mig.NamesResource(d.profile))
}

// mebibytes is an amount in whole MiB; 0 where it is none that a device has.
func mebibytes(q resource.Quantity) quantity.MiB {
	bytes, exact := q.AsInt64()
	if !exact || bytes <= 0 || bytes > quantity.MaxMemory.Bytes() {
		return 0
	}
	return quantity.MiB(bytes / quantity.Mebibyte)
}

// claimable is the part of a device that a claim can have; the zero value: nothing but all of it.
type claimable struct {
	largest quantity.MiB
	shares  bool // are counted beside the memory
}

// claimableOf returns the claimable part of a device whose memory any number of claims share. A claim that names no
// amount takes all of it: else pods that get the device by a resource name would count for nothing. A claim could not
// name the device's other capacities.
func claimableOf(driverName string, d *resourcev1.Device) (out claimable) {
	if unitsOf(d) != 1 || d.AllowMultipleAllocations == nil || !*d.AllowMultipleAllocations {
		return claimable{}
	}
	for name, c := range d.Capacity {
		policy := c.RequestPolicy
		switch unqualified(driverName, name) {
		case capacityShares:
			out.shares = true
			if !countsBy(policy, 1) {
				return claimable{}
			}
		case capacityMemory:
			out.largest = mebibytes(c.Value)
			if policy != nil && policy.ValidRange != nil && policy.ValidRange.Max != nil {
				out.largest = min(out.largest, mebibytes(*policy.ValidRange.Max))
			}
			if !countsBy(policy, quantity.Mebibyte) || policy != nil && policy.Default != nil && policy.Default.Cmp(c.Value) < 0 {
				return claimable{}
			}
		default:
			return claimable{}
		}
	}
	return out
}

// countsBy reports whether each multiple of the unit can be claimed as it is: Kubernetes rounds others up, to more than is charged.
func countsBy(policy *resourcev1.CapacityRequestPolicy, unit int64) bool {
	switch {
	case policy == nil:
		return true
	case len(policy.ValidValues) > 0:
		return false
	case policy.ValidRange == nil || policy.ValidRange.Min == nil:
		return true
	}
	least, step := policy.ValidRange.Min.Value(), int64(1)
	if policy.ValidRange.Step != nil {
		step = max(policy.ValidRange.Step.Value(), 1)
	}
	return least <= unit && unit%step == 0 && (unit-least)%step == 0
}

// resource is the name by which pods request the device, where a device class offers it.
func (d *device) resource() string {
	if d.profile != "" {
		return nvidia.MIGPrefix + d.profile
	}
	return api.ResourceGPU
}

// unitsOf returns how many requests that name no amount fit one device. They take their default of an unnamed capacity:
// all of it if it has none.
func unitsOf(d *resourcev1.Device) int {
	if d.AllowMultipleAllocations == nil || !*d.AllowMultipleAllocations {
		return 1
	}
	least := int64(0)
	for _, c := range d.Capacity {
		taken := c.Value
		if c.RequestPolicy != nil && c.RequestPolicy.Default != nil {
			taken = *c.RequestPolicy.Default
		}
		if taken.Sign() <= 0 || c.Value.Sign() <= 0 {
			continue
		}
		if n := c.Value.Value() / max(taken.Value(), 1); least == 0 || n < least {
			least = n
		}
	}
	if least > quantity.MaxReplicas {
		return 0
	}
	return int(least)
}

// attributes are those of a device.
type attributes struct {
	driver string
	all    map[resourcev1.QualifiedName]resourcev1.DeviceAttribute
}

// text is an attribute that is a string or a version; "" where there is none.
func (a attributes) text(name string) string {
	for key, value := range a.all {
		switch {
		case unqualified(a.driver, key) != name:
		case value.StringValue != nil:
			return *value.StringValue
		case value.VersionValue != nil:
			return *value.VersionValue
		}
	}
	return ""
}

// unqualified is a name without its domain where that is the driver's.
func unqualified(driver string, name resourcev1.QualifiedName) string {
	return strings.TrimPrefix(string(name), driver+"/")
}
