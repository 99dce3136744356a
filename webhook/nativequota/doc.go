// Package nativequota reads Kubernetes' own ResourceQuotas on GPU resources.
//
// A ResourceQuota counts pods by the names of their resources. Where gpuslice renames a resource, ResourceQuotas would stop counting:
// they are watched here, and counted in the ledger.
//
// The one idea: gpuslice reads ResourceQuotas, and never writes one.
package nativequota
