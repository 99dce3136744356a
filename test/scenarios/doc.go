// Package scenarios holds the golden cases of gpuslice: a policy, nodes, a pod, and what comes out. One set serves the
// pure core, the HTTP handler and a real API server. README.md describes a case's file, how to add one, and how to read a
// failure.
//
// "go test ./policies -update" rewrites the want sections and nothing else.
package scenarios
