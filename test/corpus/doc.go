// Package corpus holds 113 pods from public repositories as input for tests. The first line of each file names its source:
// repository@commit, path, kind. Templates of workloads became pods; names were replaced. In no mode may gpuslice answer a pod
// with an internal error, or make it invalid.
package corpus
