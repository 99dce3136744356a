package inventory

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// The beginning of a file.
const (
	Kind   = "Fleet"
	Format = 1
)

// Fleet is the state of one cluster at one time. Nodes, pods and pools are in the order of their names.
type Fleet struct {
	Header
	Taken   time.Time `json:"taken"`
	Version string    `json:"version,omitempty"` // of the gpuslice that wrote it
	// Hashed reports whether names were replaced.
	Hashed bool     `json:"hashed,omitzero"`
	Unread []string `json:"unread,omitempty"` // failed reads, and their reasons, a sentence each
	Notes  []string `json:"notes,omitempty"`  // resources that are left out on purpose, a sentence each
	Pools  []Pool   `json:"pools"`
	Nodes  []Node   `json:"nodes"` // those with GPUs
	Pods   []Pod    `json:"pods"`  // those that request GPUs, ended ones too while the cluster lists them
	Quotas []Quota  `json:"quotas,omitempty"`
}

// Header identifies a file and its format.
type Header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Format     int    `json:"format"`
}

// New is a Fleet without anything.
func New(taken time.Time) *Fleet {
	return &Fleet{Header: Header{config.APIVersion, Kind, Format}, Taken: taken.UTC().Truncate(time.Second),
		Pools: []Pool{}, Nodes: []Node{}, Pods: []Pod{}}
}

// Resources are amounts by the name of the resource: cpu in thousandths of a core, memory and ephemeral-storage in bytes, anything
// else in units.
type Resources map[string]int64

// Plus adds b to r, up to MaxQuantity of each.
func (r Resources) Plus(b Resources) {
	for name, n := range b {
		r[name] = min(r[name]+min(n, MaxQuantity), MaxQuantity)
	}
}

// IsGPU reports whether a resource is one of GPUs: see pools.IsGPU.
func (f *Fleet) IsGPU(name string) bool {
	return pools.IsGPU(name, nil) || slices.ContainsFunc(f.Pools, func(p Pool) bool { return p.Resource == name })
}

// Pool is a common offer of some nodes.
type Pool struct {
	Name     string           `json:"name"`
	Resource string           `json:"resource,omitempty"` // that pods request
	Class    string           `json:"class,omitempty"`    // DeviceClass that pods claim from; "": device plugins offer the pool
	Strategy api.StrategyName `json:"strategy,omitempty"` // "": unknown
	Product  string           `json:"product,omitempty"`
	// DeviceMemory is that of the whole card, InstanceMemory that of a MIG instance, Slice the largest slice. 0: unknown, or none.
	DeviceMemory   api.MiB `json:"deviceMemory,omitzero"`
	InstanceMemory api.MiB `json:"instanceMemory,omitzero"`
	Slice          api.MiB `json:"slice,omitzero"`
	Reserve        api.MiB `json:"reserve,omitzero"`  // kept free of a device, or beside each claim
	Replicas       int     `json:"replicas,omitzero"` // of one device or instance; 0: unknown
	Share          float64 `json:"share,omitzero"`    // of a device, that one unit is; 0: unknown, or each claim's own
	Granular       bool    `json:"granular,omitzero"` // a slice may be several replicas of the one device of a node
	MIGProfile     string  `json:"migProfile,omitempty"`
	Claims         bool    `json:"claims,omitzero"` // each claim takes the memory that it names
	Driver         string  `json:"driver,omitempty"`
}

// Node is a node with GPUs.
type Node struct {
	Name          string            `json:"name"`
	Labels        map[string]string `json:"labels,omitempty"`
	Taints        []corev1.Taint    `json:"taints,omitempty"`
	Unschedulable bool              `json:"unschedulable,omitzero"`
	NotReady      bool              `json:"notReady,omitzero"`
	Allocatable   Resources         `json:"allocatable,omitempty"`
	// Others is the node's resources that pods without GPUs request. Their number is under "pods".
	Others Resources `json:"others,omitempty"`
	GPUs   GPUs      `json:"gpus,omitzero"`
	Offers []Offer   `json:"offers,omitempty"`
}

