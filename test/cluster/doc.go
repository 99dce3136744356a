// Package cluster runs a real Kubernetes for tests and demonstrations, from nothing but Go modules.
//
// Nothing is mocked: etcd and kube-apiserver are the released sources, pinned by the go.mod and
// go.sum files below modules/ and compiled once into a cache outside the checkout (see Build).
// StartAPIServer runs the two as ordinary processes on free loopback ports. It needs no root, no
// container and no namespace, and any number of them may run side by side.
//
// # Webhooks
//
// A webhook configuration names a Service, and in a cluster without a node nothing answers behind
// one. SetEndpoints makes it answer: the Service gets an EndpointSlice with addresses out of a range
// reserved for benchmarks, and the API server, which dials Services through a proxy (its
// egress selector), finds the test's own listeners behind these. Real manifests, names and
// certificates are used as they are. What differs from a cluster with nodes: a refused connection
// reads "proxy error" in the API server's message.
//
// Without the controller manager (Options.ControllerManager) nobody makes the default ServiceAccount of a
// namespace, without which it takes no pods (see Namespace and DefaultAccount), and nobody fills the status
// of a ResourceQuota.
//
// # A node
//
// StartNode adds what a machine in a real cluster has: controller manager, scheduler, kubelet, containerd,
// runc and CNI networking, with images packed from programs of ours (package image) instead of a registry,
// and NVIDIA's device plugin and feature discovery on a simulated GPU. It takes root, gcc, and on
// Debian apt-get, which fetches one library into the cache; package box keeps it off the machine.
// On two cores with little else to do, start, a pod with logs and exec, and the end together take 4.0 to
// 4.5 seconds (GPUSLICE_TEST=node go test -count=1 -run TestPod$ ./test/cluster/nodetest, programs built before).
//
// TestMain returns Main to os.Exit; a program's main calls InBox. Either starts the whole program again
// inside, so that tests talk to the node directly:
//
//	func TestMain(m *testing.M) { os.Exit(cluster.Main(m, buildImages)) }
//
// Missing, compared with a cluster in production: DNS, kube-proxy (Services other than the API server's do not answer
// pods; the API server reaches webhooks all the same), a registry of real images, a second node, and a real GPU.
// Containers that request a GPU get the simulated one from a stand-in for NVIDIA's container runtime
// (cmd/nvidia-runtime), which containerd uses by default when NodeOptions.GPU is set, and which a RuntimeClass finds
// under the handler nvidia in any case.
//
// The node has been run on cgroup v1 only. The branch for v2 (box/unified.go) follows the kernel's
// documentation and is untested. Package vm has a machine with v2, and no kubelet.
//
// # Variables
//
//	GPUSLICE_TEST    tiers whose tests run: apiserver, node, or both with a comma; else they are skipped
//	GPUSLICE_CACHE   where built programs are kept
//	GPUSLICE_LOGS    a folder that gets the logs of a node's parts when what ran in its box failed
//	E2E_OPTIONAL     1: a machine that cannot have a node skips its tests instead of failing them
//
// This package may be imported by tests and demonstrations only.
package cluster
