// Package proofs keeps the findings of gpuslice verify --on-gpu on each pool.
//
//	gpuslice verify --on-gpu -> Records (ConfigMap gpuslice-proofs of the system namespace) -> pools.Pool.Proven
//
// The one idea: a record counts for a pool that is as it was. With another driver, or another way to share its devices, the
// record is stale: it is shown, and proves nothing. No tenant may write in the system namespace.
package proofs
