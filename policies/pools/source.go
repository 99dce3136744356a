package pools

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/config"
)

// Source holds the objects that pools are read from: nodes, on which device plugins offer GPUs, and the ResourceSlices
// of drivers of dynamic resource allocation, whose GPUs device classes offer by resource names.
type Source struct {
	Nodes   []*corev1.Node
	Slices  []*resourcev1.ResourceSlice
	Classes map[string]*resourcev1.DeviceClass
}

// FromNodes derives pools where device plugins alone offer GPUs.
func FromNodes(nodes []*corev1.Node, spec config.PoolsSpec, remembered []Pool) []Pool {
	return Source{Nodes: nodes}.Pools(spec, remembered)
}

// Pools derives the pools of a cluster: those that spec declares first, then one for each distinct offer of
// the nodes that no declaration claims, then those remembered that no node offers any more. The order is stable.
//
// A node offers the resources of which its allocatable holds more than 0, under the strategy of its labels, and the
// offers of device classes on its devices. Cordoned nodes count, nodes that are being deleted do not. Neither objects
// nor remembered are changed; labels are shared with nodes only by value.
func (s Source) Pools(spec config.PoolsSpec, remembered []Pool) []Pool {
	live := slices.DeleteFunc(slices.Clone(s.Nodes), func(n *corev1.Node) bool {
		return n == nil || n.DeletionTimestamp != nil
	})
	slices.SortFunc(live, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	byClass := s.offersByClass(live)
	pools := declaredPools(live, byClass, spec, remembered)
	pools = append(pools, derivedPools(live, byClass, spec)...)
	return append(pools, withoutNodes(pools, spec, remembered)...)
}

// Slim drops the fields of a ResourceSlice that pools do not use: a node with dynamic MIG has more than a hundred
// devices.
func (Source) Slim(s *resourcev1.ResourceSlice) {
	s.ManagedFields, s.Annotations, s.Spec.SharedCounters = nil, nil, nil
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		d.ConsumesCounters, d.Taints, d.BindingConditions, d.BindingFailureConditions = nil, nil, nil, nil
		for name := range d.Attributes {
			switch unqualified(s.Spec.Driver, name) {
			case attributeType, attributeProfile, attributeProduct, attributeRelease:
			default:
				delete(d.Attributes, name)
			}
		}
		for name, c := range d.Capacity {
			if c.RequestPolicy == nil && d.AllowMultipleAllocations == nil && unqualified(s.Spec.Driver, name) != capacityMemory {
				delete(d.Capacity, name)
			}
		}
	}
}
