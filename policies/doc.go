// Package policies decides what happens to a pod that requests a part of a GPU. It is the pure core of gpuslice, with one
// function for each operation:
//
//	Create        a new pod: read its request, plan it, build and sign a Promise, patch the pod
//	Update        an update by somebody else: restore what is gpuslice's
//	Verify        a pod as it will be stored: compare it with its Promise, never plan again
//	VerifyUpdate  the same for an update, ephemeral containers and resize
//	Template      a workload template with a fraction of a GPU
//
// Its packages import in one direction. Those that others may import, lowest first:
//
//	mig         the names of MIG profiles
//	api         the vocabulary: labels, annotations, requests, sizes
//	claims      the ResourceClaimTemplates of slices
//	quota       limits, and sums of charges against them
//	promise     what gpuslice promises a pod, signed
//	config      policies, and which of them governs a namespace
//	pools       the pools that nodes and their drivers offer
//	rawpod      a client's pod, read within bounds
//	podedit     the edits on a pod, one file for each kind
//	accounting  the charge of a pod
//	translate   the words of other systems into gpuslice's
//
// Those below internal, lowest first:
//
//	commandline  the program that a container runs
//	message      texts for messages, cut
//	modes        the modes of a policy
//	nvidia       the names of NVIDIA's software
//	podspec      an author's fields of a pod, apart from gpuslice's
//	quantity     amounts of memory, fractions and counts of GPUs
//	shim         limits for releases of PyTorch that read none
//	document     YAML documents as people write them
//	frameworks   the limits that frameworks read
//	spellings    how pods of other systems request a part of a GPU
//	strategies   the ways to share a GPU
//	request      a pod's request
//	rules        the ways out of a slice
//	plan         strategy, pool and enforcement of a pod
//
// The package does no I/O and has no clock: the webhook, the command line and the tests call the same functions. It imports no
// client, no net, os, context, log or sync; test/arch enforces that.
package policies
