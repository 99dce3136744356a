// Package oci packs files into container images without a container tool: OCI layouts and archives that registries,
// containerd and Docker take.
//
// The one idea: an image is a function of its files. Nothing of the machine, the time or the order in which files were
// found gets into it, so the same files have the same digest everywhere.
package oci
