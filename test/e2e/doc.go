// Package e2e holds the whole of gpuslice against a real node: kubelet, containerd and runc run the pods, NVIDIA's own
// device plugin and feature discovery offer simulated GPUs, the webhook is the Deployment that users apply, and the
// guard is the one that it injects.
//
// Each test has a namespace, and there a GPU of its own to break (stage). Tests wait for a state of the API server or
// of a log, never for a time. They run in a box, as root:
//
//	GPUSLICE_TEST=node go test -parallel 6 ./test/e2e
package e2e
