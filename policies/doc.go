// Package policies decides what happens to a pod that requests a part of a GPU. It is the pure core of gpuslice, with one
// function for each operation:
//
//	Create        a new pod: read its request, plan it, build and sign a Promise, patch the pod
//	Update        an update by somebody else: restore what is gpuslice's
//	Verify        a pod as it will be stored: compare it with its Promise, never plan again
//	VerifyUpdate  the same for an update, ephemeral containers and resize
//	Template      a workload template with a fraction of a GPU
//
// Its packages import in one direction, lowest first: mig; api and claims; quota, internal/spellings and internal/frameworks;
// internal/strategies and promise; config; pools; internal/request; podedit; accounting and internal/rules; internal/plan; policies.
// Package sizing estimates slices from history: no other package here imports it.
//
// The package does no I/O and has no clock: the webhook, the command line and the tests call the same functions. It imports no
// client, no net, os, context, log or sync; test/arch enforces that.
package policies
