package policies

import corev1 "k8s.io/api/core/v1"

// planInput is all that a plan depends on. Nothing of it is changed.
type planInput struct {
	Pod           *corev1.Pod // its author's alone
	Namespace     Namespace
	Policy        *Policy
	Pools         []Pool
	PoolsComplete bool           // no other pools will ever be
	Guard         *GuardSettings // nil: no guard can be injected
	Explain       bool           // report on every candidate, also when one was chosen
}
