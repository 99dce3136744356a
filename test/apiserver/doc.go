// Package apiserver holds the tests that need a real API server: the core cannot imitate its defaulting, validation,
// admission chain and patch application. They run the scenarios and the public pods of test/corpus through the
// webhook's own process, installed from the manifests that users apply.
//
// GPUSLICE_TEST=apiserver runs them (make test-apiserver).
package apiserver
