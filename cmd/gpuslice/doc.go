// Command gpuslice shows the webhook's decisions, and looks after its installation. It calls the same core (package
// policies), on files or on the objects of a cluster. Each command is a package, and none imports another; README.md lists
// them. Package program puts them together. What several use is in cmd/client, and the commands about all GPUs together are in
// package fleet, which comes off: see test/removal.
//
// Objects go to standard output, reasons to standard error. With files it makes no connection. It starts in milliseconds,
// so it reaches no controller and no manager.
package main
