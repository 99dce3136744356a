// Command gpuslice shows the webhook's decisions, and looks after its installation. It calls the same core (package
// policies), on files or on the objects of a cluster. Each command is a package; README.md lists them.
//
//	cli        streams, exit codes, flags, formats, tables, colours
//	manifest   files -> objects, pod templates, policies
//	record     pod -> what gpuslice wrote on it
//	target     the cluster that a question is about: files, an API server (kube), its installation (installed)
//	preview    object + target -> decision, by the core or by dry-runs
//
// Imports run one way, in this order; commands come last and do not import each other.
//
// Objects go to standard output, reasons to standard error. With files it makes no connection. It starts in milliseconds,
// so it reaches no controller and no manager.
package main
