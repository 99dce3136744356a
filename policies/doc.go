// Package policies decides what becomes of a pod that asks for a share of a GPU. It is the pure core of gpuslice:
//
//	pod -> Request -> plan(Request, Policy, Pools) -> Promise -> Apply(pod, Promise) -> Patch
//
// A Request is what the pod asks, in whatever spelling. A Policy is what the namespace allows. A Pool is where it can
// fit. Decide joins the three into a Decision: the pod is left unchanged, rewritten under a Promise, or denied with a
// reason and the next thing to do. Apply writes a Promise into a pod, and Patch says the difference in operations that
// keep every field this build does not know.
//
// The package does no I/O and has no clock: the webhook, the command line and the tests call the same functions. It
// imports no client, no net, os, context, log or sync; test/arch enforces that.
package policies
