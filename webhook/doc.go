// Package webhook holds the admission edge of gpuslice: AdmissionReviews over HTTPS in, decisions of package policies out.
//
//	request -> server (size, number, kind) -> handler of pods or policydocs -> policies -> patch, denial or nothing
//
// The one idea: an Answer is about the object, everything else that goes wrong is a Fault and becomes an HTTP status. The
// API server applies a webhook's failurePolicy to the second and never to the first, so a fault of ours (a panic, a full
// queue, a namespace that cannot be read) must not look like a denial.
//
// What a decision needs (policies, pools, the namespace's labels) comes from informers and is kept as one immutable
// cluster.Snapshot. Handlers call no API, but for a namespace that is younger than the cache.
//
// Imports point one way:
//
//	review, keys, ledger <- metrics, nativequota <- cluster, server <- budgets, policydocs <- pods <- cmd/webhook
//
// The package itself has no code: its tests hold the page of threats.
package webhook
