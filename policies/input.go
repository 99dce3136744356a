package policies

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/plan"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Pod       *corev1.Pod
	Namespace api.Namespace
	Policy    *config.Policy // nil: no policy governs the namespace
	// PolicyError is why the namespace's policy cannot be used, when no last good version is known. Pods that request
	// a slice are denied with it.
	PolicyError error
	// TenantNotes are notes for authors of pods on the tenant's own document that tightened Policy.
	TenantNotes []string
	Pools       []pools.Pool
	// PoolsComplete reports whether the list of pools is final: a pod that fits none is denied instead of waiting.
	PoolsComplete bool
	// Resources are the names by which nodes and device classes offer devices of any kind, sorted.
	Resources []string
	// DeviceClasses are the cluster's, by name, and Claims the specs of the pod's claims, by the pod's name for each. A
	// claim that is not listed may be a GPU.
	DeviceClasses map[string]*resourcev1.DeviceClass
	Claims        map[string]*resourcev1.ResourceClaimSpec
	// Guard is the location of the guard's image; nil: none can be injected.
	Guard *config.GuardSettings
	// Runtimes are the cluster's facts about a guard's access to the driver.
	Runtimes pools.Runtimes
	// LimitRanges are those of the namespace: the guard's containers keep within them.
	LimitRanges []*corev1.LimitRange
	// Explain requests a report on every candidate, also when one was chosen.
	Explain bool
}

// Tightened is the input with the policy as the tenant's own document (nil: none) tightens it.
func (in Input) Tightened(tenant *config.TenantDocument) Input {
	if tenant != nil && in.Policy != nil {
		in.Policy, in.TenantNotes = tenant.Tighten(in.Policy)
	}
	return in
}

// planning is the part of the input that a plan depends on.
func (in *Input) planning() *plan.Input {
	return &plan.Input{
		Pod: in.Pod, Namespace: in.Namespace, Policy: in.Policy, Pools: in.Pools, PoolsComplete: in.PoolsComplete,
		Guard: in.Guard, Runtimes: in.Runtimes, LimitRanges: in.LimitRanges, Explain: in.Explain,
	}
}

// GPUClaims are the GPUs that the pod claims by dynamic resource allocation.
func (in Input) GPUClaims() accounting.PodClaims {
	return accounting.PodClaims{
		DeviceClasses: accounting.DeviceClasses{Policy: in.Policy, Pools: in.Pools, Classes: in.DeviceClasses}, Pod: in.Pod, Claims: in.Claims,
	}
}

// GuardAccess returns how guards of the namespace's pods reach the driver on a pool, or why they do not.
func GuardAccess(in Input, pool *pools.Pool) (how, why string) {
	return plan.DescribeGuardAccess(in.planning(), pool)
}

// AccessOf is how the promised guard of a pod with the runtime class ("": the node's default) reaches the driver.
func AccessOf(g *promise.Guard, runtimeClass string) string {
	way := modes.AccessVolume
	switch {
	case len(g.Claims) > 0:
		way = modes.AccessClaim
	case len(g.Annotations) > 0:
		way = modes.AccessCDI
	case slices.ContainsFunc(g.SidecarEnv, func(v podspec.Variable) bool { return v.Name == nvidia.EnvVisibleDevices }):
		way = modes.AccessEnv
	}
	return modes.DescribeAccess(way, runtimeClass)
}
