// Package client has no code: the packages below it are what commands share. They import in one direction, lowest first:
//
//	problem     errors about documents, and the places that they name
//	cli         streams, exit codes, flags, formats, tables, colours
//	kube        the API server
//	manifest    files -> objects, pod templates, policies
//	record      pod -> what gpuslice wrote on it
//	nvidia      the configuration of NVIDIA's software
//	freememory  the memory of GPUs that nobody uses
//	installed   the installation in a cluster
//	clusters    the cluster that a question is about: files, an API server
//	budget      quotas, and the pods that hold the most
//	preview     object + cluster -> decision, by the core or by dry-runs
package client
