package policies

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/guardaccess"
	"github.com/gpuslice/gpuslice/policies/internal/plan"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Pod       *corev1.Pod
	Namespace api.Namespace
	Policy    *config.Policy // nil: no policy governs the namespace
	// PolicyError is why the namespace's policy cannot be used, when no last good version is known. Pods that request
	// a slice are denied with it.
	PolicyError error
	// TenantNotes are what authors of pods should know of the tenant's own document that tightened Policy.
	TenantNotes []string
	Pools       []pools.Pool
	// PoolsComplete reports whether no other pools will ever be: what fits none of them is denied instead of waiting.
	PoolsComplete bool
	// DeviceClasses are the cluster's, by name, and Claims what the pod claims of them, by the name that it has for each
	// claim. What is not in them may be a GPU.
	DeviceClasses map[string]*resourcev1.DeviceClass
	Claims        map[string]*resourcev1.ResourceClaimSpec
	// Guard says where the guard's image is; nil: none can be injected.
	Guard *config.GuardSettings
	// Runtimes are what the cluster tells about how a guard can reach the driver.
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

// planning is what of the input a plan depends on.
func (in *Input) planning() *plan.Input {
	return &plan.Input{
		Pod: in.Pod, Namespace: in.Namespace, Policy: in.Policy, Pools: in.Pools, PoolsComplete: in.PoolsComplete,
		Guard: in.Guard, Runtimes: in.Runtimes, LimitRanges: in.LimitRanges, Explain: in.Explain,
	}
}

// GuardAccess tells how guards of the namespace's pods reach the driver on a pool, or why they do not.
func (in Input) GuardAccess(pool *pools.Pool) (how, why string) {
	return guardaccess.Describe(&guardaccess.Asker{Namespace: in.Namespace, Policy: in.Policy, Runtimes: in.Runtimes}, pool)
}
