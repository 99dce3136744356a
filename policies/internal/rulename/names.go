// Package rulename names the rules by which policies denies a pod. Those that a webhook reports by itself are in api.
package rulename

import "github.com/gpuslice/gpuslice/policies/api"

// The rules.
const (
	Request     api.Rule = "request"     // the request cannot be read or contradicts itself
	Fit         api.Rule = "fit"         // no pool holds the slice
	Limit       api.Rule = "limit"       // above policy's limit for a container or pod
	Strategy    api.Rule = "strategy"    // the strategy cannot be used by this pod
	Enforcement api.Rule = "enforcement" // below policy's minimum
	Framework   api.Rule = "framework"   // the framework would leave its slice or die of its settings
	Template    api.Rule = "template"    // a quantity that Kubernetes denies in templates
	Immutable   api.Rule = "immutable"   // a label of ours changed on a live pod
	Tamper      api.Rule = "tamper"      // the pod could leave its slice, or take devices that it was not given
	Undone      api.Rule = "undone"      // what a slice consists of is missing or changed
)
