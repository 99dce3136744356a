package pools

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
)

// Pool is a set of nodes that offer the same. A Source has pools; policy may declare them.
type Pool struct {
	Name     string `json:"name"`
	Resource string `json:"resource"` // advertised by the nodes: "nvidia.com/gpu.shared"; "" if slices are claims
	// Strategy is how a device is shared; "" if no label shows it, or if labels contradict each other (Notes name
	// them): nothing can be planned there, and a declaration helps.
	Strategy api.StrategyName `json:"strategy"`
	// Site names the nodes: pools with one site are offered by the same nodes (the MIG profiles of a mixed node).
	Site           string       `json:"site"`
	Product        string       `json:"product,omitempty"`
	DeviceMemory   quantity.MiB `json:"deviceMemory,omitzero"`   // of the whole device; 0: unknown
	InstanceMemory quantity.MiB `json:"instanceMemory,omitzero"` // of a MIG instance
	// kept free on a device, or beside a claim; 0 on a MIG instance of one's own
	Reserve      quantity.MiB               `json:"reserve,omitzero"`
	Replicas     int                        `json:"replicas,omitempty"`   // of one device or instance; 1: not shared; 0: unknown
	Granular     bool                       `json:"granular,omitempty"`   // replicas are parts of the one device of each node
	MIGProfile   string                     `json:"migProfile,omitempty"` // "1g.10gb"
	MPSProvider  strategies.MPSProviderName `json:"mpsProvider,omitempty"`
	DriverMajor  int                        `json:"driverMajor,omitempty"` // lowest of its nodes; 0: unknown
	DriverMinor  int                        `json:"driverMinor,omitempty"`
	DriverLimits bool                       `json:"driverLimits,omitempty"` // the driver's own memory limit is known to hold
	TrustDomain  string                     `json:"trustDomain,omitempty"`
	// that offers the resource, or that claims name; "": device plugins do
	DeviceClass     string       `json:"deviceClass,omitempty"`
	DeviceDriver    string       `json:"deviceDriver,omitempty"`    // that publishes the devices of the class
	LargestClaim    quantity.MiB `json:"largestClaim,omitzero"`     // that one device gives; 0: all of it
	ClaimsShares    bool         `json:"claimsShares,omitempty"`    // the driver counts shares of a device beside its memory
	ClaimsInstances bool         `json:"claimsInstances,omitempty"` // of the MIG profile, by NVIDIA's own class
	Declared        bool         `json:"declared,omitempty"`
	ScalesFromZero  bool         `json:"scalesFromZero,omitempty"`
	// Requirements hold for every node of the pool, and together select the nodes with the same offer: they name labels
	// that an affinity may name. A pool without such labels has none.
	Requirements []corev1.NodeSelectorRequirement `json:"requirements,omitempty"`
	// Nodes are the known ones, one for each distinct set of labels and taints that a pod's constraints can tell apart.
	// None: remembered or declared; then Labels and Taints, those that all its nodes shared or that policy declared,
	// stand for the nodes to come.
	Nodes  []nodeKind        `json:"-"`
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
	// Handlers are the runtime handlers that every node reports; none: unknown.
	Handlers []string `json:"handlers,omitempty"`
	// LastSeen is when the last node of a pool that is remembered was seen; zero: it has nodes, or is declared.
	LastSeen time.Time `json:"lastSeen,omitzero"`
	// LastNodes are the nodes that a remembered pool had last, at most 64 of them.
	LastNodes []string `json:"lastNodes,omitempty"`
	// Agents reports whether each node of the pool has an agent, or had one minutes ago: one that is started again takes no
	// longer. A pool without nodes has none.
	Agents bool `json:"-"`
	// Extended are the extended resources that one of its nodes has, sorted.
	Extended []string `json:"-"`
	// GuardFailures are why guards do not count here, by how they reach the driver: the last of them could not read the GPUs.
	GuardFailures map[string]string `json:"-"`
	// Notes are oddities of the pool, for people: contradicting labels, a label that cannot be read.
	Notes []string `json:"notes,omitempty"`
}

