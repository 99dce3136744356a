// Package webhook is the admission edge of gpuslice: AdmissionReviews over HTTPS in, decisions of package policies
// out.
//
//	request -> limits (size, number, kind) -> AdmissionReview -> handler -> policies.Decide -> patch, refusal or nothing
//
// The one idea: a refusal is an answer about the pod, everything else that goes wrong is an HTTP status. The API
// server applies a webhook's failurePolicy to the second and never to the first, so a fault of ours (a panic, a full
// queue, a namespace that cannot be read) must not look like a refusal.
//
// What a decision needs (policies, pools, the namespace's labels) comes from informers and is kept as one immutable
// Snapshot. Handlers make no API call, but for a namespace that is younger than the cache.
//
// The package imports no settings library and nothing of the guard's but its contract.
package webhook
