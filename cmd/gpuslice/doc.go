// Command gpuslice shows the webhook's decisions, and looks after its installation. It calls the same core (package
// policies), on files or on the objects of a cluster. Each command is a package, and none imports another; README.md lists
// them. What several use is in cmd/client:
//
//	cli        streams, exit codes, flags, formats, tables, colours
//	manifest   files -> objects, pod templates, policies
//	record     pod -> what gpuslice wrote on it
//	kube       the API server
//	installed  the installation in a cluster
//	clusters   the cluster that a question is about: files, an API server
//	preview    object + cluster -> decision, by the core or by dry-runs
//
// Package fleet has the commands about all GPUs together.
//
// Objects go to standard output, reasons to standard error. With files it makes no connection. It starts in milliseconds,
// so it reaches no controller and no manager.
package main
