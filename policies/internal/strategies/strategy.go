package strategies

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// Strategy is one way to share a device. Differences between strategies follow from these properties: only a strategy's
// own file knows its name.
type Strategy struct {
	Name api.StrategyName
	// Doc is one line for people.
	Doc string
	// Unit is the meaning of one unit of a pool's resource.
	Unit Unit
	// OnInstances reports whether the instances of a partitioned device can be used in this way.
	OnInstances bool
	// MaxReplicas is the most units that one device or instance can be shared as.
	MaxReplicas int
	// Granular reports whether the units of one device can be parts of it, of which a container takes several.
	Granular bool
	// Claims reports whether a slice is a claim of memory on a device, whose free memory the scheduler knows, and not
	// so many units of a resource.
	Claims bool
	// Listed reports whether policies that list no strategies leave this one out.
	Listed bool
	// MPS reports whether containers are clients of an MPS daemon, which a provider runs.
	MPS bool
	// DriverLimits reports whether the driver's own memory limits can hold a slice.
	DriverLimits bool
	// HoldsCompute reports whether a container is held to a percentage of the multiprocessors.
	HoldsCompute bool
	// OwnCompute is why no percentage of the multiprocessors needs to be held; "": it would have to be.
	OwnCompute string
	// View is the device's memory as a framework sees it under this strategy.
	View frameworks.View
	// Tier is the enforcement that the strategy itself brings, before driver, guard and framework.
	Tier api.Tier
	// Labels are the words of node labels for the strategy.
	Labels map[LabelSource]string
	// Unlabeled reports whether devices are shared in this way where GPU feature discovery counts several replicas and
	// has no word for how: releases from before MPS wrote none.
	Unlabeled bool
	// Await is the resource that a pod requests while no pool of the strategy is known; "": none can be guessed.
	Await string
	// Inject returns the settings of a container in a slice beyond the resource: variables, mounts and volumes.
	Inject func(Grant) Injection
	// Requires returns why a container of the pod may not use the strategy on a pool; nil: it always may.
	Requires func(*Placement) *api.Violation
	// Note names the limits that the strategy does not enforce on a pool, for the enforcement planned; nil or "": none.
	Note func(*Placement) string
}

// Unit is the meaning of one unit of a pool's resource.
type Unit int

// The units. The zero Unit is that of no strategy.
const (
	UnitShare    Unit = iota + 1 // one of several replicas of a device or instance
	UnitInstance                 // an instance of a partitioned device
	UnitDevice                   // a whole device
)

// LabelSource is the writer of node labels that show how GPUs are shared.
type LabelSource int

// The sources.
const (
	LabelsDiscovery LabelSource = iota + 1 // NVIDIA's GPU feature discovery
	LabelsGKE
)

// Grant is one container's slice on the pool it was planned for.
type Grant struct {
	Provider     *Provider
	DriverLimits bool // the driver's own memory limit is known to hold on the pool
	MPS          MPSSpec
	Slice        quantity.MiB
	Limit        quantity.MiB
	GPUs         int64
	Processes    int
	Compute      int // percent; 0: not requested
	Container    *corev1.Container
}

// Placement is a container of a pod on a pool that it could use.
type Placement struct {
	Namespace   api.Namespace
	Policy      string // its name
	MPS         MPSSpec
	Pool        string // its name
	TrustDomain string // of the pool's nodes
	Provider    *Provider
	Pod         *corev1.PodSpec
	Container   *corev1.Container // nil where only the pool matters
	Compute     int               // percent that its author requests
	Burst       quantity.MiB      // memory-limit above the slice; 0: none
}

// Injection holds a strategy's additions to a container, and the volumes that its mounts name.
type Injection struct {
	Env     []podspec.Variable
	Mounts  []corev1.VolumeMount
	Volumes []corev1.Volume
}

// Shared reports whether several pods can be on one device or instance.
func (s *Strategy) Shared() bool { return s.Unit == UnitShare }

// Whole reports whether a container gets whole devices.
func (s *Strategy) Whole() bool { return s.Unit == UnitDevice }

// Several reports whether a container may request more than one unit of the pool's resource, or devices of its claim.
func (s *Strategy) Several() bool { return s.Unit == UnitInstance || s.Unit == UnitDevice || s.Claims }

// driverLimit writes the two variables from which the container toolkit (1.20.1 or later) sets the driver's own limit.
// Its hook fails the container where that limit cannot be set (a driver before 615, cgroup v1), so only pools that are
// known to hold it get them.
func driverLimit(g Grant) Injection {
	if g.Slice == 0 || !g.DriverLimits {
		return Injection{}
	}
	return Injection{Env: []podspec.Variable{
		{Name: nvidia.EnvDriverLimit, Value: strconv.FormatInt(int64(g.Limit), 10)},
		{Name: nvidia.EnvDriverRequest, Value: strconv.FormatInt(int64(g.Slice), 10)},
	}}
}

// LabelTrustDomain is a label of nodes: the tenants that may share their devices. It keeps pools apart.
const LabelTrustDomain = api.Domain + "/trust-domain"
