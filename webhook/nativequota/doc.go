// Package nativequota keeps Kubernetes' own ResourceQuotas on GPU resources true beside gpuslice.
//
// A ResourceQuota counts pods under the names that they carry. Where gpuslice renames a resource, those of others would
// stop counting: they are watched here, and counted in the ledger. Where policy says write, the leader writes the
// policy's own limit as a ResourceQuota, which holds while gpuslice is away.
//
// The one idea: a quota of somebody else's is read and never touched. What is gpuslice's own carries a label and the one
// name; a ResourceQuota of that name without the label is left alone, and reported.
package nativequota
