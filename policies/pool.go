package policies

import corev1 "k8s.io/api/core/v1"

// Pool is a set of nodes that offer the same. PoolsFromNodes derives pools from Node objects; policy may declare them.
type Pool struct {
	Name     string       `json:"name"`
	Resource string       `json:"resource"` // what the nodes advertise: "nvidia.com/gpu.shared"
	Strategy StrategyName `json:"strategy"`
	// Site names the nodes: pools with one site are offered by the same nodes (the MIG profiles of a mixed node).
	Site           string      `json:"site"`
	Product        string      `json:"product,omitempty"`
	DeviceMemory   MiB         `json:"deviceMemory,omitzero"`   // T, the whole card; 0: unknown
	InstanceMemory MiB         `json:"instanceMemory,omitzero"` // of a MIG instance
	Reserve        MiB         `json:"reserve,omitzero"`        // kept free on a shared device
	Replicas       int         `json:"replicas,omitempty"`      // of one device; 1: not shared
	MIGProfile     string      `json:"migProfile,omitempty"`    // "1g.10gb"
	MPSProvider    MPSProvider `json:"mpsProvider,omitempty"`
	DriverMajor    int         `json:"driverMajor,omitempty"` // lowest of its nodes; 0: unknown
	DriverMinor    int         `json:"driverMinor,omitempty"`
	DriverLimits   bool        `json:"driverLimits,omitempty"` // the driver's own memory limit is known to hold
	TrustDomain    string      `json:"trustDomain,omitempty"`
	Declared       bool        `json:"declared,omitempty"`
	ScalesFromZero bool        `json:"scalesFromZero,omitempty"`
	// Requirements select the pool's nodes: node labels that an affinity may name.
	Requirements []corev1.NodeSelectorRequirement `json:"requirements,omitempty"`
	// Nodes are those seen, one for each distinct set of labels and taints that a pod's constraints can tell apart.
	// None: remembered or declared; then Labels and Taints stand for the nodes to come.
	Nodes  []PoolNode        `json:"-"`
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
}

// PoolNode is what a pod's own constraints can see of a node.
type PoolNode struct {
	Name   string
	Labels map[string]string
	Taints []corev1.Taint
}

// Usable is the largest slice of one unit of the pool's resource: floor((T - reserve) / replicas) of a shared device,
// an instance's memory under MIG. 0: unknown.
func (p *Pool) Usable() MiB {
	switch {
	case p.InstanceMemory > 0:
		return p.InstanceMemory
	case p.DeviceMemory == 0:
		return 0
	}
	return (p.DeviceMemory - p.Reserve) / MiB(max(p.Replicas, 1))
}

// Burst is the most that a container may reach on the pool while nobody else needs it: T - reserve, or the instance.
func (p *Pool) Burst() MiB {
	if p.InstanceMemory > 0 {
		return p.InstanceMemory
	}
	return max(p.DeviceMemory-p.Reserve, 0)
}

// Total is the device memory that a process on the pool sees as the whole.
func (p *Pool) Total() MiB {
	if p.InstanceMemory > 0 {
		return p.InstanceMemory
	}
	return p.DeviceMemory
}
