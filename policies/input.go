package policies

import corev1 "k8s.io/api/core/v1"

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Pod       *corev1.Pod
	Namespace Namespace
	Policy    *Policy // nil: no policy governs the namespace
	// PolicyError is why the namespace's policy cannot be used, when no last good version is known. Pods that ask for
	// a slice are denied with it.
	PolicyError error
	// TenantNotes are what authors of pods should know of the tenant's own document that tightened Policy.
	TenantNotes []string
	Pools       []Pool
	// PoolsComplete reports whether no other pools will ever be: what fits none of them is denied instead of waiting.
	PoolsComplete bool
	// Guard says where the guard's image is; nil: none can be injected.
	Guard *GuardSettings
	// Explain asks for a report on every candidate, also when one was chosen.
	Explain bool
}

// Tightened is the input with the policy as the tenant's own document (nil: none) tightens it.
func (in Input) Tightened(tenant *TenantDocument) Input {
	if tenant != nil && in.Policy != nil {
		in.Policy, in.TenantNotes = tenant.Tighten(in.Policy)
	}
	return in
}

// GuardSettings are what the installation says about the guard: where its image is and what it may use. They are not
// policy, since they are the same in every namespace.
type GuardSettings struct {
	Image      string
	PullPolicy corev1.PullPolicy
	PullSecret string // must exist in the tenant's namespace; empty: none
	CPU        string // requests and limits alike, so that Guaranteed pods stay so
	Memory     string
}
