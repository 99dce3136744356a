// Package dra holds gpuslice against a node of dynamic resource allocation: a driver publishes GPUs in ResourceSlices, a device
// class offers them by a resource name, and there is neither a device plugin nor a label of feature discovery.
package dra
