// Package webhook holds the admission edge of gpuslice: AdmissionReviews over HTTPS in, decisions of package policies out.
//
//	request -> server (size, number, kind) -> handler of pods or policydocs -> policies -> patch, denial or nothing
//
// The one idea: an Answer is about the object, everything else that goes wrong is a Fault and becomes an HTTP status. The
// API server applies a webhook's failurePolicy to the second and never to the first, so a fault of ours (a panic, a full
// queue, a namespace that cannot be read) must not look like a denial.
//
// controller-runtime reads the reviews, calls the handlers and writes the answers (package admission), registers the paths (webhook.Server)
// and runs the parts of a replica (manager.Manager). Bounds on input, the http.Server, the drain before the manager ends, and the
// election of the leader are gpuslice's own: the library answers a panic with a denial, ends what decides before the server that
// depends on it, and ends the process with the Lease.
//
// The inputs of a decision (policies, pools, the namespace's labels) come from informers and are kept as one immutable
// cluster.Snapshot. Handlers call no API, but for a namespace that is younger than the cache.
//
// Packages below admission answer reviews, in each replica:
//
//	server       HTTPS, bounds on input, and on concurrent reviews
//	review       the contract between a server and its handlers
//	pods         the handlers of pods and of pod templates
//	policydocs   the handler of policies
//	cluster      the Snapshot of policies and pools that decisions read
//	watcher      the informers that keep it up to date
//	operator     the GPU Operator's settings
//	budgets      the charge of a new pod, and its budget
//	metrics      the counts of a replica
//
// Package leader elects one replica. One replica is enough for the packages below it:
//
//	podcache         the one watch of pods
//	observe          which tier really applies to each pod; nodelease reads the reports of agents
//	usage            holdings and use of pods over time
//	peaks            the memory that workloads used, by workload
//	days             what usage and peaks keep of each day
//	workload         the names of workloads and their containers
//	nodecondition    whether a node's agent enforces, as a condition of the node
//	claimtemplates   the ResourceClaimTemplates of slices
//	closedclasses    the device classes that nobody claims in a namespace
//	extendednames    the extended resource names of device classes
//	quotametrics     limits and usage of quotas, in metrics
//	bypass           the end of bypasses
//
// Both use bounded (lists in bounded memory), clock, events, governed (namespaces under a policy), guardaccess (findings
// of guards on pools), keys (the keys that sign promises), nativequota (Kubernetes' own ResourceQuotas on GPU resources), and
// ledger (exact quota).
//
// The package itself has no code: its tests hold the page of threats.
package webhook