// nodeKind is a node as a pod's own constraints see it, for nodes that differ in nothing but their names.
type nodeKind struct {
	// Labels are those of each of the nodes, without the labels that only name or date it.
	Labels map[string]string
	// Taints are the lasting ones: a node's health and a current drain are left out.
	Taints []corev1.Taint
	// Named are the nodes, in the order of their names.
	Named []nodeName
}

// nodeName is how a node can be named by a pod: metadata.name, and its label kubernetes.io/hostname ("": none).
type nodeName struct{ Name, Hostname string }

// Burst is the most that a container may reach on the pool while nobody else needs it: DeviceMemory - Reserve, or the instance.
// 0: unknown.
func (p *Pool) Burst() quantity.MiB {
	return max(p.Total()-p.Reserve, 0)
}

// Total is the device memory that a process on the pool sees as the whole: the device's, or the instance's. 0: unknown.
func (p *Pool) Total() quantity.MiB {
	if p.MIGProfile != "" {
		return p.InstanceMemory
	}
	return p.DeviceMemory
}

// Sharing is the pool's strategy with its properties; the zero Strategy where it is not known.
func (p *Pool) Sharing() *strategies.Strategy { return strategies.Named(p.Strategy) }

// Provider is the provider of the pool's MPS daemon; the zero Provider where it has none.
func (p *Pool) Provider() *strategies.Provider { return strategies.ProviderNamed(p.MPSProvider) }

// keepFree sets the reserve of a device: the larger of a part and an amount, and nothing of a MIG instance that is one
// container's own. Claims add up to the device, so that each takes a little more than its slice.
func (p *Pool) keepFree(spec config.ReserveSpec) {
	if p.Sharing().Claims {
		p.Reserve = spec.BesideClaim()
		return
	}
	percent, memory := spec.Amounts()
	p.Reserve = 0
	if p.Sharing().Unit != strategies.UnitInstance {
		part := (p.Total()*quantity.MiB(percent) + 99) / 100
		p.Reserve = min(max(part, memory), p.Total())
	}
}

// GuardedByAgents reports whether agents guard the slices on the pool under a policy's guard.mode.
func (p *Pool) GuardedByAgents(mode string) bool {
	return mode == modes.GuardAgent || mode != modes.GuardSidecar && p.Agents
}

// siteAwaited is the site of the one pool that stands for nodes nobody knows yet.
const siteAwaited = "unknown"

// Await makes the pool one that is yet to come.
func (p *Pool) Await() { p.Name, p.Site = siteAwaited, siteAwaited }

// Awaited reports whether the pool is yet to come: nothing of it is known but the resource name that the pod will request.
func (p *Pool) Awaited() bool { return p.Site == siteAwaited }

// Remembered reports whether no node offers the pool any more.
func (p *Pool) Remembered() bool { return !p.LastSeen.IsZero() }

// Empty reports whether no node offers the pool, and no declaration has an autoscaler add one: a pod that goes there may wait forever.
func (p *Pool) Empty() bool {
	return p.Remembered() || p.Declared && !p.ScalesFromZero && len(p.Nodes) == 0
}

// Offer is the resource or class that pods request to get a slice of the pool.
func (p *Pool) Offer() string {
	if p.Resource == "" && p.DeviceClass != "" {
		return "claims of DeviceClass " + p.DeviceClass
	}
	return p.Resource
}

// Describe names a pool by a name that users recognize: its MIG profile or its own.
func (p *Pool) Describe() string {
	name := "pool " + p.Name
	if p.MIGProfile != "" {
		name = p.MIGProfile
	}
	if p.Remembered() {
		name += " (no node has offered it since " + p.LastSeen.Format(time.RFC3339) + ")"
	}
	return name
}

// TotalMayBeLimit reports whether the device's whole memory, as a process on the pool sees it, may already be its
// limit: the driver has limits of its own, and the total that it then reports is unknown.
func (p *Pool) TotalMayBeLimit() bool {
	return p.DriverLimits || p.DriverMajor >= nvidia.DriverWithLimits
}

// Driver is the lowest version of the driver on the pool's nodes, without its patch: "580.95"; "": unknown.
func (p *Pool) Driver() string {
	if p.DriverMajor == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d", p.DriverMajor, p.DriverMinor)
}
