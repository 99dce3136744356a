package plan

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Input is all that a plan depends on. Nothing of it is changed.
type Input struct {
	Pod           *corev1.Pod // its author's alone
	Namespace     api.Namespace
	Policy        *config.Policy
	Pools         []pools.Pool
	PoolsComplete bool                  // no other pools will ever be
	Guard         *config.GuardSettings // nil: no guard can be injected
	Runtimes      pools.Runtimes        // how a guard can reach the driver
	LimitRanges   []*corev1.LimitRange  // of the namespace
	Explain       bool                  // report on every candidate, also when one was chosen
}
