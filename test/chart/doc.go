// Package chart holds the tests of how gpuslice is installed, with the commands that users have: helm, compiled from its
// module, and kubectl.
//
// With GPUSLICE_TEST=apiserver the chart is rendered, checked and installed on a real API server; with GPUSLICE_TEST=node
// on a real node, with each source of certificates, where its pods run and a tenant's pod gets its slice;
// there the commands of all pages run, too.
package chart
