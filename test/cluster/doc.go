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
// reserved for benchmarks, and the API server, which is told to dial Services through a proxy (its
// egress selector), finds the test's own listeners behind these. Real manifests, names and
// certificates are used as they are. What differs from a cluster with nodes: a refused connection
// reads "proxy error" in the API server's message.
//
// This package may be imported by tests and demonstrations only.
package cluster
