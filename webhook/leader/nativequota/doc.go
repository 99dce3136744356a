// Package nativequota keeps Kubernetes' own ResourceQuotas on GPU resources correct beside gpuslice.
//
// A ResourceQuota counts pods by the names of their resources. Where gpuslice renames a resource, the ResourceQuotas of
// others would stop counting: they are watched here, and counted in the ledger. Where the policy sets native: write, the
// leader writes the policy's own limit as a ResourceQuota, which holds while gpuslice is down.
//
// The one idea: gpuslice reads the ResourceQuotas of others and never changes them. Its own carry a label and the one name;
// a ResourceQuota of that name without the label is not touched, and reported.
package nativequota