// GPUs are the devices of a node, of one model, as labels and ResourceSlices have them.
type GPUs struct {
	Product string  `json:"product,omitempty"`
	Count   int     `json:"count,omitzero"`   // 0: unknown
	Memory  api.MiB `json:"memory,omitzero"`  // of each; 0: unknown
	MIG     bool    `json:"mig,omitzero"`     // they can be divided by MIG
	Derived bool    `json:"derived,omitzero"` // Count follows from the number of MIG instances, which need at least that many
}

// Offer is how many units of a pool a node has: replicas, MIG instances, or devices that pods claim from.
type Offer struct {
	Pool  string `json:"pool"`
	Units int64  `json:"units"`
}

// Pod is a pod that requests GPUs.
type Pod struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels,omitempty"`
	Owner     Owner             `json:"owner,omitzero"` // its controller
	Node      string            `json:"node,omitempty"` // "": the pod waits
	Phase     corev1.PodPhase   `json:"phase"`
	Created   time.Time         `json:"created,omitzero"`
	Bound     time.Time         `json:"bound,omitzero"` // to the node
	Ended     time.Time         `json:"ended,omitzero"` // zero: the pod goes on, or its end is not known

	Requests      Resources                         `json:"requests,omitempty"` // as the scheduler counts them
	Priority      int32                             `json:"priority,omitzero"`
	SchedulerName string                            `json:"schedulerName,omitempty"`
	NodeSelector  map[string]string                 `json:"nodeSelector,omitempty"`
	Affinity      *corev1.Affinity                  `json:"affinity,omitempty"`
	Tolerations   []corev1.Toleration               `json:"tolerations,omitempty"`
	Spread        []corev1.TopologySpreadConstraint `json:"spread,omitempty"`

	Slices []Slice `json:"slices,omitempty"` // gpuslice's slices; none: the pod holds the resources in Requests
	// Claims is how many ResourceClaims the pod has beside those of its slices. Their devices are unknown.
	Claims  int    `json:"claims,omitzero"`
	Waiting string `json:"waiting,omitempty"` // why it is not bound: the scheduler's sentence
}

// Over reports whether the pod holds nothing any more.
func (p *Pod) Over() bool { return p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed }

// Owner names a controller.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Slice is the slice of one container.
type Slice struct {
	Container string `json:"container"`
	Pool      string `json:"pool,omitempty"` // that was planned
	Resource  string `json:"resource,omitempty"`
	Count     int64  `json:"count,omitzero"` // of the resource
	// Requested is the memory that the pod's author wrote, or Fraction the part of a device; neither: a class, or nothing.
	Requested api.MiB          `json:"requested,omitzero"`
	Fraction  float64          `json:"fraction,omitzero"`
	Memory    api.MiB          `json:"memory,omitzero"`
	Limit     api.MiB          `json:"limit,omitzero"`   // that it may reach while nobody else needs it
	Compute   int              `json:"compute,omitzero"` // percent
	Strategy  api.StrategyName `json:"strategy,omitempty"`
	Tier      api.Tier         `json:"tier,omitempty"`     // the strongest that was planned
	Observed  api.Tier         `json:"observed,omitempty"` // the strongest that was found; "": nothing was observed
	Usage     []Usage          `json:"usage,omitempty"`    // of each device; none: unknown
}

// Usage is a container's use of one device.
type Usage struct {
	Device      string   `json:"device,omitempty"` // UUID
	UsedBytes   int64    `json:"usedBytes"`
	PeakBytes   int64    `json:"peakBytes"`                  // since the container started
	Utilization *float64 `json:"utilizationRatio,omitempty"` // of the device's multiprocessors
}

// Quota is how one budget stands.
type Quota struct {
	Budget     string         `json:"budget"` // "namespace/NAME" or "shared/NAME"
	Namespaces []string       `json:"namespaces"`
	Figures    []quota.Figure `json:"figures"`
}
