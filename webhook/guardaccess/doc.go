// Package guardaccess records on which pools guards could not read the GPUs, so that pods there are planned without one.
//
//	reports of guards (webhook/leader/observe) -> Failures (annotation of the ConfigMap gpuslice-state) -> pools.Pool.GuardFailures
//
// The one idea: a tenant can make its own guard report anything. Reports of guards of one namespace count for that
// namespace alone; only guards of two namespaces count for everybody. One guard that reads the GPUs resets it.
package guardaccess
